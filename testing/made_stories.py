"""Stories for measuring: any number of distinct made-up tales of about 150 words, from a seed.

They are for speed and memory only. They are no benchmark data and no literature.
"""

import json
import random
import re
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

WORDS = SimpleNamespace(**json.loads((files(__package__) / "words.json").read_bytes())["made_stories"])


def sentence(rng: random.Random, hero: str, other: str) -> str:
    """One sentence about two characters, from one of twelve frames."""
    names = ("thing", "place", "feeling", "deed", "deed2", "quality")
    lists = (WORDS.things, WORDS.places, WORDS.feelings, WORDS.deeds, WORDS.deeds, WORDS.qualities)
    chosen = {name: rng.choice(words) for name, words in zip(names, lists, strict=True)}
    return str(rng.choice(WORDS.frames).format(hero=hero, other=other, **chosen))


def make_story(number: int) -> dict[str, str]:
    """One story by number, always the same."""
    rng = random.Random(f"42:{number}")
    hero, other = rng.sample(WORDS.heroes, 2)
    opening, quality, place = (rng.choice(words) for words in (WORDS.openings, WORDS.qualities, WORDS.places))
    body = [
        f"{opening} a {quality} {hero} met a {other} at the {place}.",
        *(sentence(rng, hero, other) for _ in range(11)),
    ]
    first, second = rng.choice(WORDS.feelings), rng.choice(WORDS.feelings)
    closing = f"At last the {hero} thanked the {other}, {first} and {second}."
    return {
        "id": f"kb25k_{number:04d}",
        "title": f"The {hero.title()} and the {other.title()} {number}",
        "language": "en",
        "text": " ".join([*body, closing]),
        "source_collection": WORDS.collections[number % 3],
        "source_reference": "made up for measuring",
        "rights_status": "public_domain_or_rights_compatible",
        "narrative_type": WORDS.types[number % 8],
        "moral_label": WORDS.labels[(number // 8) % 12],
    }


def write_stories(path: Path, count: int) -> Path:
    """Write ``count`` stories as JSONL and return the path."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for number in range(1, count + 1):
            out.write(json.dumps(make_story(number), ensure_ascii=False) + "\n")
    return path


def near_copy(text: str, share: float, seed: int, *, turned: bool = False) -> str:
    """Return a text in which a share of the words are others, sentences in reverse order if turned."""
    rng = random.Random(seed)
    sentences = re.split(r"(?<=[.!?\"]) ", text)
    words = " ".join(reversed(sentences) if turned else sentences).split()
    others = make_story(9000 + seed)["text"].split()
    for place in rng.sample(range(len(words)), round(share * len(words))):
        words[place] = rng.choice(others)
    return " ".join(words)

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
    thing, place, feeling = (rng.choice(words) for words in (WORDS.things, WORDS.places, WORDS.feelings))
    deed, deed2, quality = (rng.choice(words) for words in (WORDS.deeds, WORDS.deeds, WORDS.qualities))
    frames = (
        f"The {hero} {deed} the {thing} near the {place} because the {other} was {feeling}.",
        f"When the {other} came to the {place}, the {hero} {deed} a {quality} {thing}.",
        f"But the {other} {deed2} the {thing}, so the {hero} grew {feeling}.",
        f"The {hero} wanted to keep the {thing}, and the {other} {deed} it at the {place}.",
        f'"I am {feeling}," said the {quality} {hero} to the {other} by the {place}.',
        f"After that the {other} {deed} the {thing} and the {hero} {deed2} the {quality} one.",
        f"The {quality} {other} ran to the {place} to save the {thing} from the {hero}.",
        f"Then the {hero}, {feeling} and {quality}, {deed} every {thing} in the {place}.",
        f"Because the {thing} was lost, the {other} {deed2} what the {hero} had left at the {place}.",
        f"The {other} felt {feeling} and {deed} the {thing} for the {hero}.",
        f"Next morning the {hero} {deed2} the {thing} while the {quality} {other} slept in the {place}.",
        f"The {hero} asked the {other} for a {thing}, yet the {other} only {deed} a {quality} stone.",
    )
    return rng.choice(frames)


def make_story(number: int, seed: int = 42) -> dict[str, str]:
    """One story by number; the same number and seed give the same story."""
    rng = random.Random(f"{seed}:{number}")
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

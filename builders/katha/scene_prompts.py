"""The prompts for the picture of a scene: a short one that CLIP reads whole, and a long one beside it.

Text encoders of the CLIP family read 77 tokens, those of beginning and end counted, and drop the rest. So the
short prompt says first what must be visible, and what does not fit is left out from its end.
"""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, primary_language
from ...validators.katha.scene_rules import without_article
from ...validators.view import mentions
from ..text.words import is_participle, is_verb, word_set

LIMIT = 77
"""Tokens that CLIP reads, its begin and end token included (Radford et al. 2021, section 2.4)."""
_LETTERS = 5
"""Letters of a word per token; see :func:`clip_tokens`."""
_ADJECTIVES = 2
_PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)|[^\W\d_]+|\d|(?:[^\s\w]|_)+")
_NOT_LOOKS = frozenset(
    ("certain", "same", "other", "another", "first", "second", "third", "next", "last", "own", "such", "very")
)
"""Words before a name that say nothing of how its bearer looks."""


def clip_tokens(text: str) -> int:
    """Return how many tokens CLIP makes of a text at most, its begin and end token included.

    This is a bound made without CLIP's vocabulary, not its count: the text is lower-cased and split as CLIP
    splits it (words, single digits, runs of punctuation). An English function word counts one, any other word
    of ASCII letters one for each five letters begun, anything else one for each byte of UTF-8. Single rare
    words can have more pieces than that ("wept" has two), whole descriptions seldom: 135 hand-written
    prompts of 33 to 65 tokens were counted 0 to 13 tokens too high; of 135 single sentences of up to 30
    tokens ten were counted too low, by at most 3. In other scripts the bound is far above the count.
    """
    return 2 + sum(map(_tokens, _PIECES.findall(text.lower())))


def fits(text: str) -> bool | None:
    """Return whether CLIP reads all of a prompt; None if only its vocabulary can tell, in other scripts."""
    if clip_tokens(text) <= LIMIT:
        return True
    least = 2 + len(_PIECES.findall(text.lower()))
    return False if text.isascii() or least > LIMIT else None


def _tokens(piece: str) -> int:
    if piece in word_set("words", "function") or piece[0] == "'":
        return 1
    return math.ceil(len(piece) / _LETTERS) if piece.isascii() and piece.isalpha() else len(piece.encode())


_LOOK = r"(?<!\w){} \(([^()]+)\)"
_IN_BRACKETS = re.compile(r" \([^()]*\)")
_CAST = "looking the same in every scene:"
"""What stands before the characters in the long prompt, ``prompts/scene_image.j2``."""


def plain_look(look: str) -> str:
    """Return a look as prompts say it, in brackets behind the name."""
    return re.sub(r"[()\[\]{}]", "", look).strip().rstrip(".。")


def looks_in(scenes: Sequence[Json]) -> dict[str, str]:
    """Return how the characters of scenes look, as their long prompts say: plain name -> look."""
    looks: dict[str, str] = {}
    for scene in scenes:
        cast = (scene.get("generation_prompt_long") or "").rpartition(_CAST)[2]
        for name in map(without_article, scene["characters"]):
            found = re.search(_LOOK.format(re.escape(name)), cast, re.IGNORECASE)
            if found is not None:
                looks.setdefault(normalize_answer(name), found[1])
    return looks


def described(name: str, story: Json, looks: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return how prompts call a character: with its look, or the adjectives of its first mention, or as such.

    ``looks``: name without article, in its normal form -> how it looks.

    Adjectives are read between a determiner and the name, in English, and not for proper names. The answer
    depends on the story's text and the name alone, so it is the same in every scene.
    """
    bare = name.strip()[len(name.strip()) - len(without_article(name)) :]
    if (look := looks.get(normalize_answer(without_article(name)))) is not None:
        return f"{bare} ({look})"
    if primary_language(story["language"]) != "en" or bare != bare.lower():
        return bare
    first = re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", story["normalized_text"], re.IGNORECASE)
    if first is None or first[0][1:] != bare[1:]:
        return bare
    runs = _looks(story["normalized_text"][: first.end()], bare)
    kept = [word for word in runs[-1] if word not in _NOT_LOOKS][-_ADJECTIVES:] if runs else []
    return " ".join((*kept, bare))


def _looks(text: str, bare: str) -> list[tuple[str, ...]]:
    """Return for each mention of a name the adjectives before it, as far as they can be read."""
    determiners, function = word_set("words", "determiners"), word_set("words", "function")
    runs: list[tuple[str, ...]] = []
    for mention in re.finditer(rf"((?:[\w'’-]+ ){{0,5}}){re.escape(bare)}(?!\w)", text, re.IGNORECASE):
        words = mention[1].lower().split()
        at = max((n for n, word in enumerate(words) if word in determiners), default=-1)
        run = words[at + 1 :]
        odd = any(word in function or is_verb(words, at + 1 + n) for n, word in enumerate(run))
        if at < 0:  # without a determiner only after a mark, where no verb can stand before the name
            begins = not text[: mention.start()].rstrip(" ")[-1:].isalnum()
            odd |= not begins or any(is_participle(word) or word.endswith("ly") for word in run)
        runs.append(() if odd else tuple(run))
    return runs


def with_prompts(
    scene: Json, story: Json, total: int, looks: Mapping[str, str] = MappingProxyType({})
) -> Json:
    """Return a scene with both prompts for its picture, which follow from its other fields and the story."""
    short = short_prompt(scene, story, looks=looks)
    return {**scene, "generation_prompt": short, **_long_prompt(scene, story, total, looks)}


def prompted(scenes: Sequence[Json], story: Json, given: Sequence[Json] | None = None) -> list[Json]:
    """Return scenes with prompts made anew, but for those that a person gave; looks stay."""
    looks = looks_in(scenes)
    return [
        scene
        if given is not None and "generation_prompt" in given[number]
        else with_prompts(scene, story, len(scenes), looks)
        for number, scene in enumerate(scenes)
    ]


def short_prompt(
    scene: Json, story: Json, lead: str | None = None, looks: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the short prompt of a scene, which :data:`LIMIT` tokens hold.

    It has the action with the looks of who acts; then what must be visible, characters, things and feeling,
    as far as they fit. Each is said once.

    ``scene``: the scene (Table 7). ``lead``: what is shown in place of the action and of what must be
    visible.
    """
    cast = {without_article(name): described(name, story, looks) for name in scene["characters"]}
    first, *more = [scene["action"] or "", *scene["visual_must_show"]] if lead is None else [lead]
    text = _with_looks(first.strip().rstrip(".。"), cast)
    mood = [f"mood: {scene['emotion']}"] if scene["emotion"] else []
    for phrase in (*more, *cast.values(), *scene["objects"], *mood):
        said = phrase.strip().rstrip(".。")
        plain = _IN_BRACKETS.sub("", text)
        if said and not mentions(normalize_answer(plain), without_article(_IN_BRACKETS.sub("", said))):
            longer = _with_looks(f"{text}, {said}" if text else said, cast)
            text = longer if clip_tokens(longer) <= LIMIT or not text else text
    return text


def _with_looks(text: str, cast: Mapping[str, str]) -> str:
    """Return a text in which the first mention of each character says how it looks, as far as that fits."""
    for bare, called in cast.items():
        longer = _called(text, bare, called)
        text = longer if fits(longer) is not False else text
    return text


def _called(text: str, bare: str, called: str) -> str:
    """Return a text in which the first mention of a name is how its character is called."""
    if called.lower() == bare or mentions(normalize_answer(text), called):
        return text

    def anew(mention: re.Match[str]) -> str:
        article = mention[1] or ""
        if article.strip().lower() in ("a", "an"):
            article = f"{article[0]}{'n' if called[0] in 'aeiou' else ''} "
        return f"{article}{called}"

    return re.sub(rf"(?<!\w)(an? )?{re.escape(bare)}(?!\w)", anew, text, count=1, flags=re.IGNORECASE)


def _long_prompt(scene: Json, story: Json, total: int, looks: Mapping[str, str]) -> Json:
    prompt = load_prompt("scene_image").render(
        index=scene["scene_index"],
        total=total,
        title=story["title"],
        text=scene["scene_text"],
        must_show=list(scene["visual_must_show"]),
        characters=[described(name, story, looks) for name in scene["characters"]],
        **{name: scene[name] for name in ("objects", "action", "emotion")},
    )
    return {"generation_prompt_long": prompt}

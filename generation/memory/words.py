"""Word lists of ours: what sort of thing a noun names, colours of keys, styles. The lists are words.json."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

Sort: TypeAlias = Literal["wearable", "mark", "fixture", "creature", "vehicle", "prop"]
"""What is worn; marks of a body; what belongs to a place; animals and beings; vehicles; what is carried."""

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_BEFORE = re.compile(
    r"\s+(?:of|with|in|on|at|from|for|to|under|over|near|inside|beside|behind|that|which|made)\s",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)['‘“\"][^'‘’“”\"]*['’”\"](?!\w)")
_HOLDS = frozenset(
    (
        *("set", "pair", "group", "row", "collection", "pile", "stack", "bunch", "pack", "series", "number"),
        *("piece", "arrangement", "convoy", "swarm", "slice", "pint", "bale", "skein", "assortment"),
        *("cluster", "stick", "roll"),
    )
)
"""Words before ``of`` that say how much there is: what stands behind is the thing."""


@cache
def _lists() -> Mapping[str, Mapping[str, list[str]]]:
    lists: Mapping[str, Mapping[str, list[str]]] = json.loads(
        (files(__package__) / "words.json").read_text("utf-8")
    )
    return lists


@cache
def _sorts() -> Mapping[str, Sort]:
    return {word: sort for sort, words in _lists()["heads"].items() for word in words}  # type: ignore[misc]


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, in lower case, numbers left out."""
    return tuple(word.lower().replace("’", "'") for word in _WORD.findall(text))


def singulars(word: str) -> Iterator[str]:
    """Yield a word and what it may be the plural of, by its ending."""
    yield word
    for ending, instead in (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            yield word.removesuffix(ending) + instead


def is_many(name: str) -> bool:
    """Whether a name is of several things, by its last word or by a word such as pair: ``the metal keys``."""
    head = head_phrase(name)
    return bool(_HOLDS & set(words_of(name))) or bool(
        head and head[-1].endswith("s") and not head[-1].endswith(("ss", "us", "is"))
    )


def head_phrase(name: str) -> tuple[str, ...]:
    """Return the words of a name up to its head noun; of words such as pair, what it is a pair of.

    >>> head_phrase("the glass of milk")
    ('the', 'glass')
    >>> head_phrase("a pair of muddy boots")
    ('muddy', 'boots')
    """
    parts = _BEFORE.split(_QUOTED.sub(" ", name), maxsplit=1)
    first = words_of(parts[0])
    if len(parts) > 1 and first and _HOLDS & set(singulars(first[-1])):
        return head_phrase(parts[1])
    return first


def sort_of(name: str) -> tuple[Sort, str] | None:
    """Return what sort of thing a name is of, and the word that says so; None where no word is known.

    The head noun goes first, then the words before it, from right to left, as compounds have them.
    """
    for word in reversed(head_phrase(name)):
        for form in (*singulars(word), *(part for part in word.split("-")[-1:] if "-" in word)):
            known = _sorts().get(form)
            if known is not None:
                return known, word
    return None


def colours_worn(text: str) -> frozenset[str]:
    """Return the key colours that a description has words for: ``green`` for an olive coat."""
    words = {part for word in words_of(text) for part in (word, *word.split("-"))}
    return frozenset(name for name, known in _lists()["colours"].items() if words & set(known))


def style_in(text: str) -> str | None:
    """Return the style that a text names first in our list; None where it names none."""
    lowered = text.lower()
    for style, signs in _lists()["styles"].items():
        if any(re.search(rf"\b{re.escape(sign)}\b", lowered) for sign in signs):
            return style
    return None

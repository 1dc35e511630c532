"""Words of a text with their places, the English cue lists of the rules, and choices fixed by an id.

The cue lists are data files, loaded once, on first use.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from ...schemas.text import is_unspaced, unspaced_count


@cache
def lexicon(name: str) -> dict[str, Any]:
    """Return one cue file, such as ``verbs``, as parsed JSON."""
    document: dict[str, Any] = json.loads((files(__package__) / f"{name}.json").read_text("utf-8"))
    return document


@cache
def word_set(name: str, *keys: str) -> frozenset[str]:
    """Return the words of one or more lists of a cue file as a set."""
    return frozenset(word for key in keys for word in lexicon(name)[key])


@cache
def phrase_pattern(name: str, key: str) -> re.Pattern[str]:
    """Return a pattern that finds any phrase of a list as whole words, the longest first, in any case."""
    return whole_words(lexicon(name)[key])


def whole_words(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the phrases as whole words, the longest first, in any case."""
    longest = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest)) + r")(?!\w)", re.IGNORECASE)


_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its lower-case form without a possessive ending, and its span."""

    lower: str
    start: int
    end: int
    possessive: bool


def words_of(text: str, start: int = 0, end: int | None = None) -> list[Word]:
    """Return the words between two places of a text, in order."""
    found = []
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        lower = match[0].lower().replace("’", "'")
        possessive = lower.endswith(("'s", "s'"))
        found.append(Word(lower.removesuffix("'s"), match.start(), match.end(), possessive))
    return found


def lower_words(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """Return what :func:`words_of` finds, as lower-case words alone."""
    return [plain_word(word) if word[-1] == "s" else word for word in _WORD.findall(text[start:end].lower())]


def plain_word(word: str) -> str:
    """Return a lower-case word without a possessive ending."""
    return word.replace("’", "'").removesuffix("'s") if "s" in word[-1:] else word


def word_count(text: str) -> int:
    """Return the number of words; in a script without spaces, of its characters."""
    return unspaced_count(text) if is_unspaced(text) else len(text.split())


def content_words(text: str) -> list[str]:
    """Return the lower-case words of a text that are not function words, in order."""
    function = word_set("words", "function")
    return [word for word in lower_words(text) if word not in function]


T = TypeVar("T")


def share(*parts: str) -> float:
    """Return a number from 0 to below 1 that is fixed by the parts."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def pick(options: Sequence[T], *parts: str) -> T:
    """Return one of the options, fixed by the parts."""
    return options[int(share(*parts) * len(options))]

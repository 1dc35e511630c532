"""Words of a text with their places, and what can be said about a script without a dictionary."""

import re
from dataclasses import dataclass

from ....schemas.text import is_unspaced, unspaced_count
from .lexicon import word_set

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

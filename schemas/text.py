"""Text normalisation that builders and validators share."""

import re
import unicodedata
from collections.abc import Callable

_SPACE = re.compile(r"\s+")


class _Table(dict[int, str]):
    """A ``str.translate`` table that decides about each character when it first meets it."""

    def __init__(self, decide: Callable[[str], str]) -> None:
        super().__init__()
        self._decide = decide

    def __missing__(self, code: int) -> str:
        self[code] = self._decide(chr(code))
        return self[code]


def _without_noise(char: str) -> str:
    if char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs"):
        return char
    return " " if char.isspace() else ""


def _without_punctuation(char: str) -> str:
    return " " if unicodedata.category(char)[0] in "PSZC" else char


_TEXT, _ANSWER = _Table(_without_noise), _Table(_without_punctuation)


def normalize_text(text: str) -> str:
    """Return a text in normal form C, without control and format noise, white space collapsed.

    Zero-width joiners are kept: Indic and Persian scripts need them.
    """
    composed = unicodedata.normalize("NFC", text)
    return _SPACE.sub(" ", composed.translate(_TEXT)).strip()


def normalize_answer(text: str) -> str:
    """Return an answer as it is compared: NFKC, casefolded, punctuation dropped, spaces collapsed."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.translate(_ANSWER).split())

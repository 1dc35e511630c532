"""Text normalisation that builders and validators share."""

import re
import unicodedata
from collections.abc import Callable

_SPACE = re.compile(r"\s+")
# Scripts that put no space between words: Thai, Lao, Tibetan, Myanmar, Khmer, Kana, Han.
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


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
    # Noise goes first: what stands between a letter and its accent would keep the two apart.
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text.translate(_TEXT))).strip()


def normalize_answer(text: str) -> str:
    """Return an answer as it is compared: NFKC, casefolded, punctuation dropped, spaces collapsed."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.translate(_ANSWER).split())


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether a text contains a phrase that is not cut out of longer words.

    Both are as :func:`normalize_answer` leaves them. Words are told apart where the script has capital
    letters or is ASCII: "ant" is not in "elephant". Other scripts put no space between words, or join
    particles to them, so that there the phrase may stand anywhere. An empty phrase is nowhere.
    """
    if not phrase or phrase not in text:
        return False
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not (_in_one_word(text[max(0, start - 1) : start + 1]) or _in_one_word(text[end - 1 : end + 1])):
            return True
        start = text.find(phrase, start + 1)
    return False


def _in_one_word(pair: str) -> bool:
    return len(pair) == 2 and all(char != " " and (char.isascii() or char.upper() != char) for char in pair)


def unspaced_count(text: str) -> int:
    """Return how many characters of a text are of a script that puts no space between words."""
    return 0 if text.isascii() else len(_UNSPACED.findall(text))


def is_unspaced(text: str) -> bool:
    """Return whether more than a third of a text is in a script that puts no space between words."""
    return unspaced_count(text) * 3 > len(text)

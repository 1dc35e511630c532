"""Texts, ids and language tags: what they look like, and how texts are normalised."""

import re
import shlex
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

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


def quoted(path: object) -> str:
    """Return a path as a shell reads it, for a command that can be pasted."""
    return shlex.quote(str(path))


_SHORT = 200  # characters of a text whose normal form is remembered; longer ones would fill the memory


def normalize_answer(text: str) -> str:
    """Return an answer as it is compared: NFKC, casefolded, punctuation dropped, spaces collapsed."""
    return _remembered(text) if len(text) <= _SHORT else _as_compared(text)


@lru_cache(1024)  # a story's rules compare the same answers and scenes again and again
def _remembered(text: str) -> str:
    return _as_compared(text)


def _as_compared(text: str) -> str:
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


STORY_ID_LENGTH = 64
_STORY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_PART_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}", re.ASCII)
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*", re.ASCII)


def is_story_id(text: str) -> bool:
    """Return whether a text may be the id of a story: it becomes part of file names and keys."""
    return _STORY_ID.fullmatch(text) is not None


def is_part_id(text: str) -> bool:
    """Return whether a text may be the id of a question, variant or pair.

    Such an id may be longer than a story's, because it may begin with one.
    """
    return _PART_ID.fullmatch(text) is not None


def is_language_tag(text: str) -> bool:
    """Return whether a text has the shape of a BCP 47 tag whose language has two or three letters.

    BCP 47 also sets aside longer languages, of which none is registered.
    """
    return _LANGUAGE_TAG.fullmatch(text) is not None


def primary_language(tag: str) -> str:
    """Return the language of a tag without script and region, in lower case: ``zh`` of ``zh-Hans``."""
    return tag.partition("-")[0].lower()


def slug(text: str) -> str:
    """Return a story id made of a text such as a file's name: ASCII letters, digits, ``_`` and ``-``.

    Accents are dropped, everything else becomes a dash; empty where nothing is left.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:STORY_ID_LENGTH].rstrip("-_")


def printable(text: str) -> str:
    """Return a text with its control characters, those of direction too, made visible."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


PLURALS = {
    "random half": "random halves", "reply": "replies", "source family": "source families",
    "story": "stories",
}  # fmt: skip


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 judge, 2 judges, 1,200 stories."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    return PLURALS.get(noun, f"{noun}s")


def tallied(count: int, nouns: str) -> str:
    """Return a count with what was counted, named in the plural: 1 hidden story, 23 lines of a.jsonl."""
    if "." in nouns:
        return f"{counted(count, 'line')} of {nouns}"
    if count == 1:
        nouns = re.sub(r"(ies|(?<=[^s])s)\b", lambda end: "y" if end[0] == "ies" else "", nouns, count=1)
    return f"{count:,} {nouns}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them: ``a, b and c``."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def tallies(counts: Mapping[str, int]) -> str:
    """Return several counts, each with what was counted, named in the plural: 1 story, 5 scenes."""
    return ", ".join(tallied(count, nouns) for nouns, count in counts.items())


def byte_text(count: int) -> str:
    """Return a number of bytes for people, such as 1.3 GB."""
    for unit, name in ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"

"""Words of a text with their places, the English cue lists of the rules, and choices fixed by an id.

The cue lists are data files, loaded once, on first use.

Verbs are found without a tagger: which word of a clause is its verb, and of what kind. Names are put in the
place of others where texts use them.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ...schemas.text import is_unspaced, unspaced_count

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

Kind = Literal["event", "speech", "stative"]

_ING_NOUNS = frozenset(
    ["spring", "string", "nothing", "something", "anything", "everything", "darling", "wedding"]
)


GUESSED_FROM, GUESSED_SURE = 40, 0.8
"""Letters that a text has at least, and the probability of its language, for it to be guessed."""


@cache
def language_detector() -> "LanguageIdentifier":
    """Return the detector of languages (py3langid, BSD-3-Clause), with probabilities."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def guess_language(text: str) -> str | None:
    """Return the language that a text is in; None where it is too short, or nothing is sure."""
    if len(text) < GUESSED_FROM:
        return None
    language, probability = language_detector().classify(text[:5000])
    return str(language) if probability >= GUESSED_SURE else None


def find_verb(words: Sequence[str], start: int = 0) -> int | None:
    """Return the index of the first finite verb among lower-case words, or None."""
    return next((i for i in range(start, len(words)) if is_verb(words, i)), None)


def is_verb(words: Sequence[str], i: int) -> bool:
    """Return whether the word at an index looks like a finite verb where it stands."""
    word = words[i]
    if word in word_set("verbs", "auxiliary"):
        return True
    if i == 0 or words[i - 1] in word_set("words", "determiners"):
        return False
    if word in lexicon("verbs")["irregular"] or word in word_set("verbs", "present"):
        return words[i - 1] not in ("of", "to", "with", "by")
    return _regular_past(word) and not (i + 1 < len(words) and words[i + 1] == "by")


def _regular_past(word: str) -> bool:
    return len(word) > 3 and word.endswith("ed") and word not in word_set("verbs", "not_verbs")


def is_participle(word: str) -> bool:
    """Return whether a word looks like a present participle; "king" and "morning" do not."""
    nouns = word_set("nouns", "animals", "people", "objects", "abstract", "titles")
    return len(word) > 4 and word.endswith("ing") and word not in nouns and word not in _ING_NOUNS


def verb_kind(words: Sequence[str], i: int) -> Kind:
    """Return what kind of verb stands at an index: an event, speech, or a state."""
    word = words[i]
    if word in word_set("verbs", "auxiliary"):
        ahead = [w for w in words[i + 1 : i + 4] if w not in ("not", "never", "n't", "been", "being")][:1]
        moving = any(w.endswith("ing") or w in word_set("verbs", "motion") or _regular_past(w) for w in ahead)
        return "event" if moving else "stative"
    if word in word_set("verbs", "speech"):
        return "speech"
    return "stative" if word in word_set("verbs", "stative") else "event"


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


T = TypeVar("T")


def share(*parts: str) -> float:
    """Return a number from 0 to below 1 that is fixed by the parts."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def pick(options: Sequence[T], *parts: str) -> T:
    """Return one of the options, fixed by the parts."""
    return options[int(share(*parts) * len(options))]


@dataclass(frozen=True)
class Renaming:
    """Puts a new name where a text uses the old one.

    Words are not cut (Leo is not in Leonard), a longer name of somebody else stays (the ferryman is not in
    Old Ferryman Tom), and a possessive keeps its form: Tomas' hat becomes Ana's hat. A name that begins with
    a small letter is found, and put, with a capital at the start of a sentence, too.
    """

    old: str  # the name until now
    new: str  # the name from now on
    others: Collection[str] = ()  # names of others in the same language, which are left alone

    def __call__(self, text: str) -> str:
        """Return the text with the new name."""
        return self._pattern.sub(self._put, text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longer = (name for name in self.others if self.old in name and name != self.old)
        names = [*sorted(longer, key=len, reverse=True), self.old]
        listed = "|".join(re.escape(name) for name in names)
        capital = _capital(self.old)
        if capital != self.old:
            listed += f"|{re.escape(capital)}"
        if unspaced_count(self.old):
            return re.compile(f"(?P<name>{listed})(?P<own>)")
        return re.compile(rf"(?<!\w)(?P<name>{listed})(?!\w)(?:(?<=s)(?P<own>['’])(?=\s))?")

    def _put(self, match: re.Match[str]) -> str:
        written = match["name"]
        if written not in (self.old, _capital(self.old)):
            return match[0]
        name = self.new if written == self.old else _capital(self.new)
        apostrophe = match["own"] or ""
        before = match.string[: match.start()]
        quoted = bool(apostrophe) and before.endswith(("'", "‘"))
        return name + apostrophe + ("s" if apostrophe and not quoted and not name.endswith("s") else "")


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]

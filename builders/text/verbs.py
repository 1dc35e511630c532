"""English verbs without a tagger: which word of a clause is its verb, of what kind, its base form."""

import re
from collections.abc import Sequence
from typing import Literal

from .words import lexicon, word_set

Kind = Literal["event", "speech", "stative"]

_ING_NOUNS = frozenset(
    ["spring", "string", "nothing", "something", "anything", "everything", "darling", "wedding"]
)
_DOUBLED = re.compile(r"(.*[^aeiou]?[aeiou])([bdgklmnprt])\2$")
_SILENT_E = re.compile(
    r"(?:[csvzu]|[rld]g|[^aeiou](?:at|iat|ir|ur|ik|ak|ok|id|ad|ap|op|yp|il|ul|ol|am|im|om|um"
    r"|in|un|on|ar|or|ag|ud|od|ut|uk|ot|iz|bl|pl|tl|dl|gl|kl|fl|cl|y[lrp]))$"
)


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


def base_form(word: str) -> str:
    """Return the base form of an English past-tense verb, such as ``carry`` for ``carried``.

    Exact for the irregular and listed verbs, by spelling rules for the rest.
    """
    table = lexicon("verbs")
    listed = table["irregular"].get(word, table["lemmas"].get(word))
    if listed is not None:
        return str(listed)
    if not word.endswith("ed") or len(word) < 4:
        return word
    if word.endswith("ied"):
        return word[:-3] + "y"
    stem = word[:-2]
    doubled = _DOUBLED.match(stem)
    if doubled and doubled[2] not in "l":
        return stem[:-1]
    if stem.endswith(("ss", "x", "rs", "ns", "ks", "ts", "ow", "ew")):
        return stem if not stem.endswith(("rs", "ns")) else stem + "e"
    return stem + "e" if _SILENT_E.search(stem) else stem

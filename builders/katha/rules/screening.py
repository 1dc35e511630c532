"""What the screening looks for in a text, each with the words that it rests on.

Labels from cue words: a moral target and a narrative type, or null where the words do not settle it.
"""

import re
from collections.abc import Mapping
from functools import cache

from ....schemas.canonical import Json
from ...text.segments import Analysis
from ...text.verbs import find_verb, verb_kind
from ...text.words import lexicon, lower_words, phrase_pattern, whole_words, word_count

LEAD = 1.5
"""How many times the runner-up's cues the winner must have."""

MORAL_CUES = 3
TYPE_CUES_PER_WORD = 0.03


@cache
def _patterns(table: str) -> Mapping[str, re.Pattern[str]]:
    return {label: whole_words(cues) for label, cues in lexicon("morals")[table].items()}


def _winner(text: str, table: str, least: float) -> str | None:
    counts = {label: len(pattern.findall(text)) for label, pattern in _patterns(table).items()}
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    (first, top), (_, second) = ranked[0], ranked[1]
    return first if top >= least and top >= LEAD * second and top > second else None


def moral_label(text: str) -> str | None:
    """Return the moral target of an English text, or None.

    A statement of the moral ("The moral is ...") is read first; else the whole text.
    """
    for statement in moral_statements(text):
        label = _winner(statement, "cues", 1)
        if label is not None:
            return label
    return _winner(text, "cues", MORAL_CUES)


def narrative_type(text: str) -> str | None:
    """Return the narrative type of an English text, or None."""
    return _winner(text, "types", max(3.0, TYPE_CUES_PER_WORD * word_count(text)))


def moral_statements(text: str) -> list[str]:
    """Return the stretches of an English text, 200 characters at most, that state its moral."""
    pattern = re.compile("|".join(map(re.escape, lexicon("morals")["statements"])), re.IGNORECASE)
    return [text[match.end() : match.end() + 200] for match in pattern.finditer(text)]


_PERSONAL = {
    "an e-mail address": re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}", re.IGNORECASE),
    "a telephone number": re.compile(r"(?<![\w.])\+?\(?\d{2,4}\)?(?:[ .-]?\d{2,4}){2,4}(?![\w.]*\d)"),
    "an identity number": re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)|(?<!\d)\d{4} \d{4} \d{4}(?!\d)"),
    "a postal address": re.compile(
        r"(?<!\d)\d{1,5} (?:[A-Z][a-z]+ ){1,3}(?:Street|St\.|Avenue|Ave\.|Road|Rd\.|Lane|Boulevard|Blvd\.)"
    ),
}
_MIN_DIGITS = 9


def personal_data(text: str) -> str | None:
    """Return what kind of personal data the text holds, with a quotation, or None."""
    for kind, pattern in _PERSONAL.items():
        for match in pattern.finditer(text):
            if kind != "a telephone number" or sum(char.isdigit() for char in match[0]) >= _MIN_DIGITS:
                return f"{kind}: {_around(text, match)}"
    return None


def quoted_cue(text: str, key: str) -> str | None:
    """Return the first cue of an English list in its surroundings, or None."""
    match = phrase_pattern("screening", key).search(text)
    return None if match is None else _around(text, match)


def _around(text: str, match: re.Match[str], width: int = 40) -> str:
    start, end = max(0, match.start() - width), min(len(text), match.end() + width)
    return f'"{"..." if start else ""}{text[start:end]}{"..." if end < len(text) else ""}"'


def event_share(text: str, analysis: Json) -> tuple[int, int, str]:
    """Return how many clauses tell an event or speech, how many there are, and one that does not."""
    events, example = 0, ""
    segments = Analysis.from_json(analysis).segments
    for segment in segments:
        clause = text[segment.start : segment.end]
        words = lower_words(clause)
        verb = find_verb(words)
        # A coordinate clause may begin with its verb.
        kind = (
            verb_kind(words, verb)
            if verb is not None
            else ("event" if words[:1] and _past(words[0]) else None)
        )
        if kind in ("event", "speech"):
            events += 1
        elif not example:
            example = clause[:100]
    return events, len(segments), example


def _past(word: str) -> bool:
    return find_verb(["and", word]) is not None or word.endswith("ing")


def moral_conflict(text: str) -> str | None:
    """Return a quotation of two stated morals that differ, or None."""
    stated = [statement.split(".")[0].strip() for statement in moral_statements(text)]
    distinct = list(dict.fromkeys(statement.casefold() for statement in stated))
    if len(distinct) < 2:
        return None
    return f'{len(distinct)} stated morals: "{stated[0][:60]}", "{stated[-1][:60]}"'

"""Labels from cue words: a moral target and a narrative type, or null where the words do not settle it."""

import re
from collections.abc import Mapping
from functools import cache

from .lexicon import lexicon, whole_words
from .words import word_count

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

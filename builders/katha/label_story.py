"""Stage: narrative type and moral target (Tables 6 and 11): of a person, else the author, else drafted."""

import re
from collections.abc import Mapping
from functools import cache

from ...schemas.canonical import Json
from ...schemas.text import primary_language
from ..replies import language
from ..step import PlannerSettings, Step
from ..text.words import lexicon, whole_words, word_count
from .drafts import LABELS, NARRATIVE, Sketch, given_label


def draft_labels(story: Json) -> Json:
    """Return the labels by rules, each null where the text does not settle it."""
    text = story["normalized_text"]
    if primary_language(story["language"]) != "en":
        return dict.fromkeys(LABELS)
    return {"narrative_type": narrative_type(text), "moral_label": moral_label(text)}


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    story = sketch.story
    return {"language": language(story), "story": story["normalized_text"], "title": story["title"]}


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the labels of a reply, whose schema holds them to their vocabularies.

    The turning point, which the model states first in order to choose well, is not kept.
    """
    return {name: reply[name] for name in LABELS}


def _known(sketch: Sketch) -> Json:
    return {name: given_label(sketch.given, name) or sketch.story[name] for name in LABELS}


def _given(sketch: Sketch, settings: PlannerSettings) -> Json:
    labels = _known(sketch)
    return None if None in labels.values() else labels


def _settle(drafted: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    return {name: label or drafted[name] for name, label in _known(sketch).items()}


LEAD = 1.5
"""How many times the runner-up's cues the winner must have."""


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
    """Return the moral target that an English text itself states ("The moral is ..."), or None.

    What a story is about cannot be told from how often words occur in it.
    """
    labels = {_winner(statement, "cues", 1) for statement in moral_statements(text)} - {None}
    return labels.pop() if len(labels) == 1 else None


def narrative_type(text: str) -> str | None:
    """Return the narrative type of an English text, or None."""
    return _winner(text, "types", max(3.0, TYPE_CUES_PER_WORD * word_count(text)))


def moral_statements(text: str) -> list[str]:
    """Return the stretches of an English text, 200 characters at most, that state its moral."""
    pattern = re.compile("|".join(map(re.escape, lexicon("morals")["statements"])), re.IGNORECASE)
    return [text[match.end() : match.end() + 200] for match in pattern.finditer(text)]


STEP = Step(
    id="katha/label_story",
    version=4,
    writes=LABELS,
    by="labels_by",
    reads=("story", *NARRATIVE, "given"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: draft_labels(sketch.story),
    show=_show,
    read=_read,
    given=_given,
    settle=_settle,
)

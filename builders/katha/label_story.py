"""Stage: narrative type and moral target (Tables 6 and 11): of a person, else the author, else a model."""

from ...schemas.canonical import Json
from ..replies import language
from ..step import PlannerSettings, Step
from .drafts import LABELS, NARRATIVE, Sketch, given_label


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
    return {name: label or (drafted or {}).get(name) for name, label in _known(sketch).items()}


STEP = Step(
    id="katha/label_story",
    version=5,
    writes=LABELS,
    by="labels_by",
    reads=("story", *NARRATIVE, "given"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: None,
    show=_show,
    read=_read,
    given=_given,
    settle=_settle,
)

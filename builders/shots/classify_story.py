"""Stage: what scores are stratified by: story type, culture, visual style, and whether it is realistic.

What the author gives stands. A style that is drafted is a proposal for the references, which decide. Rules
tell the culture of a collection.
"""

from ...schemas.canonical import Json
from ..replies import language
from ..step import PlannerSettings, Step
from .cast import Sketch
from .load_stories import LABELS

CULTURES = {"aesop": "euro_american", "kathasaritasagara": "indian", "panchatantra": "indian"}
"""Source collection -> the culture that its stories come from."""


def _rules(sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the culture that a collection is of; type and style are for a reader."""
    return {"story_type": None, "culture": CULTURES.get(sketch.story["source_collection"]), "style": None}


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    story = sketch.story
    return {"language": language(story), "story": story["normalized_text"], "title": story["title"]}


def _given(sketch: Sketch, settings: PlannerSettings) -> Json:
    facts = sketch.facts()
    return None if None in (facts.get(name) for name in LABELS) else _settle(facts, sketch, settings)


def _settle(drafted: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the drafted labels, but for those that the author gives; the cast says what is realistic."""
    facts = sketch.facts()
    given = {name: facts.get(name) for name in LABELS}
    tags = {member["tag"] for member in sketch.cast} - {"non_human"}
    realistic = facts.get("realistic")
    if realistic is None and tags and None not in tags:
        realistic = tags == {"realistic_human"}
    labels = {name: drafted[name] if value is None else value for name, value in given.items()}
    return {**labels, "realistic": realistic}


STEP = Step(
    id="shots/classify_story",
    version=3,
    writes=("labels",),
    reads=("story", "given", "cast"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    given=_given,
    settle=_settle,
)

"""Stage: what scores are stratified by: story type, culture, visual style, and whether it is realistic.

What the author gives stands. A style that is drafted is a proposal for the references, which decide. Rules
tell the story type by cue words of an English text and the culture by its collection; null where neither
settles
it.
"""

from ...schemas.canonical import Json
from ..replies import language
from ..step import PlannerSettings, Step
from ..text.words import lower_words
from .cast import Sketch
from .load_stories import LABELS
from .words import cues_of

STORY_TYPE = "story_type"
LEAST, LEAD = 3, 1.5
CULTURES = {"aesop": "euro_american", "kathasaritasagara": "indian", "panchatantra": "indian"}
"""Source collection -> the culture that its stories come from."""


def story_type(text: str) -> str | None:
    """Return the story type whose words a text has most of, if they are enough and clearly the most."""
    words = lower_words(text)
    counts = {name: sum(word in cues for word in words) for name, cues in cues_of(STORY_TYPE).items()}
    (first, top), (_, second) = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:2]
    return first if top >= LEAST and top >= LEAD * second else None


def _rules(sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return story type and culture; a style is nothing that a text tells."""
    english = sketch.analysis["english"]
    return {
        "story_type": story_type(sketch.story["normalized_text"]) if english else None,
        "culture": CULTURES.get(sketch.story["source_collection"]),
        "style": None,
    }


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
    if realistic is None and tags:
        realistic = tags == {"realistic_human"}
    labels = {name: drafted[name] if value is None else value for name, value in given.items()}
    return {**labels, "realistic": realistic}


STEP = Step(
    id="shots/classify_story",
    version=2,
    writes=("labels",),
    reads=("story", "analysis", "given", "cast"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    given=_given,
    settle=_settle,
)

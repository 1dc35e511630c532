"""Stage: what rules read off the text once, so that no later stage has to read it again.

A model is shown the segments by their numbers.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.text import primary_language
from .mentions import find_entities
from .segments import Analysis, segment_text
from .words import words_of

SPEC = StageSpec(
    name="analyze_story",
    version=4,
    shape="map",
    reads=("story",),
    writes=("analysis",),
    libraries=("sentencex",),
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the analysis of the story."""
    return Made({"analysis": analyze(item["story"])})


def analyze(story: Json) -> Json:
    """Return the analysis of a story as compact JSON; other languages than English are only segmented."""
    text, language = story["normalized_text"], story["language"]
    english = primary_language(language) == "en"
    segments = segment_text(text, language, english)
    if not english:
        return Analysis(False, segments, ()).as_json()
    return Analysis(True, segments, find_entities(text, words_of(text), segments)).as_json()

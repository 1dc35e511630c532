"""Stage: what rules read off the text once, so that no later stage has to read it again.

A model is shown the segments by their numbers.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.text import primary_language
from .emotions import find_feelings
from .mentions import MentionFinder
from .segments import Analysis, segment_text
from .words import words_of

SPEC = StageSpec(
    name="analyze_story",
    version=3,
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
        return Analysis(False, segments, (), ()).as_json()
    words = words_of(text)
    entities = MentionFinder(text, words).find(segments)
    return Analysis(True, segments, entities, find_feelings(words, segments)).as_json()

"""Stage: what rules read off the text once, so that no later stage has to read it again.

Every planner gets it: a model is shown the segments by their numbers.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .rules import Rules

SPEC = StageSpec(
    name="analyze_story",
    version=2,
    shape="map",
    reads=("story",),
    writes=("analysis",),
    libraries=("sentencex",),
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the analysis of the story."""
    return Made({"analysis": Rules().analyze(item["story"])})

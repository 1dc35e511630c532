"""Stage: what the planner reads off the text once, so that no later stage has to read it again."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import PlannerSettings, planner_of

SPEC = StageSpec(
    name="analyze_story",
    version=1,
    shape="map",
    reads=("story",),
    writes=("analysis",),
    libraries=("sentencex", "empath"),
    settings=PlannerSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the planner's analysis of the story."""
    return Made({"analysis": planner_of(tools).analyze(item["story"])})

"""Stage: what is seen in each shot, as a still."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import PlannerSettings, Sketch, planner_of

SPEC = StageSpec(
    name="describe_shots",
    version=1,
    shape="map",
    reads=("story", "analysis", "plot", "cast", "onstage", "settings", "cameras"),
    writes=("statics", "statics_by"),
    settings=PlannerSettings,
    asks=("shots/describe_shots",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the static description of each shot, and who drafted it."""
    drafted = await planner_of(tools).statics(Sketch.of(item))
    return Made({"statics": drafted.value, "statics_by": drafted.maker})

"""Stage: distance, angle and camera type of each shot: neighbours differ, none jumps."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import PlannerSettings, Sketch, planner_of

SPEC = StageSpec(
    name="design_perspectives",
    version=1,
    shape="map",
    reads=("story", "analysis", "plot", "cast", "onstage"),
    writes=("cameras", "cameras_by"),
    settings=PlannerSettings,
    asks=("shots/design_perspectives",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the perspective of each shot, and who drafted it."""
    drafted = await planner_of(tools).cameras(Sketch.of(item))
    return Made({"cameras": drafted.value, "cameras_by": drafted.maker})

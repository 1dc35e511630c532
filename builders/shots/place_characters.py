"""Stage: which characters of the cast are on stage in each shot, 0 to 3."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import PlannerSettings, Sketch, planner_of

SPEC = StageSpec(
    name="place_characters",
    version=1,
    shape="map",
    reads=("story", "analysis", "plot", "cast"),
    writes=("onstage", "onstage_by"),
    settings=PlannerSettings,
    asks=("shots/place_characters",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the keys of the characters on stage in each shot, and who drafted it."""
    drafted = await planner_of(tools).onstage(Sketch.of(item))
    return Made({"onstage": drafted.value, "onstage_by": drafted.maker})

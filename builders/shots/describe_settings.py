"""Stage: the place of each shot, without any character."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import PlannerSettings, Sketch, planner_of

SPEC = StageSpec(
    name="describe_settings",
    version=1,
    shape="map",
    reads=("story", "analysis", "plot", "cast", "onstage"),
    writes=("settings", "settings_by"),
    settings=PlannerSettings,
    asks=("shots/describe_settings",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the setting of each shot, and who drafted it."""
    drafted = await planner_of(tools).settings(Sketch.of(item))
    return Made({"settings": drafted.value, "settings_by": drafted.maker})

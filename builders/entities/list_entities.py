"""Stage: local registries: what is seen in each chunk of a video's shots, and what happens there."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import Film, planner_of
from .settings import ListSettings

SPEC = StageSpec(
    name="list_entities",
    version=1,
    shape="map",
    reads=("shots", "cast", "views"),
    writes=("local_registries", "listed_by"),
    settings=ListSettings,
    asks=("entities/list_entities",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the registries of the chunks, and who listed them."""
    drafted = await planner_of(tools).registries(Film.of(item))
    return Made({"local_registries": drafted.value, "listed_by": drafted.maker})

"""Stage: the entities of a whole video: local ones put together and named, and looked for in the frames."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import Film, planner_of
from .registries import LocalRegistry
from .settings import MergeSettings

SPEC = StageSpec(
    name="merge_entities",
    version=2,
    shape="map",
    reads=("shots", "cast", "views", "local_registries"),
    writes=("identities", "merged_by"),
    settings=MergeSettings,
    asks=("entities/merge_entities", "entities/check_registry"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the entities with what they were made of, and who merged them."""
    registries = [LocalRegistry.model_validate(one) for one in item["local_registries"]]
    drafted = await planner_of(tools).identities(Film.of(item), registries)
    return Made({"identities": drafted.value, "merged_by": drafted.maker})

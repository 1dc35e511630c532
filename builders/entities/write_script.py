"""Stage: the script of a whole video: scenes, which shots begin anew, and a plain action for each."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import Film, Identities, planner_of
from .registries import LocalRegistry
from .settings import TellSettings

SPEC = StageSpec(
    name="write_script",
    version=1,
    shape="map",
    reads=("shots", "cast", "views", "local_registries", "identities"),
    writes=("draft", "draft_by"),
    settings=TellSettings,
    asks=("entities/write_script",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the script, and who wrote it."""
    registries = [LocalRegistry.model_validate(one) for one in item["local_registries"]]
    entities = Identities.model_validate(item["identities"]).entities
    drafted = await planner_of(tools).script(Film.of(item), registries, entities)
    return Made({"draft": drafted.value, "draft_by": drafted.maker})

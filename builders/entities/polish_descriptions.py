"""Stage: what each entity of an episode looks like, for generators.

Faces and demographics of characters, without what they do and without camera words; visual properties of
objects; space and atmosphere of locations (EntityBench, section 3.1).
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import planner_of
from .settings import PolishSettings
from .write_overview import episode_of

SPEC = StageSpec(
    name="polish_descriptions",
    version=1,
    shape="map",
    reads=("entities", "written", "pictures"),
    writes=("described", "description_repairs", "described_by"),
    settings=PolishSettings,
    asks=("entities/polish_characters", "entities/polish_locations", "entities/polish_objects"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return label -> description, what could not be described anew, and who wrote it."""
    drafted = await planner_of(tools).descriptions(episode_of(item))
    texts, repairs = drafted.value
    return Made({"described": texts, "description_repairs": repairs, "described_by": drafted.maker})

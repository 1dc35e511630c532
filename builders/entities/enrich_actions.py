"""Stage: the actions of an episode told in full: who does what with whom, with every entity named.

A model is given the registry, the story, and a window of neighbouring shots (EntityBench, section 3.1).
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import planner_of
from .settings import EnrichSettings
from .write_overview import episode_of

SPEC = StageSpec(
    name="enrich_actions",
    version=1,
    shape="map",
    reads=("entities", "written", "pictures", "overview", "described"),
    writes=("enriched", "enriched_by"),
    settings=EnrichSettings,
    asks=("entities/enrich_actions",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the script with its actions, and who wrote them."""
    drafted = await planner_of(tools).actions(episode_of(item))
    return Made({"enriched": drafted.value, "enriched_by": drafted.maker})

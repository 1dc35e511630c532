"""Stage: the script as it is to stand: every slot is of the registry and named in the action of its shot.

In several passes a model adds mentions or drops slots, and rewrites actions that contradict a description or
cannot be; in the end rules drop what is still not named, and report what remains. See :mod:`.guarantees`.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .drafts import Repair
from .planner import planner_of
from .settings import VerifySettings
from .write_overview import episode_of

SPEC = StageSpec(
    name="verify_script",
    version=2,
    shape="map",
    reads=(
        "entities", "written", "pictures", "overview", "described", "description_repairs", "enriched",
    ),
    writes=("script", "registry", "verified_by"),
    settings=VerifySettings,
    asks=("entities/repair_mentions", "entities/check_actions"),
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return script and registry, and who verified them."""
    episode = episode_of(item)
    before = [Repair.model_validate(one) for one in item["description_repairs"]]
    script = episode.script.model_copy(update={"repairs": (*episode.script.repairs, *before)})
    drafted = await planner_of(tools).verify(episode.with_script(script))
    checked = drafted.value
    return Made({"script": checked["script"], "registry": checked["entities"], "verified_by": drafted.maker})

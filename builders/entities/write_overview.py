"""Stage: the story of an episode in two to four sentences, from the actions of its shots."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .drafts import Entity, Script
from .planner import Episode, PlannerSettings, planner_of
from .views import Views

SPEC = StageSpec(
    name="write_overview",
    version=1,
    shape="map",
    reads=("entities", "written", "pictures"),
    writes=("overview", "overview_by"),
    settings=PlannerSettings,
    asks=("entities/write_overview",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the overview, and who wrote it."""
    drafted = await planner_of(tools).overview(episode_of(item))
    return Made({"overview": drafted.value, "overview_by": drafted.maker})


def episode_of(item: Item) -> Episode:
    """Return the episode that an item is, as far as the fields go that the stage reads."""
    fields = item.fields
    written = Script.model_validate(fields.get("enriched", fields["written"]))
    script = written.model_copy(update={"overview": fields.get("overview", "")})
    entities = tuple(Entity.model_validate(one) for one in fields["entities"])
    texts = fields.get("described", {})
    if texts:
        entities = tuple(
            one.model_copy(update={"description": texts.get(one.label, one.description)}) for one in entities
        )
    return Episode(script, entities, Views.model_validate(fields["pictures"]))

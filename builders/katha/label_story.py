"""Stage: narrative type and moral target: by a person, else the author, else the planner, else null."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .parts import LABELS, given_label
from .planner import PlannerSettings, planner_of

SPEC = StageSpec(
    name="label_story",
    version=2,
    shape="map",
    reads=("story", "given"),
    writes=(*LABELS, "labels_by"),
    settings=PlannerSettings,
    asks=("katha/label_story",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the two labels, each a value of its vocabulary or null, and who drafted what was not given."""
    story = item["story"]
    labels = {name: given_label(item["given"], name) or story[name] for name in LABELS}
    if None not in labels.values():
        return Made({**labels, "labels_by": None})
    drafted = await planner_of(tools).labels(story)
    chosen = {name: label or drafted.value[name] for name, label in labels.items()}
    return Made({**chosen, "labels_by": drafted.maker})

"""Stage: what scores are stratified by: story type, culture, visual style, and whether it is realistic.

What the author gives stands. A style that a planner drafts is a proposal for the references, which decide.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .given import LABELS
from .planner import PlannerSettings, Sketch, planner_of

SPEC = StageSpec(
    name="classify_story",
    version=1,
    shape="map",
    reads=("story", "analysis", "given", "cast"),
    writes=("labels", "labels_by"),
    settings=PlannerSettings,
    asks=("shots/classify_story",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the labels and who drafted those that the author does not give."""
    sketch, given = Sketch.of(item), item["given"] or {}
    labels, maker = {name: given.get(name) for name in LABELS}, None
    if None in labels.values():
        drafted = await planner_of(tools).labels(sketch)
        labels = {name: drafted.value[name] if value is None else value for name, value in labels.items()}
        maker = drafted.maker
    tags = {one["tag"] for one in sketch.cast} - {"non_human"}
    realistic = given.get("realistic")
    if realistic is None and tags:
        realistic = tags == {"realistic_human"}
    return Made({"labels": {**labels, "realistic": realistic}, "labels_by": maker})

"""Stage: narrative type and moral target: a person's label, else the author's, else cue words, else null."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .parts import LABELS, given_label
from .planner import PlannerSettings, planner_of

SPEC = StageSpec(
    name="label_story",
    version=1,
    shape="map",
    reads=("story", "given"),
    writes=LABELS,
    settings=PlannerSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the two labels, each a value of its vocabulary or null."""
    story = item["story"]
    labels = {name: given_label(item["given"], name) or story[name] for name in LABELS}
    if None in labels.values():
        drafted = dict(zip(LABELS, planner_of(tools).labels(story), strict=True))
        labels = {name: label or drafted[name] for name, label in labels.items()}
    return Made(labels)

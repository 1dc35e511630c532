"""Stage: the transitions between adjacent scenes, with their source-side fields (Tables 8 and 9)."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .parts import fill, given_list
from .planner import PlannerSettings, planner_of

SPEC = StageSpec(
    name="annotate_transitions",
    version=1,
    shape="map",
    reads=("story", "given", "analysis", "scenes", "moral_label"),
    writes=("transitions",),
    settings=PlannerSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return T - 1 transitions; hand-written ones keep their fields."""
    planner = planner_of(tools)
    drafted = planner.transitions(item["story"], item["analysis"], item["scenes"], item["moral_label"])
    given = given_list(item["given"], "transitions")
    return Made({"transitions": drafted if given is None else fill(given, drafted)})

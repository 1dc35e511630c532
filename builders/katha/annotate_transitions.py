"""Stage: the transitions between adjacent scenes, with their source-side fields (Tables 8 and 9)."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.katha import Transition
from .parts import fill, given_list, is_complete
from .planner import PlannerSettings, planner_of

SPEC = StageSpec(
    name="annotate_transitions",
    version=2,
    shape="map",
    reads=("story", "given", "analysis", "scenes", "moral_label"),
    writes=("transitions", "transitions_by"),
    settings=PlannerSettings,
    asks=("katha/annotate_transitions",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return T - 1 transitions and who drafted them; hand-written ones keep their fields."""
    given = given_list(item["given"], "transitions")
    if given is not None and is_complete(given, Transition):
        return Made({"transitions": given, "transitions_by": None})
    drafted = await planner_of(tools).transitions(
        item["story"], item["analysis"], item["scenes"], item["moral_label"]
    )
    transitions = drafted.value if given is None else fill(given, drafted.value)
    return Made({"transitions": transitions, "transitions_by": drafted.maker})

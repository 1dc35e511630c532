"""Stage: turn away the stories that were not chosen (see :mod:`.choose_stories`)."""

from ....engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools

SPEC = StageSpec(
    name="leave_surplus",
    version=1,
    shape="map",
    reads=("surplus",),
    writes=("chosen",),
    reject_codes={"surplus": "Enough stories of its kind were chosen."},
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return that the story is chosen, or why it is not."""
    why = item["surplus"]
    return Made({"chosen": True}) if why is None else Rejected("surplus", why)

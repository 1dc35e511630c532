"""Stage: how far the final fields are from what was first drafted; see :mod:`.edit_distances`."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .drafts import PARTS, REPAIRS, make_draft, with_repairs
from .edit_distances import measure

SPEC = StageSpec(
    name="measure_edits",
    version=1,
    shape="map",
    reads=("story", "given", *PARTS, *REPAIRS, "draft"),
    writes=("edit_distances",),
    libraries=("rapidfuzz",),
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the story's sums by field."""
    first = make_draft(item.fields)
    repaired = with_repairs(first, item["repaired"], item["repaired_by"])
    return Made({"edit_distances": measure(first, repaired, item["draft"])})

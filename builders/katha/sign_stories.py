"""Stage: a MinHash signature of every story, from which near-duplicates are found."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...validators.similarity import signature

SPEC = StageSpec(
    name="sign_stories",
    version=1,
    shape="map",
    reads=("story",),
    writes=("signature",),
    libraries=("datasketch",),
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the signature: a list of integers."""
    return Made({"signature": signature(item["story"]["normalized_text"])})

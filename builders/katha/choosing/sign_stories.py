"""Stage: by what a story may be known again: a MinHash signature, its title, its numbers, its word groups."""

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....validators.retellings import Traces, signature

SPEC = StageSpec(
    name="sign_stories",
    version=3,
    shape="map",
    reads=("story", "source"),
    writes=("signature", "traces"),
    libraries=("datasketch",),
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the signature, a list of integers, and the traces."""
    story = item["story"]
    text = story["normalized_text"]
    number = (item["source"] or {}).get("catalogue_number")
    traces = Traces.of(story["title"], text, story["source_reference"], number)
    return Made({"signature": signature(text), "traces": traces.as_json()})

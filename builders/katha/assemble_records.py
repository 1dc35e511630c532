"""Stage: the finished record with its provenance, variants, producers and checks."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.base import Own
from .records import make_bundle


class Settings(Own):
    """Settings of the stage."""

    license: str = "CC-BY-4.0"


SPEC = StageSpec(
    name="assemble_records",
    version=1,
    shape="map",
    reads=("story", "draft", "checks", "split"),
    writes=("bundle",),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the bundle (``schemas.katha.KathaBundle``)."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    bundle = make_bundle(
        item["story"], item["draft"], item["checks"], item["split"], tools.created_at, settings.license
    )
    return Made({"bundle": bundle})

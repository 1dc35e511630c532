"""Stage: the finished record with its provenance, variants, producers and checks.

A story that was withdrawn goes no further than here: it keeps its place in the splits and among the
near-duplicates, so that nothing moves for the others, and its id is not used again. A story that retells
stories of two splits goes no further either: with it, one of them would tell of the other.
"""

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.values import Own
from .drafts import NARRATIVE, make_bundle, told_story


class Settings(Own):
    """Settings of the stage."""

    license: str | None = Field(
        default=None,
        description="SPDX id for stories that name no dataset_license; without one, packing asks for it.",
    )


JOINS = "joins_splits"
"""Code of what retells stories of two splits."""
WITHDRAWN = "withdrawn"
"""Code of what was taken out of the benchmark; packing lists it with its reason."""

SPEC = StageSpec(
    name="assemble_records",
    version=7,
    shape="map",
    reads=(
        "story",
        *NARRATIVE,
        "draft",
        "answer_history",
        "repair_log",
        "checks",
        "split",
        "joins",
        "withdrawn",
        "added_at",
    ),
    writes=("bundle",),
    keep={"joins_splits": "no option keeps it: a story told twice must not be in two splits"},
    reject_codes={
        WITHDRAWN: "It was withdrawn; its id is not used again.",
        JOINS: "It retells stories that are in different splits.",
    },
    settings=Settings,
    dated=True,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the bundle (``schemas.katha.KathaBundle``), or why the story was withdrawn."""
    settings = tools.own(Settings)
    if item["withdrawn"] is not None:
        return Rejected(WITHDRAWN, item["withdrawn"]["why"])
    if item["joins"] is not None:
        return Rejected(JOINS, "; ".join(_told(link) for link in item["joins"]))
    created_at = item["added_at"] or tools.created_at
    license_id = item["story"]["dataset_license"] or settings.license or None
    story = told_story(item.fields)
    draft = {**item["draft"], **{name: item[name] for name in ("answer_history", "repair_log")}}
    bundle = make_bundle(story, draft, item["checks"], item["split"], created_at, license_id)
    return Made({"bundle": bundle})


def _told(link: Json) -> str:
    first, second = link["stories"]
    return f"{first} and {second}, in {link['split']}: {link['evidence']}"

"""Parts of drafts as people see them: a question, a variant, a cause or a scene boundary, with its story."""

from collections.abc import Mapping

from ...schemas.canonical import digest
from ..review.items import Drawn, Part
from ..review.sources.source import Drawing, Material, Source, known_only
from .form import RUBRIC, Unit, drawn_units
from .records import Annotated, read_records

COUNT = 50
"""Usual number of parts of each kind."""


def draw_parts(material: Material) -> Drawing:
    """Draw so many parts of each kind from the drafts of a run, a release or a file."""
    options = material.options
    drafts = read_records(material.path)
    known_only("stories", options.stories, drafts, "story")
    chosen = [story_id for story_id in drafts if not options.stories or story_id in options.stories]
    kept = {story_id: drafts[story_id] for story_id in sorted(chosen)[: options.limit]}
    count = COUNT if options.count is None else options.count
    units = drawn_units(kept, count, options.seed)
    source = {
        "kind": material.what, "path": material.path.resolve().name,
        "records_sha256": digest([draft.record for draft in kept.values()]),
    }  # fmt: skip
    return Drawing(tuple(_item(unit, kept) for unit in units), source, _short(units, count))


def _short(units: list[Unit], count: int) -> tuple[str, ...]:
    there = {kind: sum(unit.kind == kind for unit in units) for kind in RUBRIC}
    return tuple(f"{kind}: {number} of {count} wanted" for kind, number in there.items() if number < count)


def _item(unit: Unit, drafts: Mapping[str, Annotated]) -> Drawn:
    """Return a part as an item; the list that bears its kind decides which reasons are asked."""
    draft = drafts[unit.story_id]
    texts = {
        "title": draft.record["title"], "scenes": draft.texts, "kind": unit.kind, "shown": unit.shown,
    }  # fmt: skip
    return Drawn(
        unit.key, unit.story_id, texts, parts={unit.kind: (Part(id=unit.kind, text=""),)}, stratum=unit.kind,
        digest=digest([unit.shown, draft.record["story_text"]]),
    )  # fmt: skip


SOURCE = Source(
    "parts of drafts", {"run": ("katha",), "release": ("katha",), "file": ()},
    "a run of fabula build katha, a release of stories, or a file of records",
    ("stories", "limit", "count"), draw_parts,
)  # fmt: skip

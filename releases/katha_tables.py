"""The flat tables of released stories, derived from the record types."""

from collections.abc import Iterator
from pathlib import Path

from ..schemas.canonical import Json
from ..schemas.katha import EvidenceStatus, Provenance, Question, Scene, StoryRecord, Transition, Variant
from .layout import ANNOTATIONS, SPLIT_FILES, VARIANTS
from .tables import PlacedRow, Table, columns_of, read_lines, row_of

_STORY = {"story_id": ("stories", "story_id")}
_STORY_COLUMNS = (
    *columns_of(StoryRecord),
    *columns_of(EvidenceStatus, ("evidence_status",)),
    *columns_of(Provenance, ("provenance",)),
)
STORIES = Table("stories", "One row per story.", _STORY_COLUMNS, ("story_id",), {})
NESTED = (
    Table("scenes", "One row per scene.", columns_of(Scene), ("story_id", "scene_index"), _STORY),
    Table(
        "transitions", "One row per transition between adjacent scenes.", columns_of(Transition),
        ("story_id", "from_scene", "to_scene"), _STORY,
    ),
    Table(
        "questions", "One row per recoverability question.", columns_of(Question), ("question_id",), _STORY
    ),
)  # fmt: skip
"""Tables of the lists of a record that bear their names."""
VARIANT_TABLE = Table(
    "variants", "One row per contrastive variant.", columns_of(Variant), ("variant_id",),
    {"base_story_id": ("stories", "story_id")},
)  # fmt: skip
TABLES = (STORIES, *NESTED, VARIANT_TABLE)


def record_rows(record: Json) -> Iterator[tuple[Table, dict[str, Json]]]:
    """Yield the rows that a story record adds to the tables, with their table, in record order."""
    yield STORIES, row_of(STORIES, record)
    for table in NESTED:
        for part in record.get(table.name) or ():
            yield table, row_of(table, part)


def story_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the records and variants of a folder ask for."""
    splits: dict[str, str] = {}
    for record in read_lines(folder / ANNOTATIONS):
        split_file = SPLIT_FILES.get(str(record.get("split")), str(record.get("split")))
        splits[record["story_id"]] = split_file
        for table, row in record_rows(record):
            yield split_file, table, row
    for variant in read_lines(folder / VARIANTS):
        split_file = splits.get(str(variant.get("base_story_id")), "none")
        yield split_file, VARIANT_TABLE, row_of(VARIANT_TABLE, variant)

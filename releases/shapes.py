"""What tells releases of different kinds apart: their tables, JSONL files and splits."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..schemas.canonical import Json
from ..schemas.plain_files import open_plain, parse_json
from . import entity_tables, shot_release_tables, suite_tables
from .layout import (
    ANNOTATIONS,
    ENTITIES,
    EPISODES,
    EVENTS,
    KIND,
    MORAL_BALANCE,
    PRODUCERS,
    PROMPTS,
    RECORD_IDS,
    SHOT_SCRIPTS,
    SHOTS,
    SOURCE_MANIFEST,
    SPLIT_FILES,
    STATISTICS,
    SUITE,
    VARIANTS,
)
from .shot_tree import FOLDER, REFERENCES
from .tables import Table, record_rows, tables, variant_row

PlacedRow = tuple[str, Table, dict[str, Json]]
"""Name of the split's Parquet files, table, and row."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of releases of one kind.

    Attributes:
        kind: as ``release.json`` names it.
        tables: the flat tables, the default configuration first.
        record_ids: JSONL file -> the field that names a line; lines are sorted by it.
        described: the files that Croissant lists beside the Parquet tables.
        split_files: the splits that ``datasets`` sees, in order.
        rows: yields every row that the JSONL files of a folder ask for, in the order of the tables' files.
    """

    kind: str
    tables: tuple[Table, ...]
    record_ids: Mapping[str, str]
    described: tuple[str, ...]
    split_files: tuple[str, ...]
    rows: Callable[[Path], Iterator[PlacedRow]]


def _story_rows(folder: Path) -> Iterator[PlacedRow]:
    splits: dict[str, str] = {}
    for record in _lines(folder / ANNOTATIONS):
        split_file = SPLIT_FILES.get(str(record.get("split")), str(record.get("split")))
        splits[record["story_id"]] = split_file
        for table, row in record_rows(record):
            yield split_file, table, row
    for variant in _lines(folder / VARIANTS):
        table, row = variant_row(variant)
        yield splits.get(str(variant.get("base_story_id")), "none"), table, row


def _prompt_rows(folder: Path) -> Iterator[PlacedRow]:
    for record in _lines(folder / PROMPTS):
        for table, row in suite_tables.prompt_rows(record):
            yield suite_tables.SPLIT, table, row


def _episode_rows(folder: Path) -> Iterator[PlacedRow]:
    tiers = entity_tables.tiers_of(list(_lines(folder / EPISODES)))
    for record in _lines(folder / EPISODES):
        for table, row in entity_tables.episode_rows(record, tiers[record["episode_id"]]):
            yield entity_tables.SPLIT, table, row


def _script_rows(folder: Path) -> Iterator[PlacedRow]:
    images = list(_lines(folder / FOLDER / REFERENCES))
    counts = Counter(image["story_id"] for image in images)
    for record in _lines(folder / SHOT_SCRIPTS):
        for table, row in shot_release_tables.script_rows(record, counts[record["story_id"]]):
            yield shot_release_tables.SPLIT, table, row
    for image in images:
        table, row = shot_release_tables.reference_row(image)
        yield shot_release_tables.SPLIT, table, row


def _lines(path: Path) -> Iterator[dict[str, Json]]:
    with open_plain(path) as lines:
        for line in lines:
            yield parse_json(line)


KATHA = Shape(
    kind=KIND,
    tables=tables(),
    record_ids=RECORD_IDS,
    described=(ANNOTATIONS, VARIANTS, PRODUCERS, STATISTICS, MORAL_BALANCE, SOURCE_MANIFEST),
    split_files=tuple(SPLIT_FILES.values()),
    rows=_story_rows,
)
SUITES = Shape(
    kind=EVENTS,
    tables=suite_tables.TABLES,
    record_ids={PROMPTS: "unit"},
    described=(SUITE, PROMPTS, STATISTICS, SOURCE_MANIFEST),
    split_files=(suite_tables.SPLIT,),
    rows=_prompt_rows,
)
EPISODE_SETS = Shape(
    kind=ENTITIES,
    tables=entity_tables.TABLES,
    record_ids={EPISODES: "episode_id"},
    described=(EPISODES, STATISTICS, SOURCE_MANIFEST),
    split_files=(entity_tables.SPLIT,),
    rows=_episode_rows,
)
SHOT_SETS = Shape(
    kind=SHOTS,
    tables=shot_release_tables.TABLES,
    record_ids={SHOT_SCRIPTS: "story_id"},
    described=(SHOT_SCRIPTS, STATISTICS, SOURCE_MANIFEST),
    split_files=(shot_release_tables.SPLIT,),
    rows=_script_rows,
)
SHAPES = {shape.kind: shape for shape in (KATHA, SUITES, EPISODE_SETS, SHOT_SETS)}
"""Kind of a release -> its shape."""

"""What the public records of a release are made of, beyond its statistics.

The flat tables of released stories, derived from the record types.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...schemas.canonical import Json
from ...schemas.katha import EvidenceStatus, Provenance, Question, Scene, StoryRecord, Transition, Variant
from ...schemas.vocabulary import vocabulary
from ..layout import ANNOTATIONS, SPLIT_FILES, VARIANTS
from ..tables import PlacedRow, Table, columns_of, read_lines, row_of

if TYPE_CHECKING:
    from ...validators.statistics import StatisticsCollector

_INDEX = re.compile(r"\[\d+\]")
_RULES = re.compile(r"rules@\d+")
PARTS = ("scenes", "transitions", "questions")
SIZES = ("stories", *PARTS, "variants")


def producer_kind(producer: str) -> str:
    """Return the kind of a producer: ``rules@1``, ``by hand``, ``author``, ``edit`` or ``model``."""
    if _RULES.fullmatch(producer):
        return producer
    if producer == "author":
        return "author"
    named = {"hand": "by hand", "edit": "edit"}
    return named.get(producer.partition(":")[0], "model")


@dataclass(slots=True)
class Composition:
    """Counts over the public records; every count adds, so the order of the records does not matter.

    Attributes:
        by_split: split -> how many stories, scenes, transitions, questions and variants.
        scene_counts: number of scenes of a story -> stories that have so many.
        producers: field (list elements taken together) -> kind of producer -> stories.
        languages: language tag -> stories.
        collections: source collection -> its counts and references.
        checks: code of an automatic check -> passed, failed, not judged.
    """

    by_split: dict[str, Counter[str]] = field(default_factory=dict)
    scene_counts: Counter[int] = field(default_factory=Counter)
    producers: dict[str, Counter[str]] = field(default_factory=dict)
    languages: Counter[str] = field(default_factory=Counter)
    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: dict[str, Counter[str]] = field(default_factory=dict)

    def add_record(self, record: Json) -> None:
        """Count one record."""
        sizes = {"stories": 1, **{part: len(record[part]) for part in PARTS}}
        self.by_split.setdefault(record["split"], Counter()).update(sizes)
        self.scene_counts[len(record["scenes"])] += 1
        self.languages[record["language"]] += 1
        self._add_source(record["provenance"])

    def add_variants(self, split: str, count: int) -> None:
        """Count the variants of one story."""
        self.by_split.setdefault(split, Counter())["variants"] += count

    def add_producers(self, fields: Sequence[Json]) -> None:
        """Count who made the fields of one record; elements of a list count as one field."""
        made = {(_INDEX.sub("[*]", one["path"]), producer_kind(one["producer"])) for one in fields}
        for path, kind in made:
            self.producers.setdefault(path, Counter())[kind] += 1

    def add_checks(self, checks: Sequence[Json]) -> None:
        """Count the outcomes of the automatic checks of one record."""
        outcome = {True: "passed", False: "failed", None: "not_judged"}
        for check in checks:
            self.checks.setdefault(check["code"], Counter())[outcome[check["passed"]]] += 1

    @property
    def totals(self) -> dict[str, int]:
        """How many stories, scenes, transitions, questions and variants there are."""
        return {size: sum(counts[size] for counts in self.by_split.values()) for size in SIZES}

    def manifest(self) -> list[dict[str, Json]]:
        """Return the collections for the source manifest, sorted by name."""
        known = vocabulary("source_dataset").entries
        return [
            {
                "collection": name,
                "label": known.get(name, {}).get("label", name),
                "stories": source["stories"],
                "references": sorted(source["references"]),
                "stories_without_reference": source["without"],
                "rights_status": dict(sorted(source["rights"].items())),
            }
            for name, source in sorted(self.collections.items())
        ]

    def _add_source(self, provenance: Mapping[str, Json]) -> None:
        source = self.collections.setdefault(
            provenance["source_dataset"],
            {"stories": 0, "references": set(), "without": 0, "rights": Counter()},
        )
        source["stories"] += 1
        source["rights"][provenance["source_rights_status"]] += 1
        if provenance["source_reference"]:
            source["references"].add(provenance["source_reference"])
        else:
            source["without"] += 1


@dataclass(slots=True)
class Counted:
    """All that is counted over the public records, when they are packed and when they are verified.

    Attributes:
        statistics: the collector behind ``statistics.json``.
        composition: what the card and the manifest say beyond it.
        moral_labels: moral label -> stories.
    """

    statistics: "StatisticsCollector"
    composition: Composition = field(default_factory=Composition)
    moral_labels: Counter[str | None] = field(default_factory=Counter)

    def add_record(self, record: Json) -> None:
        """Count one record."""
        self.composition.add_record(record)
        self.composition.add_variants(record["split"], 0)
        self.moral_labels[record["moral_label"]] += 1
        self.statistics.add_record(record)

    def add_variant(self, split: str, variant: Json) -> None:
        """Count one variant of a story of a split."""
        self.composition.add_variants(split, 1)
        self.statistics.add_variant(variant)

    def add_producers(self, fields: Sequence[Json]) -> None:
        """Count who made the fields of one record."""
        self.composition.add_producers(fields)
        self.statistics.add_producers(fields)


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

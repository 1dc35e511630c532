"""What the public records of a release are made of, beyond its statistics.

The flat tables of released stories, derived from the record types.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.spec import MARK, is_stand_in
from ...schemas.canonical import Json
from ...schemas.katha import EvidenceStatus, Provenance, Question, Scene, StoryRecord, Transition, Variant
from ...schemas.paths import ANNOTATIONS, SPLIT_FILES, VARIANTS
from ...schemas.values import SourceDetails, state_of, vocabulary
from ...validators.katha.field_rules import names_judges
from ...validators.report import CODES, VOTES, is_simulated
from ..tables import PlacedRow, Table, columns_of, read_lines, row_of
from .reviews import VOTE_TABLE, vote_rows

if TYPE_CHECKING:
    from ...validators.statistics import StatisticsCollector

_INDEX = re.compile(r"\[\d+\]")
_RULES = re.compile(r"rules@\d+")
PARTS = ("scenes", "transitions", "questions")
SOURCES_KEY = "sources"
"""Where a collection of the source manifest says of its stories what is known of each."""
SIZES = ("stories", *PARTS, "variants")


_CHECKS = """
    answerable answers_cover drafted_language entities_preserved entity_continuity prompt_incomplete
    prompt_too_long record_rules scenes_fit
    narrative_adds_nothing narrative_complete narrative_drawable narrative_in_order
    model_answerable model_answers_equivalent model_consistent model_contrast_described
    model_contrast_minimal model_contrast_moral model_contrast_read model_label_fits model_renderable
    label_fits question_answerable question_answers_equivalent question_depends_on_transition
    question_distinct question_drawable question_not_guessable question_worth_asking scene_drawable
    scene_faithful transition_faithful variant_sound
    screen_external_knowledge screen_harmful_content screen_mainly_descriptive screen_near_duplicate
    screen_not_askable screen_not_contrastable screen_not_five_scenes screen_personal_data
    screen_rights_unresolved screen_several_moral_targets screen_too_few_transitions screen_too_long
    screen_wordplay
"""
CHECKS = frozenset((*_CHECKS.split(), *CODES))
"""The codes of all checks that stages make of drafts: a rule that a draft breaks is a failed check, too."""


def producer_kind(producer: str) -> str:
    """Return the kind: ``rules@1``, ``by hand``, ``author``, ``edit``, ``model`` or ``stand-in``.

    What a simulated reviewer corrected is of the kind ``simulated edit``.
    """
    if _RULES.fullmatch(producer):
        return producer
    if producer == "author":
        return "author"
    named = {"hand": "by hand", "edit": "edit", "author": "author"}
    by, _, who = producer.partition(":")
    machine = MARK if is_stand_in(producer) else "model"
    return "simulated edit" if by == "edit" and is_simulated(who) else named.get(by, machine)


@dataclass(slots=True)
class Composition:
    """Counts over the public records; every count adds, so the order of the records does not matter."""

    # split -> how many stories, scenes, transitions, questions and variants
    by_split: dict[str, Counter[str]] = field(default_factory=dict)
    # number of scenes of a story -> stories that have so many
    scene_counts: Counter[int] = field(default_factory=Counter)
    # field (list elements taken together) -> kind of producer -> stories
    producers: dict[str, Counter[str]] = field(default_factory=dict)
    languages: Counter[str] = field(default_factory=Counter)  # language tag -> stories
    # source collection -> its counts and references
    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    # code of a check -> passed, failed, not judged
    checks: dict[str, Counter[str]] = field(default_factory=dict)
    details: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    states: Counter[str] = field(default_factory=Counter)  # state -> records
    # whether checks say who judged, and which nobody made; those of earlier versions do not
    judged: bool = False
    # whether what a stand-in made counts as such; earlier versions called it a model's
    names_stand_ins: bool = True

    def add_record(self, record: Json) -> None:
        """Count one record."""
        sizes = {"stories": 1, **{part: len(record[part]) for part in PARTS}}
        self.by_split.setdefault(record["split"], Counter()).update(sizes)
        self.scene_counts[len(record["scenes"])] += 1
        self.languages[record["language"]] += 1
        self.states[state_of(record["validation_status"])] += 1
        self._add_source(record["story_id"], record["provenance"])

    def add_variants(self, split: str, count: int) -> None:
        """Count the variants of one story."""
        self.by_split.setdefault(split, Counter())["variants"] += count

    def add_producers(self, fields: Sequence[Json]) -> None:
        """Count who made the fields of one record; elements of a list count as one field."""
        made = {(_INDEX.sub("[*]", one["path"]), producer_kind(one["producer"])) for one in fields}
        for path, kind in made:
            known = "model" if kind == MARK and not self.names_stand_ins else kind
            self.producers.setdefault(path, Counter())[known] += 1

    def add_checks(self, bundle: Json) -> None:
        """Count the outcomes of the checks of one record; one of every element of a list counts for each."""
        outcome = {True: "passed", False: "failed", None: "not_judged"}
        self.judged = self.judged or names_judges(bundle["checks"])
        lists = {**bundle["record"], "variants": bundle["variants"]}
        for check in bundle["checks"]:
            name, every, _ = check["path"].removeprefix("$.").partition("[*]")
            row = self.checks.setdefault(check["code"], Counter())
            row[outcome[check["passed"]]] += len(lists[name]) if every else 1

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
                **({SOURCES_KEY: source["sources"]} if source["sources"] else {}),
            }
            for name, source in sorted(self.collections.items())
        ]

    def _add_source(self, story_id: str, provenance: Mapping[str, Json]) -> None:
        source = self.collections.setdefault(
            provenance["source_dataset"],
            {"stories": 0, "references": set(), "without": 0, "rights": Counter(), "sources": []},
        )
        source["stories"] += 1
        source["rights"][provenance["source_rights_status"]] += 1
        if provenance["source_reference"]:
            source["references"].add(provenance["source_reference"])
        else:
            source["without"] += 1
        if story_id in self.details:
            known = {"story_id": story_id, "source_reference": provenance["source_reference"]}
            source["sources"].append({**known, **self.details[story_id]})


@dataclass(slots=True)
class Counted:
    """All that is counted over the public records, when they are packed and when they are verified."""

    statistics: "StatisticsCollector"  # the collector behind ``statistics.json``
    # what the card and the manifest say beyond it
    composition: Composition = field(default_factory=Composition)
    moral_labels: Counter[str | None] = field(default_factory=Counter)  # moral label -> stories

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

    def add_producers(self, fields: Sequence[Json], story_id: str) -> None:
        """Count who made the fields of one record, which was added before."""
        self.composition.add_producers(fields)
        self.statistics.add_producers(fields, story_id)


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
VARIANT_QUESTIONS = Table(
    "variant_questions", "One row per question about a contrastive variant.", columns_of(Question),
    ("question_id",), {"story_id": ("variants", "variant_id")}, optional=True,
)  # fmt: skip
TABLES = (STORIES, *NESTED, VARIANT_TABLE, VARIANT_QUESTIONS, VOTE_TABLE)


def known_details(
    rows: Iterable[Mapping[str, Json]], key: str, ids: Collection[str]
) -> dict[str, dict[str, Json]]:
    """Return what rows say of where stories are from, of those with the given ids.

    The frame of a story is left out unless it is one of them: else it would name a hidden one.
    """
    details = {}
    for row in rows:
        if row.get(key) in ids:
            said = {name: row.get(name) for name in SourceDetails.model_fields}
            frame = said["frame"] if said["frame"] in ids else None
            details[str(row[key])] = {**SourceDetails(**{**said, "frame": frame}).as_json()}
    return details


def record_rows(record: Json) -> Iterator[tuple[Table, dict[str, Json]]]:
    """Yield the rows that a story record adds to the tables, with their table, in record order."""
    yield STORIES, row_of(STORIES, record)
    for table in NESTED:
        for part in record.get(table.name) or ():
            yield table, row_of(table, part)


def variant_rows(variant: Json) -> Iterator[tuple[Table, dict[str, Json]]]:
    """Yield the rows that a variant adds to the tables, with their table."""
    yield VARIANT_TABLE, row_of(VARIANT_TABLE, variant)
    for question in variant.get("questions") or ():
        yield VARIANT_QUESTIONS, row_of(VARIANT_QUESTIONS, question)


def story_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the records, variants and votes of a folder ask for."""
    splits: dict[str, str] = {}
    for record in read_lines(folder / ANNOTATIONS):
        split_file = SPLIT_FILES.get(str(record.get("split")), str(record.get("split")))
        splits[record["story_id"]] = split_file
        for table, row in record_rows(record):
            yield split_file, table, row
    for variant in read_lines(folder / VARIANTS):
        split_file = splits.get(str(variant.get("base_story_id")), "none")
        for table, row in variant_rows(variant):
            yield split_file, table, row
    for row in vote_rows(read_lines(folder / VOTES) if (folder / VOTES).is_file() else ()):
        yield splits.get(str(row["item"]), "none"), VOTE_TABLE, row

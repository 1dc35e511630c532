"""Which finished records a release takes, and why the others are left out."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.status import ItemReport
from ...errors import InputError, TargetError
from ...models.spec import MARK, is_stand_in
from ...schemas.canonical import (
    Json,
    canonical_bytes,
    digest,
    jsonl_lines,
    pretty_bytes,
    write_atomic,
    writing,
)
from ...schemas.katha import EvidenceStatus, Provenance, Question, Scene, StoryRecord, Transition, Variant
from ...schemas.paths import (
    ANNOTATIONS,
    FORMAT,
    HIDDEN_SPLIT,
    PRODUCERS,
    RELEASE,
    RETELLINGS,
    SOURCES,
    SPLIT_FILES,
    VARIANTS,
    VOTE_FILES,
    WITHDRAWN,
)
from ...schemas.plain_files import json_lines, read_json
from ...schemas.values import Issue, SourceDetails, state_of, vocabulary
from ...validators.katha.field_rules import names_judges
from ...validators.report import CODES, VOTES, is_simulated
from ..form import LeftOut
from ..loading import KIND, Release
from ..parquet import PlacedRow, Table, columns_of, read_lines, row_of
from .reviews import VOTE_TABLE, vote_rows

if TYPE_CHECKING:
    from ...validators.statistics import StatisticsCollector


@dataclass(slots=True)
class Selection:
    """The decision about every story of a run."""

    # id -> split of the stories that are packed in public
    public: dict[str, str] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # ids of the hidden-test stories that are packed
    # the others; ``left_out_hidden`` those of them that belong to the hidden split
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_hidden: list[LeftOut] = field(default_factory=list)
    # those that were taken out for good, with the reason given; ``withdrawn_hidden`` likewise
    withdrawn: list[LeftOut] = field(default_factory=list)
    withdrawn_hidden: list[LeftOut] = field(default_factory=list)
    # licence, None for none -> number of packed stories that state it
    licences: Counter[str | None] = field(default_factory=Counter)

    def add(self, record: Json, reason: LeftOut | None) -> None:
        """Take one finished record, or leave it out for a reason."""
        story_id, hidden = record["story_id"], record["split"] == HIDDEN_SPLIT
        if reason is not None:
            (self.left_out_hidden if hidden else self.left_out).append(reason)
            return
        self.licences[record["provenance"]["dataset_license"]] += 1
        if hidden:
            self.hidden.add(story_id)
        else:
            self.public[story_id] = record["split"]

    def add_unmade(self, items: Iterable[ItemReport], splits: Mapping[str, str]) -> None:
        """List the items that the run rejected or failed on.

        The run's own reasons stay in the run: they quote stories, and may quote a hidden one. Why a story was
        withdrawn is what a person said for everybody to read.

        ``splits``: story id -> the split that it was last given; a story that was hidden stays hidden.
        """
        for item in items:
            hidden = splits.get(item.id) == HIDDEN_SPLIT
            if item.code == WITHDRAWN:
                gone = LeftOut(item.id, WITHDRAWN, str(item.reason), item.stage, WITHDRAWN)
                (self.withdrawn_hidden if hidden else self.withdrawn).append(gone)
                continue
            entry = LeftOut(item.id, str(item.code), item.meaning, item.stage, item.status)
            (self.left_out_hidden if hidden else self.left_out).append(entry)
        for entries in (self.left_out, self.left_out_hidden, self.withdrawn, self.withdrawn_hidden):
            entries.sort()


def left_out_reason(record: Json, incomplete: str | None, *, rejected: bool = False) -> LeftOut | None:
    """Return why a finished record stays out of a release, or None."""
    story_id = record["story_id"]
    if rejected:
        return LeftOut(story_id, "reviewers", "its reviewers rejected it")
    if incomplete is not None:
        return LeftOut(story_id, "incomplete", incomplete)
    status = record["provenance"]["source_rights_status"]
    if status not in vocabulary("rights_status").having("releasable"):
        return LeftOut(story_id, "rights", f"its rights status is {status}, which does not allow release")
    return None


def left_out_files(written: Collection[str] = ()) -> list[dict[str, Json]]:
    """Return the files of Table 23 that a release has not got, and why."""
    reason = "no reviewer votes are on file; this file is written from votes only"
    if written:
        reason = "not asked for, or not backed by the reviews on file"
    return [{"name": name, "reason": reason} for name in VOTE_FILES if name not in written]


def require_records(selection: Selection, where: str) -> None:
    """Refuse a selection without a public record."""
    if selection.public:
        return
    gone = (*selection.withdrawn, *selection.withdrawn_hidden)
    entries = (*selection.left_out, *selection.left_out_hidden, *gone)
    counts = Counter(entry.why for entry in entries)
    ours = [entry for entry in entries if entry.status == "left_out"]  # the run's report explains the others
    examples = {entry.why: f", such as {entry.id}: {entry.reason}" for entry in reversed(ours)}
    if selection.hidden:
        counts["in the hidden test split"] = len(selection.hidden)
    reasons = [f"{count} {why}{examples.get(why, '')}" for why, count in sorted(counts.items())]
    raise InputError.one(
        where,
        what="no record can be released: none is complete, in a public split and with rights "
        "that allow it "
        f"({'; '.join(reasons) or 'the run holds no story'})",
        fix="complete the records (by hand, with edits, or with another planner) and build again;"
        " or pack them as the drafts that they are, with --allow-drafts",
    )


# -- What a run found out about stories beside their records: which retell one another, where they are from
#
# What names a hidden story goes to the folder of the maintainers alone, and is in no public file.

EVIDENCE = (RETELLINGS, SOURCES)
"""The files; a folder whose stories have none of it has none of them."""


def write_evidence(run: Path, folder: Path, hidden: Collection[str], public: Collection[str]) -> None:
    """Write what a run knows of its hidden stories."""
    for name, choose in ((RETELLINGS, _groups), (SOURCES, _sources)):
        path = run / name
        rows = list(choose(path, hidden, public)) if path.is_file() else []
        if rows:
            write_atomic(folder / name, jsonl_lines(rows))


def write_retellings(run: Path, folder: Path, public: Collection[str]) -> bool:
    """Write the groups of public stories that retell one another, each with the links between them.

    A group has the id of its first public story: that of the run may be a hidden one. Stories that only a
    hidden one links are in no group.

    Returned: whether there is a group; without one there is no file.
    """
    path = run / RETELLINGS
    rows = []
    for row in json_lines(path) if path.is_file() else ():
        links = [link for link in row["links"] if all(story in public for story in link["stories"])]
        stories = sorted({story for link in links for story in link["stories"]})
        if stories:
            rows.append({"id": stories[0], "stories": stories, "links": links})
    if rows:
        write_atomic(folder / RETELLINGS, jsonl_lines(sorted(rows, key=lambda row: str(row["id"]))))
    return bool(rows)


def check_retellings(folder: Path, public: Collection[str]) -> Iterator[Issue]:
    """Yield groups of a public folder that name a story which is not in it, or none.

    Whether a group is in one split, the rule ``split-retelling`` of records says.
    """
    for number, row in enumerate(json_lines(folder / RETELLINGS), 1):
        linked = sorted({story for link in row["links"] for story in link["stories"]})
        if row["stories"] != linked or len(linked) < 2:
            message = "the stories of the group are not those that its links name"
        elif strange := [story for story in row["stories"] if story not in public]:
            message = f"no public record has the id {strange[0]!r}"
        else:
            continue
        yield Issue(f"{RETELLINGS}:{number}", "$.stories", "retelling-stories", message, "pack the run again")


def _groups(path: Path, hidden: Collection[str], public: Collection[str]) -> Iterator[Json]:
    """Yield the groups that a hidden story is in, with the stories and links that are packed."""
    for row in json_lines(path):
        stories = [story for story in row["stories"] if story in hidden or story in public]
        if len(stories) > 1 and any(story in hidden for story in stories):
            links = [link for link in row["links"] if set(link["stories"]) <= set(stories)]
            yield {"id": row["id"], "stories": stories, "links": links}


def _sources(path: Path, hidden: Collection[str], public: Collection[str]) -> Iterator[Json]:
    """Yield where the hidden stories are from; a frame is named if it is packed."""
    for row in json_lines(path):
        if row["id"] in hidden:
            known = row["frame"] in hidden or row["frame"] in public
            yield {**row, "frame": row["frame"] if known else None}


def check_evidence(folder: Path) -> Iterator[Issue]:
    """Yield lines of evidence in a hidden folder that name no hidden story."""
    ids = {row["story_id"] for row in json_lines(folder / ANNOTATIONS)}
    for name in EVIDENCE:
        for number, row in enumerate(json_lines(folder / name) if (folder / name).is_file() else (), 1):
            named = {str(row.get("id")), *map(str, row.get("stories", ()))}
            if not named & ids:
                message = "the line is about no hidden story of this folder"
                yield Issue(f"{name}:{number}", "$", "hidden-evidence", message, "pack the run again")


# -- What the public records of a release are made of, beyond its statistics
#
# The flat tables of released stories, derived from the record types.

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
        sizes = {"stories": 1, **{part: len(record[part]) for part in PARTS}}
        self.by_split.setdefault(record["split"], Counter()).update(sizes)
        self.scene_counts[len(record["scenes"])] += 1
        self.languages[record["language"]] += 1
        self.states[state_of(record["validation_status"])] += 1
        self._add_source(record["story_id"], record["provenance"])

    def add_variants(self, split: str, count: int) -> None:
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
        self.composition.add_record(record)
        self.composition.add_variants(record["split"], 0)
        self.moral_labels[record["moral_label"]] += 1
        self.statistics.add_record(record)

    def add_variant(self, split: str, variant: Json) -> None:
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


# -- A release with other questions: the same stories, asked something else
#
# Evaluators that are compared ask their own questions about the outputs of a benchmark, and whoever selects
# outputs sees half of its questions. Both are releases for ``fabula evaluate stories``; no such folder is
# published.

DERIVED = "derived"
"""Key of ``release.json`` under which such a folder says what it was made from, and how."""


def write_derived(
    release: Release,
    out: Path,
    records: Iterable[StoryRecord],
    how: Mapping[str, Json],
    variants: Iterable[Variant] | None = None,
) -> Path:
    """Write records as a folder that evaluations read; one that holds the same already is left as it is.

    ``variants``: the contrastive variants; None for those of the release.
    """
    told = sorted(records, key=lambda record: record.story_id)
    kept = release.variants if variants is None else tuple(variants)
    files = {
        ANNOTATIONS: list(jsonl_lines(record.as_json() for record in told)),
        VARIANTS: list(jsonl_lines(variant.as_json() for variant in kept)),
        PRODUCERS: [],
    }
    about = {"from": str(release.info.get("version")), "how": dict(how)}
    content = {name: digest([line.decode() for line in lines]) for name, lines in files.items()}
    document = {
        "format": FORMAT, "kind": KIND, "version": release.version, DERIVED: about, "content": content,
    }  # fmt: skip
    mark = out / RELEASE
    if out.is_dir() and not mark.exists() and not all(_is_ours(path.name) for path in out.iterdir()):
        raise TargetError(str(out), what="the folder holds something else", fix="choose another folder")
    with writing(out):
        if mark.is_file() and canonical_bytes(read_json(mark)) == canonical_bytes(document):
            return out
        out.mkdir(parents=True, exist_ok=True)
        mark.unlink(missing_ok=True)
        for part in out.glob(".*.part"):
            part.unlink()
        for name, lines in files.items():
            write_atomic(out / name, lines)
        write_atomic(mark, [pretty_bytes(document)])
    return out


def _is_ours(name: str) -> bool:
    """Whether a file is of such a folder, or a part of one that was being written when its writer ended."""
    listed = (ANNOTATIONS, VARIANTS, PRODUCERS, RELEASE)
    return name in listed or (name.endswith(".part") and any(name.startswith(f".{own}.") for own in listed))

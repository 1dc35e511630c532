"""Validating a data set: every schema, every rule, every finding, in one pass over the stories."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from ...errors import UserError
from ...schemas.canonical import Json
from ...schemas.paths import ASSIGNMENTS, BALANCE, DRAFTS, IMPORTED, MORAL_BALANCE, RELEASE, STATISTICS
from ...schemas.values import Issue
from ..lines import check_schema, ignore
from ..report import MARK, VOTES, IssueBin, Opened, RuleSet, ValidationReport, is_simulated, issue, show
from ..statistics import BalanceTolerance, StatisticsCollector, hidden_counts, moral_balance
from ..view import Story
from .dataset import Dataset, open_dataset
from .field_rules import names_judges
from .review_tables import order_of, parts_of, read_vote, stray, tables_of_release
from .scene_rules import check_part
from .set_rules import (
    AnyStory,
    NearDuplicates,
    Orphans,
    ProducerLines,
    Retellings,
    Reviews,
    RunBalance,
    SetRule,
    SplitSizes,
    UniqueIds,
)

# -- Files beside the stories that must equal what is computed from them

MOST = 1_000_000
"""The largest tolerance that is taken from a file."""

_COUNTED = (
    "scenes",
    "transitions",
    "questions",
    "variants",
    "provenance",
    "evidence_status",
    "language",
    "split",
    "narrative_type",
    "moral_label",
    "validation_status",
)


def differences(expected: Json, found: Json, path: str = "$") -> Iterator[tuple[str, str]]:
    """Yield path and message for every place where a document differs from what was computed."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}, key=str):
            here = f"{path}.{key}"
            if key not in found:
                yield here, f"expected {show(expected[key])}, found nothing"
            elif key not in expected:
                yield here, f"expected nothing, found {show(found[key])}"
            else:
                yield from differences(expected[key], found[key], here)
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        yield path, f"expected {show(expected)}, found {show(found)}"


@dataclass(slots=True)
class _Computed(SetRule):
    """Common part of the rules about one document: missing, unreadable, different."""

    code: ClassVar[str] = ""
    name: ClassVar[str] = ""

    def finish(self) -> Iterator[Issue]:
        """Yield every difference between the document and recomputation."""
        problems: list[Issue] = []
        document = self.dataset.document(self.name, problems.append)
        yield from problems
        if document is None:
            if not problems and self._required():
                yield issue("missing-file", self.name, "$", "the file is missing")
            return
        if not self.complete:
            return
        for path, message in differences(self._expected(document), document):
            yield issue(self.code, self.name, path, message)

    def _required(self) -> bool:
        return self.dataset.kind == "release" and self.dataset.manifest.get("visibility") == "public"

    def _expected(self, document: Json) -> Json:
        raise NotImplementedError


@dataclass(slots=True)
class Statistics(_Computed):
    """``statistics.json`` equals recomputation; counts of hidden stories are taken from it."""

    reads: ClassVar[tuple[str, ...]] = _COUNTED
    code: ClassVar[str] = "statistics"
    name: ClassVar[str] = STATISTICS
    counts: StatisticsCollector = field(default_factory=StatisticsCollector)

    def add(self, story: Story) -> None:
        if self.dataset.kind == "release":
            self.counts.add_record(story.record)
            for variant in story.variants:
                self.counts.add_variant(variant.data)

    def _expected(self, document: Json) -> Json:
        for line in producer_lines(self.dataset):
            self.counts.add_producers(line["fields"], line["id"])
        return self.counts.result(
            hidden_counts(document),
            by_producer=DRAFTS in self.dataset.manifest,
            review=tables_of_release(self.dataset, document, self.counts.totals),
        )


def producer_lines(dataset: Dataset) -> Iterator[Mapping[str, Json]]:
    """Yield the sound lines of a release's producer file: who made the fields of each record."""
    for part in dataset.producers(ignore):
        if not any(finding.broken for finding in check_schema("katha_producers", part.data, part.where)):
            yield part.data


@dataclass(slots=True)
class MoralBalance(_Computed):
    """``moral_balance_requirements.json`` equals recomputation under the tolerance that it states."""

    reads: ClassVar[tuple[str, ...]] = ("moral_label",)
    code: ClassVar[str] = "moral-balance"
    name: ClassVar[str] = MORAL_BALANCE
    labels: Counter[str | None] = field(default_factory=Counter)

    def add(self, story: Story) -> None:
        self.labels[story.record["moral_label"]] += 1

    def _expected(self, document: Json) -> Json:
        stated = document.get("tolerance") if isinstance(document, dict) else None
        stated = stated if isinstance(stated, dict) else {}
        bounds = {
            name: float(stated[name])
            for name in BalanceTolerance.model_fields
            if type(stated.get(name)) in (int, float) and 0 <= stated[name] <= MOST
        }
        return moral_balance(self.labels.elements(), BalanceTolerance(**bounds))


@dataclass(slots=True)
class Balance(_Computed):
    """A run's ``balance.json`` equals recomputation; the strata are those of ``assignments.jsonl``."""

    reads: ClassVar[tuple[str, ...]] = (
        "story_id",
        "split",
        "narrative_type",
        "moral_label",
        "transitions",
        "questions",
    )
    code: ClassVar[str] = "balance"
    name: ClassVar[str] = BALANCE
    counts: RunBalance = field(default_factory=RunBalance)
    strata: dict[str, str] | None = None

    def add(self, story: Story) -> None:
        """Count a story under the stratum that it was assigned in."""
        if self.dataset.kind != "run":
            return
        if self.strata is None:
            lines = self.dataset.lines(ASSIGNMENTS, ignore)
            self.strata = {str(part.data.get("id")): str(part.data.get("stratum")) for part in lines}
        if story.id in self.strata:
            self.counts.add(story.record, self.strata[story.id])
        else:
            self.complete = False

    def _required(self) -> bool:
        return False

    def _expected(self, document: Json) -> Json:  # noqa: ARG002 - nothing is taken from what is checked
        return self.counts.document()


@dataclass(slots=True)
class Assignments(SetRule):
    """A run's ``assignments.jsonl`` has each story once, with its split and a stratum of its labels."""

    reads: ClassVar[tuple[str, ...]] = ("story_id", "split", "narrative_type", "moral_label")
    splits: dict[str, str] = field(default_factory=dict)
    strata: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, story: Story) -> None:
        """Note the split of a story, and the strata that it may be in."""
        if self.dataset.kind == "run":
            record = story.record
            kind, moral = record["narrative_type"] or "none", record["moral_label"] or "none"
            self.splits[story.id] = record["split"]
            self.strata[story.id] = (f"{kind}/{moral}", f"{kind}/*", "*")

    def finish(self) -> Iterator[Issue]:
        """Yield assignments that differ from the records, are missing, or are about no record."""
        if self.dataset.kind != "run" or not (self.dataset.path / ASSIGNMENTS).is_file():
            return
        problems: list[Issue] = []
        seen: set[str] = set()
        for part in self.dataset.lines(ASSIGNMENTS, problems.append):
            story_id, split = part.data.get("id"), part.data.get("split")
            if story_id in seen:
                yield issue("id-repeated", part.where, "$.id", f"{show(story_id)} is assigned twice")
            seen.add(str(story_id))
            wanted = self.splits.get(str(story_id))
            if wanted is None and self.complete:
                yield issue("orphan", part.where, "$.id", f"there is no story {show(story_id)}")
            elif wanted not in (None, split):
                message = f"the record is in {show(wanted)}, the assignment says {show(split)}"
                yield issue("assignment", part.where, "$.split", message)
            if wanted is not None and part.data.get("stratum") not in self.strata[str(story_id)]:
                allowed = " or ".join(self.strata[str(story_id)])
                message = f"expected {allowed}, found {show(part.data.get('stratum'))}"
                yield issue("assignment", part.where, "$.stratum", message)
        yield from problems
        for story_id in sorted(set(self.splits) - seen):
            yield issue("assignment", ASSIGNMENTS, "$", f"the story {show(story_id)} has no assignment")


@dataclass(slots=True)
class Manifest(SetRule):
    """The records bear a time of the run: of its creation, or of when their source was added to it.

    A release of hidden stories holds nothing else.
    """

    reads: ClassVar[tuple[str, ...]] = ("provenance.created_at", "split")
    times: list[Json] | None = None

    def _times(self) -> list[Json]:
        """Return the times that the manifest of a run or release allows, its own first."""
        if self.times is None:
            manifest = self.dataset.manifest
            run, sources = manifest.get("run"), manifest.get("sources")
            more = run.get("times") if isinstance(run, dict) else None
            added = (
                [one.get("added_at") for one in sources if isinstance(one, dict)]
                if isinstance(sources, list)
                else []
            )
            found = [manifest.get("created_at"), *added, *(more if isinstance(more, list) else ())]
            self.times = list(dict.fromkeys(time for time in found if isinstance(time, str)))
        return self.times

    def add(self, story: Story) -> None:
        """Compare a record with the manifest."""
        times = self._times()
        found = story.record["provenance"]["created_at"]
        if times and found not in times:
            message = f"the manifest says {' or '.join(map(show, times))}, the record {show(found)}"
            self.found.append(issue("manifest", story.where, "$.provenance.created_at", message))
        visibility, split = self.dataset.manifest.get("visibility"), story.record["split"]
        if (visibility == "public" and split == "hidden_test") or (
            visibility == "hidden" and split != "hidden_test"
        ):
            message = f"a story of {show(split)} is in the {visibility} folder"
            self.found.append(issue("manifest", story.where, "$.split", message))

    def finish(self) -> Iterator[Issue]:
        """Yield what add found, and what keeps the manifest itself from being read."""
        if self.dataset.kind == "release":  # a run is not opened without a sound one
            self.dataset.document(RELEASE, self.found.append)
        yield from self.found


# -- Rules about the votes of a release, and about the mark that it needs where programs reviewed it


@dataclass(slots=True)
class Votes(SetRule):
    """Every vote of a release is sound, about one of its stories, and stands there once."""

    reads: ClassVar[tuple[str, ...]] = ("story_id", "transitions", "questions", "variants")
    parts: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)

    def add(self, story: Story) -> None:
        """Note what of a story is voted on."""
        self.parts[story.id] = parts_of(story.record, [part.data for part in story.variants])

    def finish(self) -> Iterator[Issue]:
        if self.dataset.kind != "release":
            return
        problems: list[Issue] = []
        seen: set[tuple[str, ...]] = set()
        for part in self.dataset.lines(VOTES, problems.append):
            vote = read_vote(part, problems)
            if vote is None:
                continue
            if self.complete and (strange := stray(vote, self.parts)) is not None:
                problems.append(issue("vote", part.where, f"$.{strange[0]}", strange[1]))
            if order_of(vote) in seen:
                problems.append(issue("vote", part.where, "$", "the same reviewer said this before"))
            seen.add(order_of(vote))
        yield from problems


@dataclass(slots=True)
class Simulated(SetRule):
    """A release with reviews or votes of programs bears the mark of it."""

    def finish(self) -> Iterator[Issue]:
        """Yield the finding that the mark is missing."""
        if self.dataset.kind != "release" or self.dataset.manifest.get(MARK) is True:
            return
        for where, name, simulated in self._raters():
            if simulated:
                message = f"{name} at {where} is a program, and {MARK} is not true"
                yield issue("simulated-unmarked", RELEASE, f"$.{MARK}", message)
                return

    def _raters(self) -> Iterator[tuple[str, object, bool]]:
        """Yield where somebody reviewed, who, and whether it was a program."""
        for part in self.dataset.reviews(ignore):
            names = part.data.get("annotator_ids")
            for name in (*(names if isinstance(names, list) else ()), part.data.get("adjudicator_id")):
                yield part.where, name, is_simulated(name)
        for part in self.dataset.lines(VOTES, ignore):
            name = part.data.get("rater")
            yield part.where, name, is_simulated(name) or part.data.get("simulated") is True


# -- Validating a data set

PARTS = ("scenes", "transitions", "questions")
REPORT_EVERY = 100
SET_RULES: tuple[type[SetRule], ...] = (
    AnyStory, UniqueIds, Orphans, ProducerLines, Reviews, Votes, Simulated, NearDuplicates, Retellings,
    SplitSizes, Assignments, Statistics, MoralBalance, Balance, Manifest,
)  # fmt: skip
"""Every rule about a whole data set."""
DEFINED_HERE = frozenset({"hash", "scene-span", "split-retelling", "story-text"})
"""Codes of what Fabula defines and the paper leaves open: hashes, normal forms, spans, retellings."""

Progress = Callable[[int], None]


def validate(path: Path, progress: Progress | None = None) -> ValidationReport:
    """Check a run folder, a release folder or a JSONL file against every schema and rule.

    Stories are read one after the other; only small facts of each are kept.

    Returns:
        Every finding, and what was looked at.
    """
    opened = open_stories(path)
    checked = check_stories(opened.content, opened.found, progress)
    return opened.found.report(str(path), opened.kind, checked)


def open_stories(path: Path) -> Opened:
    """Open a run, a release or a JSONL file of stories, which are read while they are checked."""
    dataset = open_dataset(path)
    return Opened(path, dataset.kind, dataset)


def check_stories(dataset: Dataset, issues: IssueBin, progress: Progress | None = None) -> dict[str, int]:
    """Take what breaks a rule about stories; return what was looked at, and how many of it."""
    checked = Counter[str]()
    index = dataset.variant_index(issues.add)
    rules = [rule(dataset, index) for rule in SET_RULES]
    for story in dataset.stories(issues.add, index):
        checked_story, found = check_part(story, own=True)
        issues.extend(graded(one, dataset) for one in found)
        for rule in rules:
            rule.take(checked_story)
        _count(checked, story)
        if progress is not None and checked["stories"] % REPORT_EVERY == 0:
            progress(checked["stories"])
    for rule in rules:
        issues.extend(graded(one, dataset) for one in rule.finish())
        if isinstance(rule, Reviews):
            checked["reviews"] = rule.checked
        elif isinstance(rule, Orphans):
            checked["variants"] += rule.checked
    if progress is not None:
        progress(checked["stories"])
    names = ("stories", *PARTS, "variants", "reviews")
    return {name: checked[name] for name in names}


def graded(found: Issue, dataset: Dataset) -> Issue:
    """Return a finding as it counts in a data set.

    In a release an incomplete record is an error, unless the release says that it holds drafts; in an
    imported package, what only Fabula defines is a warning.
    """
    if dataset.kind == "release" and found.code == "incomplete" and not dataset.manifest.get(DRAFTS):
        return replace(found, level="error")
    if found.code in DEFINED_HERE and IMPORTED in dataset.manifest:
        return replace(found, level="warning")
    return found


def _count(checked: Counter[str], story: Story) -> None:
    checked["stories"] += 1
    checked["variants"] += len(story.variants)
    for name in PARTS:
        parts = story.record.get(name)
        checked[name] += len(parts) if isinstance(parts, list) else 0


def statistics_of(path: Path) -> dict[str, Json]:
    """Return the statistics of a data set; see :meth:`.statistics.StatisticsCollector.result`.

    Stories with schema errors, and lines that are nothing of a data set, are left out and counted under
    ``not_counted``.
    """
    dataset = open_dataset(path)
    counts, seen, left_out = StatisticsCollector(), 0, Counter[str]()
    by_producer = DRAFTS in dataset.manifest
    for story in dataset.stories(lambda issue: left_out.update([issue.code])):
        seen += 1
        if check_part(story, only=())[0].broken:
            left_out["broken"] += 1
            continue
        counts.add_record(story.record)
        counts.add_producers(story.bundle.get("producers", ()), story.record["story_id"])
        by_producer = by_producer or names_judges(story.bundle.get("checks", ()))
        for variant in story.variants:
            counts.add_variant(variant.data)
    if not seen and dataset.kind == "file":
        raise UserError(
            str(path), what="there are no records of stories in it",
            fix="give a file of records, a run or a release; fabula validate names the lines",
        )  # fmt: skip
    for line in producer_lines(dataset):
        counts.add_producers(line["fields"], line["id"])
    document = dataset.document(STATISTICS, ignore)
    review = tables_of_release(dataset, document, counts.totals)
    result = counts.result(hidden_counts(document), by_producer=by_producer, review=review)
    return {**result, "not_counted": left_out.total() - left_out["missing-file"]}


RULES = RuleSet(open_stories, check_stories, statistics_of)

"""Validating a data set: every schema, every rule, every finding, in one pass over the stories."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from ...errors import UserError
from ...schemas.canonical import Json
from ...schemas.layout import DRAFTS, IMPORTED, RELEASE, STATISTICS
from ...schemas.values import Issue
from ..lines import ignore
from ..record_rules import check_part
from ..report import MARK, VOTES, IssueBin, Opened, RuleSet, ValidationReport, is_simulated, issue
from ..statistics import StatisticsCollector, hidden_counts
from ..view import Story
from .dataset import Dataset, open_dataset
from .field_rules import names_judges
from .review_tables import tables_of_release
from .set_files import Assignments, Balance, Manifest, MoralBalance, Statistics, producer_lines
from .set_rules import (
    AnyStory,
    NearDuplicates,
    Orphans,
    ProducerLines,
    Retellings,
    Reviews,
    SetRule,
    SplitSizes,
    UniqueIds,
)
from .votes import order_of, parts_of, read_vote, stray

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
        """Yield what is wrong with the votes."""
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

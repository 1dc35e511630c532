"""Files beside the stories that must equal what is computed from them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ...schemas.canonical import Json
from ...schemas.layout import ASSIGNMENTS, BALANCE, DRAFTS, MORAL_BALANCE, RELEASE, STATISTICS
from ...schemas.values import Issue
from ..lines import check_schema, ignore
from ..report import issue, show
from ..statistics import BalanceTolerance, StatisticsCollector, hidden_counts, moral_balance
from ..view import Story
from .dataset import Dataset
from .review_tables import tables_of_release
from .set_rules import RunBalance, SetRule

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
        """Count a story."""
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
        """Count a label."""
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

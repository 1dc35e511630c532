"""Human review: what claims it must have it on file, and the two must agree (paper, A.7, Table 16)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from ..schemas.issue import Issue
from ..schemas.vocabulary import vocabulary
from .codes import issue, show
from .schema_check import check_schema
from .set_rules import SetRule
from .view import Part, Story
from .word_rules import REVIEW_WORDS, check_values

GOLD_FILES = ("human_gold_1k.jsonl", "strict_gold_400.jsonl")


@dataclass(frozen=True, slots=True)
class _Claim:
    where: str
    reviewed: bool
    moral_label: str | None
    resolution: str


@dataclass(slots=True)
class Reviews(SetRule):
    """Reviewed statuses have an accepting review summary; summaries and gold lines belong to stories."""

    reads: ClassVar[tuple[str, ...]] = ("story_id", "validation_status", "moral_label", "evidence_status")
    claims: dict[str, _Claim] = field(default_factory=dict)
    reviewed: set[str] = field(default_factory=set)
    checked: int = 0

    def add(self, story: Story) -> None:
        """Note what a record says about its review."""
        record = story.record
        claims = record["validation_status"] in vocabulary("validation_status").having("reviewed")
        resolution = record["evidence_status"]["resolution"]
        self.claims[story.id] = _Claim(story.where, claims, record["moral_label"], resolution)

    def finish(self) -> Iterator[Issue]:
        """Yield what is wrong with the reviews, and the claims that none of them proves."""
        problems: list[Issue] = []
        for part in self.dataset.reviews(problems.append):
            self.checked += 1
            yield from self._check_review(part)
        yield from problems
        for story_id, claim in self.claims.items():
            if claim.reviewed and story_id not in self.reviewed:
                message = "the record claims a review by people, but no accepting review is on file"
                yield issue("review-unproven", claim.where, "$.validation_status", message)
        yield from self._check_gold()

    def _check_review(self, part: Part) -> Iterator[Issue]:
        findings = list(check_schema("katha_human_validation", part.data, part.where))
        yield from (finding.issue for finding in findings)
        if any(finding.broken for finding in findings):
            return
        yield from check_values(part.where, "$", part.data, REVIEW_WORDS)
        yield from check_reviewers(part)
        story_id, claim = part.data["story_id"], self.claims.get(part.data["story_id"])
        if claim is None:
            if self.claims and self.complete:
                yield issue("orphan", part.where, "$.story_id", f"there is no story {show(story_id)}")
            return
        if story_id in self.reviewed:
            yield issue("id-repeated", part.where, "$.story_id", f"{show(story_id)} has a second review")
        if part.data["decision"] == "accepted" and part.data["protocol_complete"]:
            self.reviewed.add(story_id)
        yield from _compare(part, "final_moral_label", claim.moral_label)
        yield from _compare(part, "resolution", claim.resolution)

    def _check_gold(self) -> Iterator[Issue]:
        problems: list[Issue] = []
        for name in GOLD_FILES:
            for part in self.dataset.lines(name, problems.append):
                story_id = part.data.get("story_id")
                if not isinstance(story_id, str) or story_id not in self.reviewed:
                    message = f"{show(story_id)} has no accepting review on file"
                    yield issue("review-unproven", part.where, "$.story_id", message)
        yield from problems


def _compare(part: Part, name: str, wanted: str | None) -> Iterator[Issue]:
    if part.data[name] != wanted:
        message = f"the record has {show(wanted)}, the review {show(part.data[name])}"
        yield issue("review-differs", part.where, f"$.{name}", message)


def check_reviewers(part: Part) -> Iterator[Issue]:
    """Yield what is wrong with who reviewed a story: each once, and an adjudicator where one decided."""
    reviewers = part.data["annotator_ids"]
    if not reviewers or len(set(reviewers)) != len(reviewers):
        message = f"expected reviewers, each once, found {show(reviewers)}"
        yield issue("review-differs", part.where, "$.annotator_ids", message)
    adjudicated = part.data["resolution"] == "human_adjudicated"
    if adjudicated != (part.data["adjudicator_id"] is not None):
        resolution, person = part.data["resolution"], part.data["adjudicator_id"]
        message = f"resolution is {show(resolution)}, but adjudicator_id is {show(person)}"
        yield issue("review-differs", part.where, "$.adjudicator_id", message)

"""Summaries of human reviews (Table 16) that back what a release claims to be reviewed."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json
from ...schemas.values import Issue
from ...schemas.vocabulary import vocabulary
from ...validators.codes import issue, show
from ...validators.katha.field_rules import REVIEW_WORDS, check_values
from ...validators.katha.set_rules import check_reviewers
from ...validators.lines import read_objects
from ...validators.report import as_user_error
from ...validators.schema_check import check_schema
from ...validators.view import Part

GOLD_STATUS = "human_adjudicator_accepted"
"""What a review of a gold record says (paper, D.7)."""

GOLD_REVIEWERS = 3
"""Independent reviewers of a gold record (paper, Table 20)."""


@dataclass(frozen=True, slots=True)
class Reviews:
    """The reviews on file.

    Attributes:
        path: their file; None where there is none.
        rows: story id -> its review.
    """

    path: Path | None
    rows: Mapping[str, Mapping[str, Json]]

    def reviewed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record with the status that its review gives it; the same record where there is none."""
        row = self.rows.get(record["story_id"])
        if row is None or not is_accepting(row):
            return dict(record)
        evidence = {"human_evidence_accepted": True, "resolution": row["resolution"]}
        return {**record, "validation_status": row["validation_status"], "evidence_status": evidence}

    def rejects(self, story_id: str) -> bool:
        """Return whether the reviewers rejected a story."""
        return story_id in self.rows and self.rows[story_id]["decision"] == "rejected"

    def unbacked(self, story_id: str) -> str | None:
        """Return why a story may not be called gold, or None if it may."""
        row = self.rows.get(story_id)
        if row is None:
            return "no review on file"
        if not is_accepting(row):
            return f"decision {row['decision']}" if row["protocol_complete"] else "protocol not complete"
        if row["validation_status"] != GOLD_STATUS:
            return f"not accepted by an adjudicator ({row['validation_status']})"
        if len(row["annotator_ids"]) < GOLD_REVIEWERS:
            return f"fewer than {GOLD_REVIEWERS} reviewers"
        return None


NO_REVIEWS = Reviews(None, {})


def is_accepting(row: Mapping[str, Any]) -> bool:
    """Return whether a review accepted its story under the whole protocol."""
    reviewed = vocabulary("validation_status").having("reviewed")
    return bool(
        row["decision"] == "accepted" and row["protocol_complete"] and row["validation_status"] in reviewed
    )


def read_reviews(path: Path) -> Reviews:
    """Return the reviews of a file of JSON Lines in the form of Table 16.

    Raises:
        InputError: it cannot be read, or lines of it are no sound reviews, or a story has two.
    """
    problems: list[Issue] = []
    rows: dict[str, Mapping[str, Json]] = {}
    if not path.is_file():
        raise InputError([_missing(path)])
    for line in read_objects(path, path.name, problems.append):
        part = Part(f"{path.name}:{line.number}", line.data)
        issues = [finding.issue for finding in check_schema("katha_human_validation", part.data, part.where)]
        if not any(issue.level == "error" for issue in issues):
            issues += check_values(part.where, "$", part.data, REVIEW_WORDS)
            issues += check_reviewers(part)
            if part.data["story_id"] in rows:
                message = f"{show(part.data['story_id'])} has a second review"
                issues.append(issue("id-repeated", part.where, "$.story_id", message))
            rows[part.data["story_id"]] = part.data
        problems += issues
    errors = [as_user_error(problem) for problem in problems if problem.level == "error"]
    if errors:
        raise InputError(errors)
    return Reviews(path, rows)


def check_against(reviews: Reviews, labels: Mapping[str, str | None], known: Collection[str]) -> None:
    """Refuse reviews that are not about these records.

    Args:
        reviews: the reviews.
        labels: id of a finished record -> its moral label.
        known: ids of all stories that the run ever knew.

    Raises:
        InputError: a review names a story that nobody knows, or another moral label than the record has.
    """
    where = str(reviews.path)
    problems = []
    for story_id, row in reviews.rows.items():
        if story_id not in known:
            problems.append(
                UserError(
                    f"{where} {story_id}",
                    what="the run has no story with this id",
                    fix="remove the review, or pack the run that it belongs to",
                )
            )
        elif story_id in labels and is_accepting(row) and row["final_moral_label"] != labels[story_id]:
            problems.append(
                UserError(
                    f"{where} {story_id}",
                    what=f"the review says final_moral_label {row['final_moral_label']!r}, and the record "
                    f"says {labels[story_id]!r}",
                    fix="correct the record with `fabula edit`, or the review",
                )
            )
    if problems:
        raise InputError(problems)


def why_unbacked(reviews: Reviews, ids: Sequence[str]) -> str:
    """Return why stories may not be called gold, with counts."""
    counts = Counter(filter(None, map(reviews.unbacked, ids)))
    return ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))


def _missing(path: Path) -> UserError:
    return UserError(
        str(path),
        what="there is no file with this name",
        fix="give a file of review summaries (human_validation.jsonl, Table 16), or leave --reviews out",
    )

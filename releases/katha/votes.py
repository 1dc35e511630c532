"""Votes of reviewers: those of a review, whether they may be published, and how a release has them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, canonical_bytes
from ...schemas.plain_files import read_json, reason_of
from ...schemas.values import Issue
from ...validators.katha.votes import FIELDS, PASSED_OVER, Vote, order_of, read_vote, stray
from ...validators.lines import read_objects
from ...validators.report import as_user_error, issue
from ...validators.review_marks import is_simulated
from ...validators.view import Part
from ..tables import table

CONSENT = "consent.json"
"""What reviewers agreed to: ``publish_votes``, and how many of how many reviewers did."""
PUBLISHED, KEPT, NONE = "published", "kept", "none"
"""What became of the votes: they are in the release; only the tables are; there are none."""
VOTE_TABLE = table(
    "votes", "One row per vote of a reviewer on a public story.", "item kind criterion part rater",
    ("kind", "text", "review, or moral_label for the label that a reviewer gives."),
    ("rater", "text", "Pseudonym of the reviewer."),
    ("item", "text", "The story."),
    ("criterion", "text", "Unit of the record (Table 18), or confidence."),
    ("part", "text", "The transition (1-2), question or variant; null for the whole."),
    ("answer", "text", "The decision, in the words of the unit (Table 18)."),
    ("labels", "texts", "Moral labels that the reviewer gives, the likeliest first."),
    ("value", "integer", "How confident the reviewer was, 1 to 5."),
    ("confidence", "text", "How sure of this answer, if asked."),
    ("condition", "text", "What the reviewer saw; of moral labels."),
    ("seconds", "number", "How long it took."),
    ("at", "text", "When it was said, RFC 3339."),
    ("protocol", "text", "SHA-256 of the protocol of the review."),
    ("simulated", "boolean", "Whether a program said it and no person."),
    references={"item": ("stories", "story_id")}, optional=True,
)  # fmt: skip


def read_votes(path: Path) -> list[Vote]:
    """Return the votes of a file, in the order in which releases have them.

    Lines about attention checks, and repeated controls, are no votes on a record and are left out.
    """
    problems: list[Issue] = []
    votes: dict[tuple[str, ...], Vote] = {}
    for line in read_objects(path, path.name, problems.append):
        if line.data.get("kind") in PASSED_OVER or line.data.get("repeat"):
            continue
        where = f"{path.name}:{line.number}"
        vote = read_vote(Part(where, line.data), problems)
        if vote is not None:
            if order_of(vote) in votes:
                problems.append(issue("vote", where, "$", "the same reviewer said this before"))
            votes[order_of(vote)] = vote
    errors = [as_user_error(problem) for problem in problems if problem.level == "error"]
    if errors:
        raise InputError(errors)
    return [votes[order] for order in sorted(votes)]


def kept_back(folder: Path, votes: Iterable[Vote]) -> str | None:
    """Return why the votes of a review are not published; None where every reviewer agreed to it."""
    path = folder / CONSENT
    if not path.is_file():
        return f"there is no {CONSENT} in {folder}"
    try:
        document = read_json(path, follow=True)
    except (OSError, ValueError) as error:
        raise InputError([_no_consent(path, reason_of(error))]) from error
    agreed, reviewers = (_number(document, name) for name in ("consented", "reviewers"))
    publish = document.get("publish_votes") if isinstance(document, dict) else None
    if type(publish) is not bool or agreed is None or reviewers is None:
        raise InputError([_no_consent(path, "it lacks one of its three values, or has one of another kind")])
    raters = {vote["rater"] for vote in votes if not is_simulated(vote["rater"])}
    if not publish:
        return f"{path} says that they are not to be published"
    if agreed < reviewers:
        return f"{agreed} of {reviewers} reviewers agreed to it ({path})"
    if len(raters) > agreed:
        return f"there are votes of {len(raters)} reviewers, and {path} speaks of {reviewers}"
    return None


def _number(document: Json, name: str) -> int | None:
    value = document.get(name) if isinstance(document, dict) else None
    return value if type(value) is int and value >= 0 else None


def _no_consent(path: Path, fault: str) -> UserError:
    return UserError(
        str(path), what=f"this does not say what the reviewers agreed to: {fault}",
        fix='write it like {"publish_votes": true, "consented": 3, "reviewers": 3}, or export it again',
    )  # fmt: skip


def check_votes(
    votes: Iterable[Vote],
    parts: Mapping[str, Mapping[str, frozenset[str]]],
    known: Collection[str],
    where: Path,
) -> None:
    """Refuse votes that are not about these stories.

    ``parts``: id of a finished story -> what of it can be voted on.
    """
    strange = {
        f"{vote['item']}: {problem[1]}"
        for vote in votes
        if (vote["item"] in parts or vote["item"] not in known) and (problem := stray(vote, parts))
    }
    fix = "pack the run that was reviewed, or export the review again"
    if strange:
        raise InputError([UserError(str(where), what=what, fix=fix) for what in sorted(strange)])


def vote_lines(votes: Iterable[Vote], stories: Collection[str]) -> bytes:
    """Return the file of the votes on some stories."""
    chosen = sorted((vote for vote in votes if vote["item"] in stories), key=order_of)
    return b"".join(canonical_bytes(dict(vote)) + b"\n" for vote in chosen)


def vote_rows(votes: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Json]]:
    """Yield the row of the table of each vote."""
    for vote in votes:
        row = {name: vote.get(name) for name in FIELDS}
        seconds = row["seconds"]
        yield {**row, "seconds": float(seconds) if isinstance(seconds, int) else seconds}

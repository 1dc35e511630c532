"""What a review of records exports, made up: summaries, votes, consent and corrections of sample bundles."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..schemas.canonical import Json, canonical_bytes, pretty_bytes
from ..schemas.paths import REVIEWS
from ..validators.katha.review_tables import (
    CONFIDENCE,
    CONTENT,
    SEEN,
    UNITS,
    parts_of,
    seen_content,
    seen_sha256,
)
from ..validators.report import VOTES, is_simulated
from .katha_folders import write_jsonl

REVIEWERS = ("r1", "r2", "r3")
PROTOCOL = "5" * 64
TIME = "2025-06-01T00:00:00Z"
Choose = Callable[[str, str, str, str | None], str | None]
"""Rater, story, criterion and part -> the word that is chosen; None for the word that all is well."""


def seen_of(bundle: Mapping[str, Json]) -> str:
    """Return the hash of what reviewers of a bundle see."""
    record = bundle["record"]
    return seen_sha256(record["story_id"], seen_content(record, bundle["variants"]))


def summary_of(bundle: Mapping[str, Json], **changes: Json) -> dict[str, Json]:
    """Return the summary of a bundle that three reviewers accepted, with some fields changed."""
    record = bundle["record"]
    row = {
        "story_id": record["story_id"],
        "decision": "accepted",
        "validation_status": "pre_release_reviewed",
        "evidence_source": "human_review:sample@555555555555",
        "protocol_complete": True,
        "annotator_ids": list(REVIEWERS),
        "adjudicator_id": None,
        "resolution": "unanimous",
        "final_moral_label": record["moral_label"],
        "correction_flags": [],
        "signed_at": TIME,
        SEEN: seen_of(bundle),
        CONTENT: seen_of(bundle),
    }
    return {**row, **changes}


def votes_on(
    bundle: Mapping[str, Json], raters: Iterable[str] = REVIEWERS, choose: Choose = lambda *_: None
) -> list[dict[str, Json]]:
    """Return the votes of reviewers on a bundle, on every unit of it, as a review exports them."""
    record = bundle["record"]
    parts = parts_of(record, bundle["variants"])
    votes: list[dict[str, Json]] = []
    for rater in raters:
        common: dict[str, Json] = {
            "rater": rater,
            "item": record["story_id"],
            "at": TIME,
            "protocol": PROTOCOL,
            SEEN: seen_of(bundle),
        }
        common |= {"simulated": True} if is_simulated(rater) else {}
        for criterion, unit in UNITS.items():
            for part in sorted(parts[unit.parts]) if unit.parts else (None,):
                word = choose(rater, record["story_id"], criterion, part) or unit.words[0]
                vote = {**common, "kind": "review", "criterion": criterion, "answer": word, "seconds": 60.0}
                votes.append(vote if part is None else {**vote, "part": part})
        votes.append({**common, "kind": "review", "criterion": CONFIDENCE, "value": 4})
    return votes


def write_review(
    folder: Path,
    rows: Sequence[Json],
    votes: Sequence[Json] | None = None,
    consent: Json | None = None,
) -> Path:
    """Write a folder as a review exports it, and return it.

    ``votes``: None for a folder without any. ``consent``: what ``consent.json`` says; None for a folder
    without it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / REVIEWS, rows)
    if votes is not None:
        write_jsonl(folder / VOTES, votes)
    if consent is not None:
        (folder / "consent.json").write_bytes(pretty_bytes(consent))
    return folder


def agreed_by(count: int = 3, reviewers: int = 3, *, publish: bool = True) -> dict[str, Json]:
    """Return what ``consent.json`` says where so many of the reviewers agreed."""
    return {"publish_votes": publish, "consented": count, "reviewers": reviewers}


def write_edits(path: Path, rows: Iterable[Json], **header: Json) -> Path:
    """Write a file of corrections as a review exports it, and return it."""
    first = {"format": 1, "release": None, "run": None, "protocol": PROTOCOL, "simulated": False, **header}
    path.write_bytes(b"".join(canonical_bytes(row) + b"\n" for row in (first, *rows)))
    return path

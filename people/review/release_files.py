"""The files that a review of records leaves: what packing and correcting take of it.

``human_validation.jsonl`` (Table 16), ``votes.jsonl``, ``edits.jsonl``, ``cases.jsonl``, ``consent.json`` and
``stands_for.jsonl``: the content that each review stands for, so that packing can say what changed.
Votes of people who did not agree to it are in none of them; pseudonyms of all reviewers are in the first.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError, TargetError
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ...schemas.judgement import HumanRow
from ...schemas.layout import REVIEWS
from ...validators.katha.seen import SEEN
from ...validators.review_marks import STANDS_FOR
from .adjudication import cases
from .corrections import said_value
from .folder import Study
from .points import Point, is_final
from .protocol import SIMULATED
from .records import DRAWS, LABEL, Reviewed, consenting, reviewed_records, withdrawal_of
from .standing import Standing
from .task import place_of
from .votes import Counted, counted_votes, rows_of

VOTES, EDITS, CASES, CONSENT = "votes.jsonl", "edits.jsonl", "cases.jsonl", "consent.json"
FORMAT = 1
KEPT = ("rater", "item", "seconds", "group", "at", "protocol", "simulated", SEEN)
"""Columns that a line of the moral label has from the other lines of its vote."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes:
        records: how many reviews of records.
        decisions: decision -> how many records.
        votes: lines of votes.
        edits: corrections, withdrawals included.
        cases: things that somebody had to decide, and of these still open.
        open: see ``cases``.
        consented: how many of the reviewers agreed that their votes are published.
        reviewers: see ``consented``.
    """

    records: int
    decisions: Mapping[str, int]
    votes: int
    edits: int
    cases: int
    open: int
    consented: int
    reviewers: int


def write_review_files(study: Study, standing: Standing, folder: Path, *, withdraw: bool = False) -> Written:
    """Write the files of a review of records into a folder.

    Repetitions of controls, check items and training are left out, and votes that can still be changed.

    Args:
        study: a study whose task reviews records.
        standing: where it stands.
        folder: where; files of these names are replaced.
        withdraw: whether rejected records are withdrawn by the corrections.

    Raises:
        ConfigError: the study reviews no records. TargetError: the folder cannot be written.
    """
    if study.task.card.draws != DRAWS:
        raise ConfigError(
            study.protocol.name, what=f"the task {study.task.card.id} does not review records",
            fix="its votes are in votes.jsonl of fabula review export",
        )  # fmt: skip
    records = reviewed_records(study, standing)
    willing = consenting(standing)
    counted = [each for each in counted_votes(study, standing) if _is_about_a_record(each)]
    reviewers = sorted({each.person.id for each in counted})
    votes = [row for each in counted if each.person.id in willing for row in vote_rows(study, each)]
    listed = [point for point in cases(study, standing, everything=True)]
    edits = list(_edits(records, withdraw=withdraw))
    agreed = [name for name in reviewers if name in willing]
    consent = {
        "publish_votes": bool(reviewers) and agreed == reviewers,
        "consented": len(agreed),
        "reviewers": len(reviewers),
    }
    evidence = evidence_source(study)
    rows = [each.as_validation(evidence).as_json() for each in records]
    files: dict[str, Iterable[bytes]] = {
        REVIEWS: jsonl_lines(rows),
        VOTES: jsonl_lines(row.model_dump(mode="json", exclude_defaults=True) for row in votes),
        EDITS: jsonl_lines([edits_header(study, reviewers), *edits]),
        CASES: jsonl_lines(_case(point, willing) for point in listed),
        CONSENT: [pretty_bytes(consent)],
        STANDS_FOR: jsonl_lines(
            {"story_id": each.story_id, "content": each.content}
            for each in records
            if each.content is not None
        ),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomic(folder / name, content)
    except OSError as error:
        what = f"the folder cannot be written: {error.strerror or error}"
        raise TargetError(str(folder), what=what, fix="choose another folder, or free the disk") from error
    decisions = Counter(each.decision for each in records)
    return Written(
        len(records), dict(sorted(decisions.items())), len(votes), len(edits), len(listed),
        sum(point.is_open for point in listed), len(agreed), len(reviewers),
    )  # fmt: skip


def evidence_source(study: Study) -> str:
    """Return what the summary of a review names as its evidence: the protocol in force at the end."""
    return f"human_review:{study.protocol.name}@{study.protocol.sha256[:12]}"


def edits_header(study: Study, reviewers: Collection[str]) -> dict[str, Json]:
    """Return the first line of a file of corrections: what was reviewed, and under which protocol."""
    source = study.protocol.source
    programs = any(name.startswith(SIMULATED) for name in reviewers)
    return {
        "format": FORMAT, "release": source.get("release_sha256"), "run": source.get("run"),
        "protocol": study.protocol.sha256, "simulated": study.protocol.simulated or programs,
    }  # fmt: skip


def _edits(records: Iterable[Reviewed], *, withdraw: bool) -> Iterator[Json]:
    for record in records:
        yield from (edit.as_json() for edit in record.edits)
        if withdraw and record.decision == "rejected":
            yield withdrawal_of(record).as_json()


def _is_about_a_record(counted: Counted) -> bool:
    return not counted.repeat and not counted.check and is_final(counted.person, counted.vote)


def vote_rows(study: Study, counted: Counted) -> Iterator[HumanRow]:
    """Yield the lines of a vote on a record, and one of the moral label that it says the story has."""
    rows = rows_of(study, counted)
    yield from rows
    question = next((each for each in study.task.card.questions if each.name == LABEL), None)
    item, answers = study.items[counted.item], counted.vote.answers
    if question is None or place_of(LABEL) not in answers:
        return
    is_label, label = said_value(study.task, item, question, "", answers)
    if is_label and isinstance(label, str) and rows:
        kept = rows[0].model_dump(include=set(KEPT))
        yield HumanRow(kind="moral_label", condition="text", labels=(label,), **kept)


def _case(point: Point, willing: frozenset[str]) -> dict[str, Json]:
    """Return a case as plain JSON, with the votes of those who agreed to it, and the number of the others."""
    kept = tuple(each for each in point.said if each.reviewer in willing)
    shown = point.as_json()
    return {**shown, "votes": [each.as_json() for each in kept], "withheld": len(point.said) - len(kept)}

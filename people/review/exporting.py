"""What comes out of a study as files: votes, results, what packing and correcting take, what is published.

Of a review of records: ``human_validation.jsonl`` (Table 16), ``votes.jsonl``, ``edits.jsonl``,
``cases.jsonl``, ``consent.json`` and ``stands_for.jsonl``: the content that each review stands for, so that
packing can say what changed. Votes of people who did not agree to it are in none of them; pseudonyms of all
reviewers are in the first.

For publication there are the votes of those who agreed to it, under new names, with the day in place of the
time. The names are not those that the study worked with, and are made with its secret: the same person has
the same name in everything that one study publishes, and another name in another study. What people wrote
freely is pointed out, since nobody but a person can tell whether it says who they are.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ConfigError, TargetError
from ...schemas.canonical import Json, canonical_bytes, jsonl_lines, new_folder, pretty_bytes, write_atomic
from ...schemas.judgement import HumanRow
from ...schemas.layout import REVIEWS
from ...schemas.text import quoted, tallied
from ...validators.careless import CARELESS
from ...validators.katha.votes import SEEN
from ...validators.report import STANDS_FOR
from .corrections import said_value
from .folder import Study
from .items import opaque
from .points import Point, cases, is_final
from .protocol import SIMULATED, versions
from .records import DRAWS, LABEL, Reviewed, consenting, reviewed_records, withdrawal_of
from .results import results
from .standing import Standing
from .status import care, care_lines
from .task import UNCLEAR, place_of
from .votes import Counted, counted_votes, human_rows, rows_of

# -- a review of records

VOTES, EDITS, CASES, CONSENT = "votes.jsonl", "edits.jsonl", "cases.jsonl", "consent.json"
FORMAT = 1
KEPT = ("rater", "item", "seconds", "group", "at", "protocol", "simulated", SEEN)
"""Columns that a line of the moral label has from the other lines of its vote."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    records: int  # how many reviews of records
    decisions: Mapping[str, int]  # decision -> how many records
    votes: int  # lines of votes
    edits: int  # corrections, withdrawals included
    cases: int  # things that somebody had to decide, and of these still open
    open: int  # see ``cases``
    consented: int  # how many of the reviewers agreed that their votes are published
    reviewers: int  # see ``consented``


def write_review_files(study: Study, standing: Standing, folder: Path, *, withdraw: bool = False) -> Written:
    """Write the files of a review of records into a folder.

    Repetitions of controls, check items and training are left out, and votes that can still be changed.
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


# -- any study

RESULTS, PROTOCOLS = "results.json", "protocols.json"


@dataclass(frozen=True)
class ExportedFiles:
    """What was written."""

    folder: Path  # where
    counts: Mapping[str, int] = field(default_factory=dict)  # what -> how many
    next: tuple[str, ...] = ()  # what to do with it
    care: tuple[str, ...] = ()  # what a reader of the votes must know first

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"folder": str(self.folder), **self.counts, "care": list(self.care), "next": list(self.next)}

    def lines(self) -> Iterator[str]:
        """Return it for people."""
        yield f"written to {self.folder}: " + ", ".join(
            f"{count:,} {name}" for name, count in self.counts.items()
        )
        yield from self.care
        yield from (f"next: {line}" for line in self.next)


def export_files(study: Study, folder: Path, *, withdraw: bool = False) -> ExportedFiles:
    """Write what came out of a study into a new folder.

    ``folder``: a new or empty folder.
    """
    standing = study.standing()
    with new_folder(folder):
        document = results(study, standing)
        careful = care(study, standing)
        write_atomic(folder / CARELESS, [pretty_bytes(careful)])
        signs = tuple(care_lines(careful))
        write_atomic(folder / RESULTS, [pretty_bytes(document)])
        write_atomic(folder / PROTOCOLS, [pretty_bytes([each.as_json() for each in versions(study.folder)])])
        if study.task.card.draws == DRAWS:
            written = write_review_files(study, standing, folder, withdraw=withdraw)
            counts = {
                "records": written.records, "votes": written.votes, "edits": written.edits,
                "open_cases": written.open,
            }  # fmt: skip
            edit = f"fabula edit RUN --from {quoted(folder / 'edits.jsonl')}"
            pack = f"fabula release pack RUN --version X --reviews {quoted(folder)}"
            pack += " --accept-careless" if careful["people"] else ""
            return ExportedFiles(folder, counts, (edit, pack), signs)
        rows = human_rows(study, standing)
        write_atomic(folder / VOTES, (canonical_bytes(row.as_json()) + b"\n" for row in rows))
    return ExportedFiles(
        folder,
        {"lines": len(rows)},
        (f"fabula calibrate EVALUATION --human {quoted(folder / VOTES)} --save",),
        signs,
    )


# -- publication

FLAGS, ABOUT = "to_read.jsonl", "published.json"
TELLING = (
    (re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+"), "it looks like an address of e-mail"),
    (re.compile(r"https?://|www\.", re.IGNORECASE), "it has an address of the web"),
    (re.compile(r"(?:\d[\s().-]?){7,}"), "it has a long number"),
    (re.compile(r"(?<!\w)@\w{3,}"), "it has the name of an account"),
)
"""What a text has that may say who wrote it -> how that is called."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that somebody should read before it is published."""

    line: int  # of the votes, from 1
    text: str  # what was written
    why: str  # why it should be read

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {"line": self.line, "text": self.text, "why": self.why}


@dataclass(frozen=True)
class Published:
    """Votes for publication."""

    rows: tuple[HumanRow, ...]  # the lines, in an order that says nothing of when each came
    flags: tuple[Flag, ...]  # what should be read before
    people: tuple[int, int]  # how many people the lines are of, and how many gave votes
    # how many votes of items the lines are of, and how many there are that can no longer change
    votes: tuple[int, int]
    simulated: bool = False  # whether programs gave votes
    study: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Json]:
        """Return what it is, without the lines, as plain JSON."""
        return {
            "study": self.study, "lines": len(self.rows), "people_who_agreed": self.people[0],
            "people": self.people[1], "votes_published": self.votes[0], "votes": self.votes[1],
            "to_read": len(self.flags), "simulated": self.simulated,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Return what it is, for people."""
        yield f"lines: {len(self.rows):,}, of {self.people[0]} of {self.people[1]} people who agreed to it"
        if self.flags:
            texts = tallied(len(self.flags), "texts")
            yield f"read before you publish: {texts} that people wrote, in {FLAGS}"
        if self.simulated:
            yield "programs gave votes: every line of theirs says so"


def public_name(study: Study, reviewer: str) -> str:
    """Return the name of a reviewer in what a study publishes: always the same, and not their pseudonym."""
    begin = SIMULATED if reviewer.startswith(SIMULATED) else ""
    return begin + opaque(study.secret, "public", reviewer, prefix="p")[:13]


def publish(study: Study, standing: Standing) -> Published:
    """Return the votes of a study that may be published.

    These are votes that count and can no longer be changed, of those who agreed to their publication; of
    training there are none.
    """
    willing = consenting(standing)
    counted = [each for each in counted_votes(study, standing) if is_final(each.person, each.vote)]
    kept = [pair for each in counted if each.person.id in willing for pair in _rows(study, each)]
    kept.sort(key=lambda pair: pair[0].model_dump_json())
    given = {each.person.id for each in counted}
    return Published(
        tuple(row for row, _ in kept),
        tuple(Flag(number, text, _why(text)) for number, (_, text) in enumerate(kept, 1) if text is not None),
        (len(given & willing), len(given)),
        (sum(each.person.id in willing for each in counted), len(counted)),
        any(row.simulated for row, _ in kept),
        study.protocol.name,
    )


def _rows(study: Study, counted: Counted) -> Iterator[tuple[HumanRow, str | None]]:
    """Yield the lines of a vote, each with the text that somebody wrote in it."""
    written = {answer for answer in _texts_of(study, counted) if answer != UNCLEAR}
    changes = {
        "rater": public_name(study, counted.person.id),
        "at": f"{counted.vote.event.at[:10]}T00:00:00Z",
        SEEN: None,  # of a hidden story it would let anybody try what it says
    }
    for row in rows_of(study, counted):
        yield row.model_copy(update=changes), row.answer if row.answer in written else None


def _texts_of(study: Study, counted: Counted) -> Iterator[Json]:
    """Yield what somebody wrote freely in a vote."""
    names = {question.name for question in study.task.card.questions if question.type == "text"}
    yield from (answer for name, answer in counted.vote.answers.items() if name.partition("/")[0] in names)


def _why(text: str) -> str:
    return next((why for pattern, why in TELLING if pattern.search(text)), "somebody wrote it freely")


def write_published(study: Study, folder: Path) -> Published:
    """Write the votes of a study that may be published into a new folder, with what should be read before."""
    published = publish(study, study.standing())
    rows = (row.model_dump(mode="json", exclude_defaults=True) for row in published.rows)
    with new_folder(folder):
        write_atomic(folder / VOTES, jsonl_lines(rows))
        write_atomic(folder / FLAGS, jsonl_lines(flag.as_json() for flag in published.flags))
        write_atomic(folder / ABOUT, [pretty_bytes(published.as_json())])
    return published

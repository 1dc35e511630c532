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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ...builders.edit_files import ItemDraft, with_corrections
from ...builders.katha.apply_edits import EDITING
from ...errors import ConfigError
from ...schemas.canonical import (
    Json,
    canonical_bytes,
    jsonl_lines,
    new_folder,
    pretty_bytes,
    write_atomic,
    writing,
)
from ...schemas.judgement import HumanRow
from ...schemas.katha import HumanValidation
from ...schemas.paths import REVIEWS
from ...schemas.text import quoted, tallied
from ...schemas.values import Edit
from ...validators.careless import CARELESS
from ...validators.katha.review_tables import SEEN, seen_content, seen_sha256
from ...validators.report import STANDS_FOR
from .flow import Counted, counted_votes, human_rows, rows_of
from .folder import Study
from .items import Item, Part, Stands, Value, opaque, said_value
from .points import Point, cases, is_final, points
from .protocol import SIMULATED, Protocol, versions
from .results import results
from .standing import Event, Standing
from .status import care, care_lines
from .task import UNCLEAR, place_of

# -- What a review of records came to: whether each is accepted, what is corrected, who decided. Pure
#
# Question: which records enter the reviewed release, with which corrections and flags?
# Formula: every unit of the form is decided by its votes or by an adjudicator (:mod:`.verdicts`); a record is
#     rejected where its scenes are unusable, it is unsafe, or its rights are uncertain; it needs correction
#     where something is open, or is to be corrected and nobody said how; else it is accepted.
# Source: KathaTrace, Tables 16, 18 and 19, sections A.7 and A.11.
# Departures: ``unanimous`` stands for every record that no adjudicator decided about, since A.7 knows two
# words only; where the protocol lets a majority decide, flags ``majority:<unit>`` name what was not
# unanimous. A record whose review is not finished has the resolution ``not_reviewed`` and is never
# accepted. An invalid question cannot be taken out of a record, whose number of parts stays: a flag says
# so. An invalid variant
#     is set inactive.
# Example: two say ``correct`` of the moral label and one ``corrected``, and an adjudicator decides
#     ``corrected`` with ``kindness``: accepted, human_adjudicated, final label kindness, flag
#     ``corrected:moral_label``.

DRAWS = "records"
"""The source of a task that reviews records."""
LABEL, CATEGORY, VARIANT = "moral_label", "narrative_category", "contrastive_variant"
LABEL_PATH, CATEGORY_PATH, ACTIVE = "$.moral_label", "$.narrative_type", ".has_variant"
REJECTING = {"scene_sequence": ("unusable",), "safety": ("unsafe", "rights_uncertain")}
"""Question -> answers after which a record is rejected and nothing of it is repaired (Table 19)."""
INVALID = "invalid"
WHO_LENGTH, WHY_LENGTH = 100, 500
"""Characters of who corrects something, and why; a release publishes both."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What the review of one record came to."""

    story_id: str  # the record
    item: str  # its opaque id
    digest: str  # hash of the record that was read
    reviewers: tuple[str, ...]  # pseudonyms of all whose votes count
    adjudicators: tuple[str, ...]  # of all who decided something of it
    decision: str  # ``accepted``, ``needs_correction`` or ``rejected``
    resolution: str  # ``unanimous``, ``human_adjudicated``, or ``not_reviewed`` while it is not finished
    complete: bool  # whether as many people as planned reviewed it and all cases are decided
    label: str | None  # moral label after the review; null where the record has none
    flags: tuple[str, ...]  # what was corrected, is ambiguous or invalid
    edits: tuple[Edit, ...]  # the corrections, labels first
    signed_at: str  # time of the last vote or decision that counts
    points: tuple[Point, ...]  # all that was asked about it
    # hash of what was shown; None where a vote or decision that counts does not name it
    seen: str | None = None
    # what the review stands for: what was shown, with the corrections; None as ``seen``
    content: Mapping[str, Json] | None = None

    def as_validation(self, evidence: str) -> HumanValidation:
        """Return it as a line of ``human_validation.jsonl`` (Table 16); gold is a matter of packing (D.7)."""
        status = "human_review_complete" if self.complete else "review_needed"
        return HumanValidation(
            story_id=self.story_id, decision=self.decision, evidence_source=evidence,
            validation_status="pre_release_reviewed" if self.decision == "accepted" else status,
            protocol_complete=self.complete, annotator_ids=self.reviewers, resolution=self.resolution,
            adjudicator_id=self.adjudicators[-1] if self.resolution == "human_adjudicated" else None,
            final_moral_label=self.label or "", correction_flags=self.flags, signed_at=self.signed_at,
            seen_sha256=self.seen,
            content_sha256=None if self.content is None else seen_sha256(self.story_id, self.content),
        )  # fmt: skip


def reviewed_records(study: Study, standing: Standing) -> list[Reviewed]:
    """Return what the review of every record came to that has a final vote, by story.

    The notes of those who did not agree that their votes are published are not quoted as reasons.
    """
    by_item: dict[str, list[Point]] = {}
    mute = frozenset(standing.reviewers) - consenting(standing)
    for point in points(study, standing):
        by_item.setdefault(point.item, []).append(point.without_notes(mute))
    votes: dict[str, dict[str, Event]] = {}
    for counted in counted_votes(study, standing, timed=False):
        if not counted.repeat and not counted.check:
            votes.setdefault(counted.item, {})[counted.person.id] = counted.vote.event
    return [
        reviewed(study.protocol, study.items[item], study.stands[item], asked, votes[item])
        for item, asked in by_item.items()
    ]


def consenting(standing: Standing) -> frozenset[str]:
    """Return who agreed that their votes are published."""
    return frozenset(
        name for name, person in standing.reviewers.items() if (person.agreed or {}).get("publish") is True
    )


def reviewed(
    protocol: Protocol, item: Item, stands: Stands, asked: Sequence[Point], votes: Mapping[str, Event]
) -> Reviewed:
    """Return what the review of one record came to.

    ``votes``: reviewer -> what brought their vote.
    """
    reviewers = sorted({each.reviewer for point in asked for each in point.said})
    decided = [point.decision for point in asked if point.decision is not None]
    decided.sort(key=lambda decision: _when(decision.at))
    complete = len(reviewers) >= protocol.dealt.raters and not any(point.is_open for point in asked)
    rejected = any(point.answer in REJECTING.get(point.question.name, ()) for point in asked)
    edits = [] if rejected else list(_edits_of(item, asked))
    flags = list(_flags(asked, edits))
    stuck = any(flag.startswith("uncorrected:") for flag in flags)
    decision = "rejected" if rejected else "accepted" if complete and not stuck else "needs_correction"
    label = {edit.path: edit.new for edit in edits}.get(LABEL_PATH, _shown(item, LABEL_PATH))
    named = {*(votes[name].body.get(SEEN) for name in reviewers), *(each.seen for each in decided)}
    seen = stands.seen if named == {stands.seen} else None
    return Reviewed(
        story_id=asked[0].about, item=item.item, digest=stands.digest, reviewers=tuple(reviewers),
        adjudicators=tuple(dict.fromkeys(each.who for each in decided)),
        decision=decision,
        resolution="not_reviewed" if not complete else "human_adjudicated" if decided else "unanimous",
        complete=complete, label=label if label is None else str(label), flags=tuple(flags),
        edits=tuple(edits),
        signed_at=max([*(votes[name].at for name in reviewers), *(each.at for each in decided)], key=_when),
        points=tuple(asked), seen=seen, content=None if seen is None else _content(stands, edits),
    )  # fmt: skip


def _content(stands: Stands, edits: Sequence[Edit]) -> Mapping[str, Json] | None:
    """Return what a record shows once the corrections stand in it; None where they cannot be applied."""
    draft = stands.record["draft"]
    try:
        draft = with_corrections(ItemDraft(EDITING, {"story": stands.record["story"]}, None), draft, edits)
    except (ValueError, LookupError):
        return None
    return seen_content(draft, draft["variants"])


def _when(time: str) -> datetime:
    return datetime.fromisoformat(time)


def _shown(item: Item, path: str) -> Json:
    return next((value.value for value in item.values if value.path == path), None)


# -- corrections


def _edits_of(item: Item, asked: Iterable[Point]) -> Iterator[Edit]:
    """Yield the corrections of a record, those of its labels first: its parts follow a label."""
    listed = [edit for point in asked for edit in _edits_at(point, _values(item, point))]
    yield from sorted(listed, key=lambda edit: edit.path not in (LABEL_PATH, CATEGORY_PATH))


def _values(item: Item, point: Point) -> dict[str, Value]:
    """Return path -> value, of what may be corrected of a point's part or of the whole."""
    parts: Iterable[Part] = item.parts.get(point.question.each or "", ())
    held = [value for part in parts if part.id == point.part for value in part.values]
    return {value.path: value for value in (held if point.part else item.values)}


def _edits_at(point: Point, values: Mapping[str, Value]) -> Iterator[Edit]:
    changes = dict(point.edits)
    if point.question.name == VARIANT and point.answer == INVALID:
        changes |= {path: False for path in values if path.endswith(ACTIVE)}
    for path, new in sorted(changes.items()):
        yield Edit(
            id=point.about, path=path, old=values[path].value, new=new, who=who_of(point), why=why_of(point)
        )


def who_of(point: Point) -> str:
    """Return who answers for what came of a point: the adjudicator, or those whose answer counts."""
    if point.decision is not None:
        return point.decision.who
    names = [each.reviewer for each in point.said if each.answer == point.answer]
    text = ", ".join(names)
    return text if len(text) <= WHO_LENGTH else f"{names[0][:60]} and {len(names) - 1} more"


def why_of(point: Point) -> str:
    """Return why a point came out as it did, in a line: the adjudicator's reason, or the reviewers' notes."""
    part = "" if point.own_part is None else f" {point.own_part}"
    begin = f"{point.question.name}{part} {point.answer}"
    counting = [each for each in point.said if each.answer == point.answer]
    notes = dict.fromkeys(each.note for each in counting if each.note)
    reason = point.decision.reason if point.decision is not None else "; ".join(notes)
    reason = reason or f"{len(counting)} of {len(point.said)} reviewers"
    text = " ".join(
        "".join(letter if letter.isprintable() else " " for letter in f"{begin}: {reason}").split()
    )
    return text if len(text) <= WHY_LENGTH else f"{text[: WHY_LENGTH - 3]}..."


def withdrawal_of(reviewed: Reviewed) -> Edit:
    """Return the correction that takes a rejected record out of its run for good."""
    deciding = [point for point in reviewed.points if point.answer in REJECTING.get(point.question.name, ())]
    why = "; ".join(why_of(point) for point in deciding)[:WHY_LENGTH]
    who = who_of(deciding[0])
    return Edit(id=reviewed.story_id, path="$", old=None, new=None, who=who, why=why)


# -- flags


def _flags(asked: Iterable[Point], edits: Iterable[Edit]) -> Iterator[str]:
    """Yield what the summary says of a record: corrected fields first, then what is left to know."""
    yield from dict.fromkeys(f"corrected:{edit.path.removeprefix('$.')}" for edit in edits)
    for point in asked:
        name = point.question.name
        unit = name if point.own_part is None else f"{name}:{point.own_part}"
        if point.is_open:
            yield from [f"open:{unit}"] * point.complete
            continue
        if point.answer in (*point.question.ambiguous, UNCLEAR):
            yield f"ambiguous:{unit}"
        elif point.answer in point.question.unusable:
            yield f"{point.answer}:{unit}"
        elif point.answer in point.correcting and not point.edits:
            yield f"uncorrected:{unit}"
        if point.decision is None and point.verdict.state == "majority":
            yield f"majority:{unit}"


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
    with writing(folder, "choose another folder, or free the disk"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomic(folder / name, content)
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
        return {"folder": str(self.folder), **self.counts, "care": list(self.care), "next": list(self.next)}

    def lines(self) -> Iterator[str]:
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
            return ExportedFiles(folder, counts, (edit, pack) if written.edits else (pack,), signs)
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

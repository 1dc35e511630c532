"""What a review of records came to: whether each is accepted, what is corrected, who decided. Pure.

Question: which records enter the reviewed release, with which corrections and flags?
Formula: every unit of the form is decided by its votes or by an adjudicator (:mod:`.verdicts`); a record is
    rejected where its scenes are unusable, it is unsafe, or its rights are uncertain; it needs correction
    where something is open, or is to be corrected and nobody said how; else it is accepted.
Source: KathaTrace, Tables 16, 18 and 19, sections A.7 and A.11.
Departures: ``unanimous`` stands for every record that no adjudicator decided about, since A.7 knows two words
    only; where the protocol lets a majority decide, flags ``majority:<unit>`` name what was not unanimous. A
    record whose review is not finished has the resolution ``not_reviewed`` and is never accepted. An invalid
    question cannot be taken out of a record, whose number of parts stays: a flag says so. An invalid variant
    is set inactive.
Example: two say ``correct`` of the moral label and one ``corrected``, and an adjudicator decides
    ``corrected`` with ``kindness``: accepted, human_adjudicated, final label kindness, flag
    ``corrected:moral_label``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...builders.corrections import ItemDraft
from ...builders.edit_files import with_corrections
from ...builders.katha.pending_edits import EDITING
from ...schemas.canonical import Json
from ...schemas.katha import HumanValidation
from ...schemas.values import Edit
from ...validators.katha.votes import SEEN, seen_content, seen_sha256
from .folder import Study
from .items import Item, Part, Stands, Value
from .journal import Event
from .points import Point, points
from .protocol import Protocol
from .standing import Standing
from .task import UNCLEAR
from .votes import counted_votes

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
    edits = [] if rejected else list(_edits(item, asked))
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


def _edits(item: Item, asked: Iterable[Point]) -> Iterator[Edit]:
    """Yield the corrections of a record, those of its labels first: its parts follow a label."""
    listed = [edit for point in asked for edit in _edits_of(point, _values(item, point))]
    yield from sorted(listed, key=lambda edit: edit.path not in (LABEL_PATH, CATEGORY_PATH))


def _values(item: Item, point: Point) -> dict[str, Value]:
    """Return path -> value, of what may be corrected of a point's part or of the whole."""
    parts: Iterable[Part] = item.parts.get(point.question.each or "", ())
    held = [value for part in parts if part.id == point.part for value in part.values]
    return {value.path: value for value in (held if point.part else item.values)}


def _edits_of(point: Point, values: Mapping[str, Value]) -> Iterator[Edit]:
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

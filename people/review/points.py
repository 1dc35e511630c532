"""What reviewers were asked about an item, with all that was said of it and decided: the points of a study.

A point is the item, the question, and the part. It is a case once the item has all its votes, these can no
longer be changed, and they do not decide it. A decision is about the votes that were there: where others
come, it is open again.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Literal

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, canonical_text, digest
from ...schemas.values import Issue
from ...validators.katha.review_tables import SEEN
from ...validators.lines import read_objects
from ...validators.report import as_user_error
from .flow import Counted, counted_votes, dealt_votes
from .folder import Study
from .items import Item, edits_after, edits_in, listed_edits, notes_after, problem_of, tidy, values_of
from .standing import Event, Reviewer, Standing, Vote, VoteJournal
from .task import LONGEST_TEXT, UNCLEAR, Question, place_of

# -- How the votes on one thing stand: what reviewers agree on, and whether somebody has to decide. Pure
#
# Question: do the votes on a unit of a record decide it, or does it go to an adjudicator?
# Formula: everybody says the same, with the same corrections: it is decided. More than half do, at least
#     two: a majority, which decides where the protocol has consensus. Whoever chose what counts has to have
#     asked for the same corrections, else they conflict.
# Source: KathaTrace, section A.11 and Table 19.
# Departures: Table 19 lets two of three decide, and A.11 sends disagreement to adjudication; the protocol
#     says which (its ``consensus``; without it 2 : 1 is decided by an adjudicator). Where an answer asks
#     for a correction and nobody gave one, somebody decides, too: the paper does not say.
# Example: three say ``corrected``, two of them with the same new label: the corrections conflict, whatever
#     the protocol. Two say ``correct`` and one ``corrected``: a majority. One of three says ``ambiguous``:
#     somebody decides.

State = Literal["unanimous", "majority", "conflict", "ambiguous", "unusable"]
LEAST_MAJORITY = 2
"""So many reviewers at least are a majority."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one reviewer said."""

    reviewer: str  # pseudonym
    answer: Json  # the answer that was chosen
    # path -> new value of the corrections that go with it
    edits: Mapping[str, Json] = field(default_factory=dict)
    note: str = ""  # what was written beside it

    def as_json(self) -> dict[str, Json]:
        return {
            "reviewer": self.reviewer, "answer": self.answer, "edits": listed_edits(self.edits),
            "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """How votes stand."""

    # ``unanimous``; ``majority``; ``conflict``, where there is none, or corrections differ; ``ambiguous`` or
    # ``unusable``, where a reviewer says so
    state: State
    answer: Json  # what most reviewers said; None where there is no majority
    edits: Mapping[str, Json]  # path -> new value of the corrections that they agree on
    # why somebody has to decide, one word each (:data:`REASONS`); none where the votes do
    why: tuple[str, ...]


REASONS = {
    "unusable": "a reviewer says that it cannot be used as it is",
    "ambiguous": "a reviewer says that it is ambiguous",
    "no_majority": "no answer has a majority",
    "corrections": "the corrections differ",
    "uncorrected": "nobody says how it is to be corrected",
    "majority": "the reviewers do not all agree",
}
"""Why somebody has to decide -> the same in words, the gravest first."""
_STATES: Mapping[str, State] = {
    "unusable": "unusable", "ambiguous": "ambiguous", "no_majority": "conflict", "corrections": "conflict",
    "majority": "majority",
}  # fmt: skip


def verdict_of(
    question: Question, said: Sequence[Said], *, consensus: bool, correcting: Collection[str | int] = ()
) -> Verdict:
    """Return how the votes on one thing stand.

    ``said``: what each reviewer said; at least one.
    """
    texts = [
        f"'{each.answer}" if isinstance(each.answer, str) else canonical_text(each.answer) for each in said
    ]
    (text, votes), *_ = Counter(texts).most_common(1)
    agreed = votes == len(said)
    leading = [each for each, own in zip(said, texts, strict=True) if own == text]
    has_majority = agreed or (votes >= LEAST_MAJORITY and 2 * votes > len(said))
    same_edits = len({_edits_text(each) for each in leading}) == 1
    agreeing = leading[0].edits if has_majority and same_edits else {}
    edits = {path: tidy(new) for path, new in agreeing.items()}
    answers = [each.answer for each in said]
    reasons = {
        "unusable": any(answer in question.unusable for answer in answers),
        "ambiguous": any(answer in (*question.ambiguous, UNCLEAR) for answer in answers),
        "no_majority": not has_majority,
        "corrections": has_majority and not same_edits,
        "uncorrected": has_majority and same_edits and not edits and leading[0].answer in correcting,
        "majority": has_majority and not agreed,
    }
    holding = [reason for reason in REASONS if reasons[reason]]
    states = (_STATES[reason] for reason in holding if reason in _STATES)
    state: State = next(states, "unanimous")
    why = tuple(reason for reason in holding if not (reason == "majority" and consensus))
    return Verdict(state, leading[0].answer if has_majority else None, edits, why)


def _edits_text(said: Said) -> str:
    return canonical_text({path: tidy(new) for path, new in said.edits.items()}) if said.edits else ""


# -- What reviewers were asked about an item, with all that was said of it and decided


@dataclass(frozen=True, slots=True)
class Decision:
    """What an adjudicator decided."""

    value: Json  # the answer that counts
    edits: Mapping[str, Json]  # path -> new value of the corrections that go with it
    reason: str  # why
    who: str  # pseudonym of the adjudicator
    at: str  # when, RFC 3339
    votes: str  # hash of the votes that it was made on
    seen: str | None = None  # hash of what was shown of the record; None where that is unknown

    @classmethod
    def of(cls, event: Event) -> "Decision":
        body = event.body
        edits = {str(edit["path"]): edit["new"] for edit in body.get("edits") or ()}
        return cls(
            body["value"], edits, str(body["reason"]), str(body.get("adjudicator", event.reviewer)), event.at,
            str(body.get("votes", "")), body.get(SEEN),
        )  # fmt: skip

    def says(self, value: Json, edits: Mapping[str, Json], reason: str) -> bool:
        return (self.value, dict(self.edits), self.reason) == (value, dict(edits), reason)

    def as_json(self) -> dict[str, Json]:
        return {
            "value": self.value, "edits": listed_edits(self.edits), "reason": self.reason,
            "adjudicator": self.who, "at": self.at,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that reviewers were asked about an item."""

    item: str  # opaque id
    about: str  # what the item stands for, such as a story id
    question: Question  # what was asked
    part: str  # opaque id of the part; empty for the whole item
    own_part: str | None  # the part's own id; None for the whole item
    said: tuple[Said, ...]  # what each reviewer said, as far as it is final
    verdict: Verdict  # how these votes stand
    complete: bool  # whether all votes that are wanted are there
    decisions: tuple[Decision, ...] = ()  # all decisions on it, oldest first
    correcting: tuple[str | int, ...] = ()  # answers that ask for a correction

    @property
    def id(self) -> str:
        """What it is called as a case."""
        return case_id(self.item, self.question.name, self.part)

    @property
    def place(self) -> str:
        """The place of its answers in votes."""
        return place_of(self.question.name, self.part)

    @property
    def votes_sha256(self) -> str:
        """Hash of what the reviewers said."""
        return digest([each.as_json() for each in sorted(self.said, key=lambda each: each.reviewer)])

    @property
    def decision(self) -> Decision | None:
        """The last decision, if it was made on these votes."""
        last = self.decisions[-1] if self.decisions else None
        return last if last is not None and last.votes == self.votes_sha256 else None

    @property
    def is_case(self) -> bool:
        """Whether somebody has to decide, or did."""
        return self.complete and (bool(self.verdict.why) or self.decision is not None)

    @property
    def is_open(self) -> bool:
        """Whether somebody has to decide and has not yet, or votes are missing."""
        return not self.complete or (bool(self.verdict.why) and self.decision is None)

    @property
    def answer(self) -> Json:
        """The answer that counts; None while it is open."""
        if self.is_open:
            return None
        return self.verdict.answer if self.decision is None else self.decision.value

    @property
    def edits(self) -> Mapping[str, Json]:
        """Path -> new value of the corrections that count; none while it is open."""
        if self.is_open:
            return {}
        return self.verdict.edits if self.decision is None else self.decision.edits

    def without_notes(self, people: Collection[str]) -> "Point":
        """Return it without what some people wrote beside their answers.

        A decision stays in force: it was made on the whole votes.
        """
        said = tuple(replace(each, note="") if each.reviewer in people else each for each in self.said)
        if said == self.said:
            return self
        sha256, own = self.votes_sha256, replace(self, said=said)
        kept = [
            replace(each, votes=own.votes_sha256 if each.votes == sha256 else "") for each in self.decisions
        ]
        return replace(own, decisions=tuple(kept))

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON, with all votes and decisions."""
        return {
            "case": self.id, "item": self.about, "question": self.question.name, "part": self.own_part,
            "state": self.verdict.state, "why": list(self.verdict.why), "open": self.is_open,
            "majority": self.verdict.answer, "votes": [each.as_json() for each in self.said],
            "decision": None if self.decision is None else self.decision.as_json(),
            "earlier": [each.as_json() for each in self.decisions if each is not self.decision],
        }  # fmt: skip


def case_id(item: str, question: str, part: str) -> str:
    """Return what a case is called."""
    return ":".join((item, question, *((part,) if part else ())))


Known = dict[str, tuple[object, tuple[Point, ...]]]
"""Item -> what its points were made of, and they; whoever asks again and again hands in the same."""


def points(
    study: Study, standing: Standing, items: frozenset[str] | None = None, known: Known | None = None
) -> Iterator[Point]:
    """Yield what is adjudicated and has a final vote, by story and item, in the order of the task."""
    wanted, by_item = dealt_votes(study), dict[str, list[Counted]]()
    decided = Counter(case.partition(":")[0] for case, events in standing.decisions.items() for _ in events)
    asking = [_Asking.of(study, question) for question in study.task.card.questions if question.adjudicated]
    for counted in counted_votes(study, _only(standing, items), timed=False):
        if not counted.repeat and not counted.check and is_final(counted.person, counted.vote):
            by_item.setdefault(counted.item, []).append(counted)
    for item in sorted(by_item, key=lambda item: (study.stands[item].about, item)):
        votes = by_item[item]
        complete = study.protocol.closed or len(votes) >= wanted.get(item, 0)
        made_of = (complete, decided[item], *(counted.vote.event.id for counted in votes))
        if known is None or known.get(item, ((), ()))[0] != made_of:
            made = tuple(_points_of(study, standing, asking, votes, complete=complete))
            if known is not None:
                known[item] = (made_of, made)
        else:
            made = known[item][1]
        yield from made


@dataclass(frozen=True, slots=True)
class _Asking:
    """A question that is adjudicated, with those that are asked after answers to it."""

    question: Question
    after: Question | None
    notes: tuple[Question, ...]

    @classmethod
    def of(cls, study: Study, question: Question) -> "_Asking":
        return cls(question, edits_after(study.task, question), notes_after(study.task, question))

    @property
    def correcting(self) -> tuple[str | int, ...]:
        return () if self.after is None else self.after.when[self.question.name]

    def said(self, counted: Counted, part: str) -> Said | None:
        """Return what a vote says of a part; None where nothing."""
        answers, place = counted.vote.answers, place_of(self.question.name, part)
        if place not in answers:
            return None
        texts = [str(answers.get(place_of(each.name, part)) or "").strip() for each in self.notes]
        edits = edits_in(answers, self.after, part) if self.after is not None else {}
        answer = upright(self.question, counted, answers[place])
        return Said(counted.person.id, answer, edits, "\n".join(filter(None, texts)))


def _only(standing: Standing, items: frozenset[str] | None) -> Standing:
    if items is None:
        return standing
    people = {
        name: replace(
            person,
            votes={key: votes for key, votes in person.votes.items() if key.partition("#")[0] in items},
        )
        for name, person in standing.reviewers.items()
    }
    return Standing(reviewers=people)


def is_final(person: Reviewer, vote: Vote) -> bool:
    """Return whether a vote can no longer be changed: its block is closed, or the reviewer has left it."""
    block = str(vote.event.body.get("block"))
    return person.ended is not None or person.seat != vote.seat or person.has_closed(vote.seat, block)


def _points_of(
    study: Study, standing: Standing, asking: Sequence[_Asking], votes: Sequence[Counted], *, complete: bool
) -> Iterator[Point]:
    """Yield the points of one item, on which there are votes."""
    item = votes[0].item
    stands, shown, consensus = study.stands[item], study.items[item], study.protocol.consensus
    for asked in asking:
        question, each = asked.question, asked.question.each
        for part in ("",) if each is None else (part.id for part in shown.parts.get(each, ())):
            said = tuple(filter(None, (asked.said(counted, part) for counted in votes)))
            if said:
                correcting = asked.correcting
                verdict = verdict_of(question, said, consensus=consensus, correcting=correcting)
                events = standing.decisions.get(case_id(item, question.name, part), ())
                yield Point(
                    item, stands.about, question, part, stands.parts[part] if part else None, said, verdict,
                    complete, tuple(map(Decision.of, events)), correcting,
                )  # fmt: skip


def upright(question: Question, counted: Counted, answer: Json) -> Json:
    """Return an answer as if the first side had stood left: preferences change their sign where sides did."""
    turned = question.row == "preference" and counted.vote.flip and isinstance(answer, int)
    return -answer if turned else answer


# -- Adjudication: what reviewers do not decide between them goes to somebody else, who says why

ADJUDICATOR = "adjudicator"
REASON = "case_reason"
"""Place of the reason of a decision."""
COLUMNS = frozenset(("case", "value", "edits", "reason"))
"""What a line of a file of decisions may have."""
SHOWN = 40
"""So many cases are listed for people; JSON has them all."""


class NotDecided(ConfigError):
    """A decision that cannot be taken.

    Attributes:
        code: why, in a word: ``role``, ``own``, ``case``, ``value``, ``edits`` or ``reason``.
        place: of the answer that is wrong; empty where none is.
    """

    def __init__(self, where: str, *, code: str, what: str, fix: str, place: str = "") -> None:
        super().__init__(where, what=what, fix=fix)
        self.code, self.place = code, place


def cases(
    study: Study, standing: Standing, *, everything: bool = False, known: Known | None = None
) -> list[Point]:
    listed = points(study, standing, known=known)
    return [point for point in listed if point.is_case and (everything or point.is_open)]


def decide(
    study: Study, standing: Standing, who: str, line: Mapping[str, Json], at: str, sent: str = ""
) -> Event | None:
    """Return the event of a decision; None where it was decided just so before.

    ``sent``: id that the page gave the event; a new one if empty.
    """
    case, value, reason = str(line.get("case")), line.get("value"), line.get("reason")
    point = _decidable(study, standing, who, case)
    task, item = study.task, study.items[point.item]
    where = f"case {case}"
    if problem := point.question.problem(value):
        raise NotDecided(where, code="value", what=problem, fix="give another value", place=point.place)
    if not isinstance(reason, str) or not reason.strip() or len(reason) > LONGEST_TEXT:
        what = f"a reason of 1 to {LONGEST_TEXT} characters is expected"
        raise NotDecided(where, code="reason", what=what, fix="say why it is decided so", place=REASON)
    given = line.get("edits") or []
    after = edits_after(task, point.question)
    due = after is not None and value in after.when[point.question.name]
    if problem := _problem_of_edits(item, after if due else None, point.part, given):
        raise NotDecided(
            where, code="edits", what=problem, fix="correct the edits, or choose another value",
            place=point.place if after is None else place_of(after.name, point.part),
        )  # fmt: skip
    edits = {str(edit["path"]): tidy(edit["new"]) for edit in given}
    if point.decision is not None and point.decision.says(value, edits, reason.strip()):
        return None
    return Event(
        f"{who}/{sent or token_hex(12)}", at, study.protocol.sha256, who, "decided", case,
        {"value": value, "edits": listed_edits(edits), "reason": reason.strip(), "adjudicator": who,
         "votes": point.votes_sha256, **study.seen(point.item)},
    )  # fmt: skip


def _decidable(study: Study, standing: Standing, who: str, case: str) -> Point:
    """Return the point of a case that somebody may decide."""
    person = standing.reviewers.get(who)
    if person is None or person.role != ADJUDICATOR or person.revoked:
        raise NotDecided(
            who or "--who", code="role", what="this is not an adjudicator of the study",
            fix="invite one with fabula review invite STUDY --role adjudicator",
        )  # fmt: skip
    item = case.partition(":")[0]
    if has_reviewed(person, item):
        raise NotDecided(
            f"case {case}", code="own", what=f"{who} reviewed this item, and nobody decides about their own",
            fix="have another adjudicator decide",
        )  # fmt: skip
    there = {point.id: point for point in points(study, standing, frozenset((item,)))}
    if case not in there or not there[case].is_case:
        raise NotDecided(
            f"case {case}", code="case", what="there is no such case, or votes on it are missing",
            fix="see which there are with fabula review adjudicate STUDY",
        )  # fmt: skip
    return there[case]


def has_reviewed(person: Reviewer, item: str) -> bool:
    """Return whether somebody ever voted on an item."""
    return any(key.partition("#")[0] == item for key in person.votes)


def _problem_of_edits(item: Item, question: Question | None, part: str, edits: Json) -> str | None:
    """Return what is wrong with the corrections of a decision; ``question`` is None where none go with it."""
    if question is None:
        return "no corrections go with this value" if edits else None
    if question.optional and edits == []:
        return None
    return question.problem(edits) or problem_of(values_of(item, question, part), edits)


@dataclass
class _Taking:
    """Decisions of a file while they are read."""

    problems: list[UserError] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def report(self, issue: Issue) -> None:
        """Note what is wrong with the form of a line."""
        self.problems.append(as_user_error(issue))


def decide_from_file(study: Study, journal: VoteJournal, path: Path, who: str, at: str) -> int:
    """Take decisions from a file of JSON Lines, all or none, and return how many are new."""
    standing, taking, seen = Standing.of(journal.events()), _Taking(), dict[str, int]()
    for line in read_objects(path, path.name, taking.report):
        where, case = f"{path.name}:{line.number}", str(line.data.get("case"))
        strange = sorted(line.data.keys() - COLUMNS)
        if strange or case in seen:
            what = f"line {seen[case]} decides this case, too" if case in seen else f"unknown: {strange[0]}"
            fix = "keep one of them" if case in seen else f"a decision has {', '.join(sorted(COLUMNS))}"
            taking.problems.append(UserError(where, what=what, fix=fix))
            continue
        seen[case] = line.number
        try:
            event = decide(study, standing, who, line.data, at)
        except NotDecided as error:
            if error.code == "role":
                raise
            taking.problems.append(UserError(f"{where} {error.where}", what=error.what, fix=error.fix))
        else:
            taking.events += [] if event is None else [event]
    if taking.problems:
        raise InputError(taking.problems)
    journal.add_now(*taking.events)
    return len(taking.events)


def lines(listed: Sequence[Point]) -> Iterator[str]:
    if not listed:
        yield "nothing is to be decided"
    for point in listed[:SHOWN]:
        part = "" if point.own_part is None else f" {point.own_part}"
        why = "; ".join(REASONS[reason] for reason in point.verdict.why)
        yield f"{point.id}: {point.about}, {point.question.name}{part}: {why}"
        for each in point.said:
            edits = f", {canonical_text(listed_edits(each.edits))[:200]}" if each.edits else ""
            note = f" ({each.note[:200]})" if each.note else ""
            yield f"  {each.reviewer}: {each.answer}{edits}{note}"
        if point.decision is not None:
            yield f"  decided: {point.decision.value}, {point.decision.reason[:200]}"
    if len(listed) > SHOWN:
        yield f"and {len(listed) - SHOWN:,} more; --json lists them"

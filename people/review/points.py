"""What reviewers were asked about an item, with all that was said of it and decided: the points of a study.

A point is the item, the question, and the part. It is a case once the item has all its votes, these can no
longer be changed, and they do not decide it. A decision is about the votes that were there: where others
come, it is open again.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...schemas.canonical import Json, digest
from ...validators.katha.votes import SEEN
from .corrections import edits_after, edits_in, listed_edits, notes_after
from .flow import dealt_votes
from .folder import Study
from .journal import Event
from .standing import Reviewer, Standing, Vote
from .task import Question, place_of
from .verdicts import Said, Verdict, verdict_of
from .votes import Counted, counted_votes


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
        """Return the decision that an event brought."""
        body = event.body
        edits = {str(edit["path"]): edit["new"] for edit in body.get("edits") or ()}
        return cls(
            body["value"], edits, str(body["reason"]), str(body.get("adjudicator", event.reviewer)), event.at,
            str(body.get("votes", "")), body.get(SEEN),
        )  # fmt: skip

    def says(self, value: Json, edits: Mapping[str, Json], reason: str) -> bool:
        """Return whether it is this decision."""
        return (self.value, dict(self.edits), self.reason) == (value, dict(edits), reason)

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
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

"""Where a study stands: who takes part, who has which seat, what was voted. It follows from the events.

The same events give the same standing, whether they come from the file or as they happen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ...schemas.canonical import Json
from .journal import Event

TRAINING = "training"
"""The block that comes before all others."""
ENDS = ("finished", "returned", "screened_out", "timed_out", "no_seat")
"""Why somebody ended: done; left by themselves; failed the training; was away too long; nothing to do."""


@dataclass(frozen=True, slots=True)
class Vote:
    """What somebody said about an item."""

    event: Event  # the event that brought it
    answers: Mapping[str, Json]  # place of an answer -> answer
    flip: bool  # whether the two sides were shown the other way round
    seat: int | None  # the seat that it was given in; None in training
    # raw events of the page: milliseconds since it was opened, and what happened
    timeline: tuple[tuple[float, str], ...]


@dataclass
class Reviewer:
    """A person who takes part."""

    id: str  # pseudonym
    role: str = "reviewer"  # ``reviewer`` or ``adjudicator``
    group: str | None = None  # group of participants
    # what was agreed to: ``publish``, ``expertise``, ``language``; None before
    agreed: Mapping[str, Json] | None = None
    seats: list[int] = field(default_factory=list)  # seats that were taken, in order
    seat: int | None = None  # the seat that is held now
    # item, with ``#n`` for a repetition -> the votes on it, oldest first; the last counts
    votes: dict[str, list[Vote]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)  # item -> what did not load
    # seat (None for the training) and block -> when it was closed
    closed: dict[tuple[int | None, str], str] = field(default_factory=dict)
    trained: float | None = None  # whether the training is behind them, and its share of right answers
    ended: str | None = None  # why they are through
    revoked: bool = False  # whether their link opens nothing any more
    dropped: bool = False  # whether their answers count no more, and others give them anew
    last: str = ""  # time of the last event

    def has_closed(self, seat: int | None, block: str) -> bool:
        """Return whether a block of a seat is closed; of the training, with no seat."""
        return (seat, block) in self.closed


@dataclass
class Standing:
    """Where a study stands."""

    reviewers: dict[str, Reviewer] = field(default_factory=dict)  # id -> person
    holders: dict[int, str] = field(default_factory=dict)  # seat -> who has it now
    # seat -> item, with ``#n`` for a repetition -> who voted on it in that seat
    by_seat: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    # case -> the decisions on it, oldest first; the last counts
    decisions: dict[str, list[Event]] = field(default_factory=dict)
    events: int = 0  # how many there were
    _known: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Standing":
        """Return where a study stands after some events."""
        standing = cls()
        for event in events:
            standing.apply(event)
        return standing

    def knows(self, event_id: str) -> bool:
        """Return whether an event with that id was told before."""
        return event_id in self._known

    def apply(self, event: Event) -> None:
        """Take in what happened; an event that was told before changes nothing."""
        if event.id in self._known:
            return
        self._known.add(event.id)
        self.events += 1
        person = self.reviewers.setdefault(event.reviewer, Reviewer(event.reviewer))
        person.last = max(person.last, event.at)
        handler = getattr(self, f"_on_{event.kind}", None)
        if handler is not None:
            handler(person, event)

    def _on_invited(self, person: Reviewer, event: Event) -> None:
        person.role = str(event.body.get("role", "reviewer"))
        group = event.body.get("group")
        person.group = None if group is None else str(group)

    def _on_agreed(self, person: Reviewer, event: Event) -> None:
        person.agreed = dict(event.body)

    def _on_seated(self, person: Reviewer, event: Event) -> None:
        seat = int(event.body["seat"])
        person.seat = seat
        person.seats.append(seat)
        person.ended = None
        self.holders[seat] = person.id

    def _on_left(self, person: Reviewer, event: Event) -> None:
        given_up = [seat for seat, holder in self.holders.items() if holder == person.id]
        for seat in given_up:  # of one that was finished nothing is open, unless its answers count no more
            del self.holders[seat]
        person.seat = None
        person.dropped = person.dropped or bool(event.body.get("answers_dropped"))

    def _on_trained(self, person: Reviewer, event: Event) -> None:
        person.trained = float(event.body["share"])

    def _on_voted(self, person: Reviewer, event: Event) -> None:
        body, seat = event.body, event.body.get("seat")
        timeline = tuple((float(at), str(what)) for at, what in body.get("timeline") or ())
        vote = Vote(
            event, dict(body["answers"]), bool(body.get("flip")),
            None if seat is None else int(seat), timeline,
        )  # fmt: skip
        person.votes.setdefault(str(event.item), []).append(vote)
        person.broken.pop(str(event.item), None)
        if vote.seat is not None:
            self.by_seat.setdefault(vote.seat, {}).setdefault(str(event.item), []).append(person.id)

    def _on_broken(self, person: Reviewer, event: Event) -> None:
        person.broken[str(event.item)] = str(event.body.get("what", ""))

    def _on_closed(self, person: Reviewer, event: Event) -> None:
        seat = event.body.get("seat")
        person.closed[None if seat is None else int(seat), str(event.body["block"])] = event.at

    def _on_revoked(self, person: Reviewer, event: Event) -> None:
        person.revoked = bool(event.body.get("revoked", True))

    def _on_ended(self, person: Reviewer, event: Event) -> None:
        person.ended = str(event.body["why"])

    def _on_decided(self, _person: Reviewer, event: Event) -> None:
        self.decisions.setdefault(str(event.item), []).append(event)


def placed(item: str, repeat: int) -> str:
    """Return what a vote on an item, or on a repetition of it, is kept under."""
    return f"{item}#{repeat}" if repeat else item


def hours_between(earlier: str, later: str) -> float:
    """Return the hours between two times, RFC 3339."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / 3600

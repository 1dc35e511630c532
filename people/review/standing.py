"""Where a study stands: who takes part, who has which seat, what was voted. It follows from the events.

The same events give the same standing, whether they come from the file or as they happen.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...engine.journal_file import Done, GroupCommit, Statement, connect, explained
from ...errors import FabulaError, RunError
from ...schemas.canonical import Json, canonical_text

# -- The votes of a study, ``votes.sqlite``: events that are only added, each on disk before a page says so
#
# An event has the id that its sender gave it: sent again after a lost answer, it is there once. What people
# have begun and not sent is kept apart, as drafts, and is replaced.

NAME = "votes.sqlite"
FORMAT = 1
TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    protocol TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    kind TEXT NOT NULL,
    item TEXT,
    body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS drafts (
    reviewer TEXT NOT NULL,
    item TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (reviewer, item)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS nothing_changes BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER IF NOT EXISTS nothing_goes BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
"""
PUT = (
    "INSERT OR IGNORE INTO events (id, at, protocol, reviewer, kind, item, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
PUT_DRAFT = "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?)"
DROP_DRAFT = "DELETE FROM drafts WHERE reviewer = ? AND item = ?"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    id: str  # given by whoever sent it, so that it counts once
    at: str  # when the server had it, RFC 3339, UTC
    protocol: str  # hash of the protocol in force
    reviewer: str  # who did it
    # invited, revoked, agreed, seated, left, trained, voted, broken (media did not load), closed (a block),
    # ended (with the reason why) or decided (a case)
    kind: str
    # the item that it is about, with ``#n`` for a repetition; None where it is about none
    item: str | None = None
    body: Mapping[str, Json] = field(default_factory=dict)  # what else is known

    def row(self) -> tuple[Any, ...]:
        """Return it as a row of the file."""
        about = (self.id, self.at, self.protocol, self.reviewer, self.kind, self.item)
        return (*about, canonical_text(dict(self.body)))


class VoteJournal:
    """The file of a study's events, open for writing by one process; use it in a ``with`` block."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        with explained(self.path):
            _prepare(self.path)
            self._reader = connect(self.path, read_only=True)
        self._writer = GroupCommit(self.path)
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, event: Event, *more: Statement, done: Done) -> None:
        """Queue an event; ``done`` is told when it is on disk. One whose id is known changes nothing."""
        self._writer.write((PUT, event.row()), *more, done=done)

    def add_now(self, *events: Event) -> None:
        """Add events and return when they are on disk."""
        self._writer.write_now(*((PUT, event.row()) for event in events))

    def draft(self, reviewer: str, item: str, at: str, body: Json, done: Done) -> None:
        """Queue what somebody has begun on an item, in place of what was there; ``done`` as for events."""
        self._writer.write((PUT_DRAFT, (reviewer, item, at, canonical_text(body))), done=done)

    def draft_of(self, reviewer: str, item: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return what somebody has begun on an item, or None."""
        sql = "SELECT body FROM drafts WHERE reviewer = ? AND item = ?"
        with explained(self.path):
            row = self._reader.execute(sql, (reviewer, item)).fetchone()
        return None if row is None else json.loads(row[0])

    def events(self) -> list[Event]:
        """Return all events, oldest first."""
        with explained(self.path):
            return [event for _, event in _events(self.path, self._reader)]

    def new_events(self) -> list[Event]:
        """Return the events that came since this was last asked, oldest first, whoever wrote them."""
        with explained(self.path):
            fresh = list(_events(self.path, self._reader, self._seen))
        self._seen = fresh[-1][0] if fresh else self._seen
        return [event for _, event in fresh]

    def close(self) -> None:
        """Write what is queued and close the file."""
        try:
            self._writer.close()
        finally:
            self._reader.close()


def read_events(folder: Path) -> list[Event]:
    """Return all events of a study, oldest first; works while a server writes."""
    path = folder / NAME
    if not path.is_file():
        return []
    with explained(path), closing(connect(path, read_only=True)) as reader:
        return [event for _, event in _events(path, reader)]


def _events(path: Path, reader: sqlite3.Connection, after: int = 0) -> Iterator[tuple[int, Event]]:
    sql = "SELECT seq, id, at, protocol, reviewer, kind, item, body FROM events WHERE seq > ? ORDER BY seq"
    for seq, event_id, at, protocol, reviewer, kind, item, body in reader.execute(sql, (after,)):
        try:
            yield seq, Event(event_id, at, protocol, reviewer, kind, item, json.loads(body))
        except ValueError as error:
            raise _damaged(path, str(error)) from error


def _prepare(path: Path) -> None:
    connection = connect(path, read_only=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(TABLES)
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (str(FORMAT),))
        (version,) = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
        if int(version) > FORMAT:
            raise RunError(
                str(path), what=f"a newer version of Fabula wrote this file (format {version})",
                fix="use that version",
            )  # fmt: skip
    finally:
        connection.close()


def _damaged(path: Path, why: str) -> FabulaError:
    return RunError(
        str(path), what=f"the votes cannot be read: {why}",
        fix="copy the file somewhere safe, then restore it from a backup",
    )  # fmt: skip


# --

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

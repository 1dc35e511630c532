"""The votes of a study, ``votes.sqlite``: events that are only added, each on disk before a page says so.

An event has the id that its sender gave it: sent again after a lost answer, it is there once. What people
have begun and not sent is kept apart, as drafts, and is replaced.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...engine.journal_file import Done, GroupCommit, Statement, connect, explained
from ...errors import FabulaError, RunError
from ...schemas.canonical import Json, canonical_text

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

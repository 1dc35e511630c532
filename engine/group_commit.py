"""A thread that writes to one SQLite file: it commits whatever is queued, together, and then says so."""

import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FabulaError, TargetError
from .journal_file import connect, explained, is_of_statement

if TYPE_CHECKING:
    import asyncio

QUEUED = 512  # writes that may wait for the disk; the producer waits beyond that, so memory stays bounded

Done = Callable[[FabulaError | None], None]
"""Told once that a write is on disk, or why it never will be, in the writer's thread; it must not raise."""

Statement = tuple[str, tuple[Any, ...]]
"""SQL and its values."""
_Write = tuple[Sequence[Statement], Done | None]
_AGAIN = "correct it and send it again; everything else is kept"


class NotStored(TargetError):
    """What one call wrote cannot be stored, whatever the state of the file; what others wrote can."""


class GroupCommit:
    """The one writer of a file: statements of one call get to disk all together or not at all.

    A call whose statements fail fails alone, and whoever waits for it is told. After trouble with the file,
    such as a full disk, each batch tries anew. What nobody waits for must not be lost unseen: once such a
    write has failed, writes of this sort are refused, and :meth:`check` says why.

    Args:
        path: the file, with its tables.
        committed: told the statements of each commit, in the writer's thread, before anybody else is.
    """

    def __init__(self, path: Path, committed: Callable[[Iterable[Statement]], None] | None = None) -> None:
        self.path = path
        self._committed = committed
        self._trouble: FabulaError | None = None
        self._connection: sqlite3.Connection | None = None
        self._queue: queue.Queue[_Write | None] = queue.Queue(QUEUED)
        self._thread = threading.Thread(target=self._write_all, name="journal-writer", daemon=True)
        self._thread.start()

    def write(self, *statements: Statement, done: Done | None = None) -> None:
        """Queue statements, all of which or none get to disk; ``done`` is told when. From any thread."""
        while True:
            self._check_thread()
            if done is None:
                self.check()
            with suppress(queue.Full):
                return self._queue.put((statements, done), timeout=1)

    def write_now(self, *statements: Statement) -> None:
        """Write statements, all or none, and return when they are on disk."""
        told: queue.SimpleQueue[FabulaError | None] = queue.SimpleQueue()
        self.write(*statements, done=told.put)
        while True:
            with suppress(queue.Empty):
                error = told.get(timeout=0.2)
                break
            self._check_thread()
        if error is not None:
            raise error

    def check(self) -> None:
        """Raise what became of a write that nobody waited for, if it failed."""
        if self._trouble is not None:
            raise self._trouble
        self._check_thread()

    def flush(self) -> None:
        """Return when everything queued is on disk."""
        self.write_now()
        self.check()

    def close(self) -> None:
        """Write what is queued and stop."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        if self._trouble is not None:
            raise self._trouble

    def _check_thread(self) -> None:
        if not self._thread.is_alive():
            raise RuntimeError("the journal's writer is not running")

    def _write_all(self) -> None:
        try:
            while self._write_some():
                pass
        finally:
            self._drop_connection()
            with suppress(queue.Empty):
                while (entry := self._queue.get_nowait()) is not None:
                    self._settle([entry], NotStored(str(self.path), what="the file was closed", fix=_AGAIN))

    def _write_some(self) -> bool:
        batch = [self._queue.get()]
        with suppress(queue.Empty):
            while True:
                batch.append(self._queue.get_nowait())
        entries = [entry for entry in batch if entry is not None]
        due = [entry for entry in entries if self._is_due(entry)]
        error = self._commit(due)
        if isinstance(error, NotStored) and len(due) > 1:
            self._write_singly(due)
        else:
            self._settle(due, error)
        return len(entries) == len(batch)

    def _write_singly(self, entries: Sequence[_Write]) -> None:
        error: FabulaError | None = None
        for entry in entries:
            if error is None or isinstance(error, NotStored):  # else nothing can be written now
                error = self._commit([entry]) if self._is_due(entry) else error
            self._settle([entry], error)

    def _is_due(self, entry: _Write) -> bool:
        return entry[1] is not None or self._trouble is None

    def _commit(self, entries: Sequence[_Write]) -> FabulaError | None:
        """Write what some calls wrote, all or none; return what kept it from being written."""
        statements = [statement for written, _ in entries for statement in written]
        if not statements:
            return None
        try:
            with explained(self.path):
                self._execute(statements)
        except FabulaError as error:
            return error
        with suppress(Exception):  # it is on disk, whatever they make of it
            if self._committed is not None:
                self._committed(statements)
        return None

    def _execute(self, statements: Sequence[Statement]) -> None:
        if self._connection is None:
            self._connection = connect(self.path, read_only=False)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for sql, values in statements:
                self._connection.execute(sql, values)
            self._connection.execute("COMMIT")
        except Exception as error:
            self._roll_back()
            if is_of_statement(error):
                what = f"this cannot be stored: {error}"
                raise NotStored(str(self.path), what=what, fix=_AGAIN) from error
            raise

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _settle(self, entries: Sequence[_Write], error: FabulaError | None) -> None:
        if error is not None and any(done is None for _, done in entries):
            self._trouble = self._trouble or error  # first: whoever is told may look at once
        for _, done in entries:
            if done is not None:
                with suppress(Exception):  # whoever is told must not end the writer
                    done(error)


async def on_disk(write: Callable[[Done], None]) -> None:
    """Return when what is written is on disk."""
    import asyncio

    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def told(error: FabulaError | None) -> None:
        with suppress(RuntimeError):  # the loop is closed, so that nobody waits any more
            loop.call_soon_threadsafe(_settle, written, error)

    write(told)
    await written


def _settle(future: "asyncio.Future[None]", error: FabulaError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)

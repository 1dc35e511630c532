"""A thread that writes to one SQLite file: it commits whatever is queued, together, and then says so."""

import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FabulaError
from .journal_file import connect, explained

if TYPE_CHECKING:
    import asyncio

QUEUED = 512  # writes that may wait for the disk; the producer waits beyond that, so memory stays bounded

Done = Callable[[FabulaError | None], None]
"""Told once that a write is on disk, or why it never will be, in the writer's thread; it must not raise."""

Statement = tuple[str, tuple[Any, ...]]
"""SQL and its values."""
_Write = tuple[Sequence[Statement], Done | None]


class GroupCommit:
    """The one writer of a file: statements of one call get to disk all together or not at all.

    Args:
        path: the file, with its tables.
        committed: told the statements of each commit, in the writer's thread, before anybody else is.
    """

    def __init__(self, path: Path, committed: Callable[[Iterable[Statement]], None] | None = None) -> None:
        self.path = path
        self._committed = committed
        self._trouble: FabulaError | None = None
        self._queue: queue.Queue[_Write | None] = queue.Queue(QUEUED)
        self._thread = threading.Thread(target=self._write_all, name="journal-writer", daemon=True)
        self._thread.start()

    def write(self, *statements: Statement, done: Done | None = None) -> None:
        """Queue statements, all of which or none get to disk; ``done`` is told when. From any thread.

        Raises:
            TargetError: an earlier write failed; nothing queued since is kept.
        """
        while True:
            self.check()
            with suppress(queue.Full):
                return self._queue.put((statements, done), timeout=1)

    def check(self) -> None:
        """Raise what keeps the writer from writing, if anything does."""
        if self._trouble is not None:
            raise self._trouble
        if not self._thread.is_alive():
            raise RuntimeError("the journal's writer is not running")

    def flush(self) -> None:
        """Return when everything queued is on disk.

        Raises:
            TargetError: it cannot be written.
        """
        marker = threading.Event()
        self.write(done=lambda _: marker.set())
        while not marker.wait(timeout=0.2):
            self.check()
        self.check()

    def close(self) -> None:
        """Write what is queued and stop.

        Raises:
            TargetError: it cannot be written.
        """
        if self._trouble is not None:
            raise self._trouble
        if self._thread.is_alive():
            self.flush()
            self._queue.put(None)
            self._thread.join()

    def _write_all(self) -> None:
        try:
            with explained(self.path):
                connection = connect(self.path, read_only=False)
                try:
                    while self._write_some(connection):
                        pass
                finally:
                    connection.close()
        except FabulaError as error:  # kept for the producers, who raise it
            self._trouble = error
            self._tell_waiting(error)

    def _tell_waiting(self, error: FabulaError) -> None:
        with suppress(queue.Empty):
            while True:
                entry = self._queue.get_nowait()
                if entry is not None and entry[1] is not None:
                    entry[1](error)

    def _write_some(self, connection: sqlite3.Connection) -> bool:
        batch = [self._queue.get()]
        with suppress(queue.Empty):
            while True:
                batch.append(self._queue.get_nowait())
        entries = [entry for entry in batch if entry is not None]
        waiting = [done for _, done in entries if done is not None]
        statements = [statement for written, _ in entries for statement in written]
        try:
            with explained(self.path):
                connection.execute("BEGIN IMMEDIATE")
                for sql, values in statements:
                    connection.execute(sql, values)
                connection.execute("COMMIT")
        except FabulaError as error:
            self._trouble = error  # first: whoever is told may look at once
            for done in waiting:
                done(error)
            raise
        if self._committed is not None:
            self._committed(statements)
        for done in waiting:
            done(None)
        return len(entries) == len(batch)


async def on_disk(write: Callable[[Done], None]) -> None:
    """Return when what is written is on disk.

    Args:
        write: queues it, with whom to tell.

    Raises:
        FabulaError: it cannot be written.
    """
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

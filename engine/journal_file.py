"""The file under the journal: its tables, how it is opened, and what its errors mean."""

import math
import queue
import shutil
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..errors import FabulaError, RunError, TargetError, UserError
from ..schemas.canonical import file_mode
from ..schemas.text import quoted

if TYPE_CHECKING:
    import asyncio

NAME = "journal.sqlite"
SALVAGED = "journal.sqlite.salvaged"
"""A whole new journal that is about to take the place of a damaged one."""
FORMAT = 5
EARLIER_FORMAT = 3
"""That of the first runs: no batches; calls without their prompts and how many tokens a service had kept."""
_WAIT = 30.0  # seconds that a connection waits for another one's lock
_WAL_LIMIT = 64 * 1024 * 1024

PUT_RESULT = f"INSERT OR REPLACE INTO results VALUES ({','.join('?' * 15)})"
PUT_META = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
DROP_META = "DELETE FROM meta WHERE name = ?"
PUT_CALL = f"INSERT OR REPLACE INTO calls VALUES ({','.join('?' * 14)})"
PUT_SENT = (
    "INSERT INTO sent (id, request, sample, stage, model, bound, state) VALUES (?, ?, ?, ?, ?, ?, 'open')"
)
PUT_LOST = (
    "INSERT INTO sent (id, request, sample, stage, model, bound, state) VALUES (?, ?, ?, ?, ?, ?, 'lost')"
)
KEEP_CALL = PUT_CALL.replace("REPLACE", "IGNORE")
"""The same, where there is no such call yet."""
MARK_SENT = "UPDATE sent SET state = ? WHERE id = ?"
DROP_SENT = "DELETE FROM sent WHERE id = ?"
MARK_LOST = "UPDATE sent SET state = 'lost' WHERE state = 'open'"
LOSE_CALL = (
    "INSERT INTO sent (id, request, sample, stage, model, bound, state)"
    " SELECT ?, request, sample, stage, model, cost, 'lost' FROM calls WHERE request = ? AND sample = ?"
)
DROP_CALL = "DELETE FROM calls WHERE request = ? AND sample = ?"
DROP_ASKS = "DELETE FROM asks WHERE result = ?"
PUT_ASK = "INSERT OR REPLACE INTO asks VALUES (?, ?, ?, ?)"

TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
    request TEXT NOT NULL,
    sample INTEGER NOT NULL,
    stage TEXT NOT NULL,
    model TEXT NOT NULL,
    asked BLOB NOT NULL,
    reply BLOB NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cost REAL,
    attempts INTEGER NOT NULL,
    doubt TEXT,
    prompt TEXT,
    cached_tokens INTEGER,
    written_tokens INTEGER,
    PRIMARY KEY (request, sample)
);
CREATE TABLE IF NOT EXISTS sent (
    id INTEGER PRIMARY KEY,
    request TEXT NOT NULL,
    sample INTEGER NOT NULL,
    stage TEXT NOT NULL,
    model TEXT NOT NULL,
    bound REAL,
    state TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS batches (
    tag TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    remote TEXT,
    file TEXT,
    word TEXT,
    answered INTEGER,
    failed INTEGER,
    written REAL NOT NULL,
    ended REAL,
    stop INTEGER NOT NULL DEFAULT 0,
    note TEXT
);
CREATE TABLE IF NOT EXISTS batch_requests (
    tag TEXT NOT NULL,
    place INTEGER NOT NULL,
    request TEXT NOT NULL,
    sample INTEGER NOT NULL,
    stage TEXT NOT NULL,
    asked BLOB,
    bound REAL,
    state TEXT NOT NULL,
    reason TEXT,
    prompt TEXT,
    PRIMARY KEY (tag, place)
);
CREATE TABLE IF NOT EXISTS batch_pictures (
    model TEXT NOT NULL,
    picture TEXT NOT NULL,
    ref TEXT NOT NULL,
    stored REAL NOT NULL,
    PRIMARY KEY (model, picture)
);
CREATE INDEX IF NOT EXISTS batch_requests_call ON batch_requests (request, sample);
CREATE TABLE IF NOT EXISTS asks (
    result TEXT NOT NULL,
    place INTEGER NOT NULL,
    request TEXT NOT NULL,
    sample INTEGER NOT NULL,
    PRIMARY KEY (result, place)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    seq INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    stage TEXT NOT NULL,
    item TEXT NOT NULL,
    part TEXT NOT NULL,
    version INTEGER NOT NULL,
    settings TEXT NOT NULL,
    libraries TEXT NOT NULL,
    inputs TEXT NOT NULL,
    status TEXT NOT NULL,
    code TEXT,
    reason TEXT,
    evidence TEXT,
    outputs TEXT NOT NULL,
    blob BLOB
);
CREATE INDEX IF NOT EXISTS results_stage ON results (stage, part);
"""

_FULL = {"SQLITE_FULL"}
_DAMAGED = {"SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_SCHEMA", "SQLITE_MISMATCH"}
_UNOPENED = {"SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH", "SQLITE_READONLY"}
_OF_STATEMENT = {"SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_TOOBIG", "SQLITE_MISUSE", "SQLITE_RANGE"}


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Return a connection with our durability settings; transactions are begun by hand."""
    if read_only:
        return _connect_to_read(path)
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT}")
        connection.create_aggregate("exact_sum", 1, _ExactSum)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connect_to_read(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise missing(path)
    # Only who may write takes away the side files of WAL again, which reading needs too. A folder that we may
    # not write to has no shared-memory file: then nobody writes, and the file can be read as it is, or, with
    # what its log holds, as a copy.
    for mode in ("mode=rw", "mode=ro"):
        try:
            return _opened_to_read(f"{path.absolute().as_uri()}?{mode}")
        except sqlite3.OperationalError as error:
            if _kind_of(error) in ("SQLITE_BUSY", "SQLITE_LOCKED"):
                raise
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and log.stat().st_size:
        return _copy_to_read(path, log)
    return _opened_to_read(f"{path.absolute().as_uri()}?mode=ro&immutable=1")


def _opened_to_read(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA query_only=1")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.create_aggregate("exact_sum", 1, _ExactSum)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _copy_to_read(path: Path, log: Path) -> sqlite3.Connection:
    """Open a copy of a file and of its log; the copy has no name and goes with the connection."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(log.name))
        with closing(sqlite3.connect(copy, isolation_level=None)) as writing:
            writing.execute("PRAGMA journal_mode=DELETE").fetchone()  # what the log holds is in the file then
        return _opened_to_read(f"{copy.as_uri()}?mode=ro&immutable=1")


class _ExactSum:
    """The sum of a column in SQL, rounded once: the same in whatever order the rows come."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: float | None, /) -> None:
        if value is not None:
            self._values.append(value)

    def finalize(self) -> Any:  # noqa: ANN401 - the types of sqlite3 know whole numbers only
        return math.fsum(self._values)


def copy_journal(folder: Path, target: Path, without: Collection[str]) -> None:
    """Copy the journal of a run into another folder as it is now, without what some stages made."""
    with (
        explained(folder / NAME),
        closing(connect(folder / NAME, read_only=True)) as source,
        closing(sqlite3.connect(target / NAME)) as copy,
    ):
        source.backup(copy)
        with copy:
            copy.executemany("DELETE FROM results WHERE stage = ?", [(stage,) for stage in without])


def prepare(path: Path) -> None:
    """Make the tables in a new file; choose WAL, or DELETE mode where WAL cannot work."""
    finish_salvage(path)
    if not path.exists():
        path.touch(file_mode(path.parent))  # SQLite gives its side files the same rights
    try:
        _set_mode(path, "WAL")
        _make_tables(path)
    except sqlite3.OperationalError:
        # WAL needs shared memory, which network file systems do not have. Exclusive locking does without,
        # so the mode can be changed even where the file says WAL already.
        _set_mode(path, "DELETE", exclusive=True)
        _make_tables(path)


def finish_salvage(path: Path) -> None:
    """Put a salvaged journal in the place of the damaged one, which is kept elsewhere by then.

    Only the holder of the run may.
    """
    salvaged = path.with_name(SALVAGED)
    if salvaged.exists():
        for suffix in ("-wal", "-shm"):  # of the damaged one: SQLite would take them for those of the new one
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        salvaged.replace(path)


def _set_mode(path: Path, mode: str, *, exclusive: bool = False) -> None:
    with closing(sqlite3.connect(path, timeout=_WAIT, isolation_level=None)) as connection:
        if exclusive:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute(f"PRAGMA journal_mode={mode}").fetchone()


def _make_tables(path: Path) -> None:
    with closing(connect(path, read_only=False)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        (exists,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()
        version = _format_of(connection) if exists else None
        if version == EARLIER_FORMAT:
            for column in ("prompt TEXT", "cached_tokens INTEGER", "written_tokens INTEGER"):
                connection.execute(f"ALTER TABLE calls ADD COLUMN {column}")
        if version in (None, EARLIER_FORMAT):
            for statement in TABLES.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(PUT_META, ("format", str(FORMAT)))
        connection.execute("COMMIT")


def check_format(path: Path, connection: sqlite3.Connection) -> None:
    """Raise RunError when the file is not a journal that this version can read."""
    version = _format_of(connection)
    if version in (EARLIER_FORMAT, FORMAT):
        return
    raise RunError(
        str(path),
        what=f"the journal has {'no format' if version is None else f'format {version}'}, and this version"
        f" reads {FORMAT}",
        fix="use the version of fabula that made the run, or build into a new folder",
    )


def _format_of(connection: sqlite3.Connection) -> int | None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    return int(row[0]) if row and str(row[0]).isdigit() else None


def missing(path: Path) -> RunError:
    """Return the error for a run without a journal."""
    return RunError(
        str(path.parent),
        what=f"this is not a run folder: it has no {path.name}",
        fix="give the folder that a build wrote with --out",
    )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system report into errors that say what to do."""
    try:
        yield
    except FabulaError:
        raise
    except sqlite3.Error as error:
        raise _explain(path, error) from error
    except OSError as error:
        raise unwritable(path, error) from error


def is_of_statement(error: Exception) -> bool:
    """Return whether an error is of the values or the text of a statement, and not of the file."""
    if not isinstance(error, sqlite3.Error):
        return not isinstance(error, OSError)
    # What the module itself says of values has no name of SQLite's.
    named = _kind_of(error) or ("" if isinstance(error, sqlite3.OperationalError) else "SQLITE_MISUSE")
    return named in _OF_STATEMENT and not _lacks_tables(error)


def _lacks_tables(error: sqlite3.Error) -> bool:
    return "no such table" in str(error) or "no such column" in str(error)


def _kind_of(error: sqlite3.Error) -> str:
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])


def is_unopened(error: sqlite3.Error) -> bool:
    """Return whether an error says that a file could not be opened or read, and nothing of what is in it."""
    return _kind_of(error) in _UNOPENED


def _explain(path: Path, error: sqlite3.Error) -> UserError:
    kind = _kind_of(error)
    name = str(getattr(error, "sqlite_errorname", ""))
    if is_unopened(error):
        return TargetError(
            str(path),
            what=f"the journal cannot be opened: {error} ({name})",
            fix="check that it may be read, and the disk; nothing in it was looked at or changed",
        )
    if kind in _DAMAGED or _lacks_tables(error):
        return damaged(path, error)
    if kind in _FULL:
        fix = "free some space and start again; finished work is kept"
        return TargetError(str(path), what="the disk is full", fix=fix)
    return TargetError(
        str(path),
        what=f"the journal cannot be written: {error} ({name or type(error).__name__})",
        fix="check the folder's permissions, free space and quota, then start again; finished work is kept",
    )


def damaged(path: Path, error: Exception) -> RunError:
    """Return the error for a journal that cannot be read."""
    return RunError(
        str(path),
        what=f"the journal is damaged ({error})",
        fix=f"fabula run check {quoted(path.parent)} says what is damaged; --salvage keeps all that is sound",
    )


def unwritable(path: Path, error: OSError) -> TargetError:
    """Return the error for a place that the operating system does not let us use."""
    return TargetError(
        str(path),
        what="a file is there"
        if isinstance(error, FileExistsError)
        else f"cannot be written: {error.strerror or error}",
        fix="choose another folder, or check permissions and free space; finished work is kept",
    )


# -- A thread that writes to one SQLite file: it commits whatever is queued, together, and then says so

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

    ``path``: the file, with its tables. ``committed``: told the statements of each commit, in the writer's
    thread, before anybody else is.
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

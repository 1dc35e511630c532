"""The journal of a run, ``journal.sqlite``: a result is committed before anything builds on it."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ..errors import FabulaError, RunError
from ..schemas.canonical import Json
from . import journal_file
from .codec import Encoded, decode
from .group_commit import Done, GroupCommit, Statement
from .journal_file import explained

NAME = journal_file.NAME
_READ_TOGETHER = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """One result to be written.

    Attributes:
        key: the result's key.
        stage: the stage's name.
        item: the item's id.
        part: ``item``, or ``table`` for the list of what an expand or a gather brought forth.
        version: the stage's version.
        settings: digest of its settings.
        libraries: digest of its libraries.
        inputs: digests of what it read.
        encoded: the outcome.
    """

    key: str
    stage: str
    item: str
    part: str
    version: int
    settings: str
    libraries: str
    inputs: Mapping[str, str]
    encoded: Encoded


class Head(NamedTuple):
    """A result without its fields. ``seq`` is its place in the journal and the handle of its blob."""

    seq: int
    key: str
    item: str
    status: str
    code: str | None
    reason: str | None
    outputs: dict[str, str]


class Origin(NamedTuple):
    """What a result was made from."""

    seq: int
    item: str
    version: int
    settings: str
    libraries: str
    inputs: dict[str, str]


class Made(NamedTuple):
    """What a result is of, and what it was made from."""

    stage: str
    part: str
    version: int
    settings: str
    libraries: str
    inputs: dict[str, str]


class Journal:
    """The journal of one run folder. Use :meth:`open`; close it, or use it in a ``with`` block."""

    def __init__(self, path: Path, reader: sqlite3.Connection, *, writable: bool) -> None:
        self.path = path
        self.writable = writable
        self._reader = reader
        self.committed = 0
        self._seq = 0
        self._writer: GroupCommit | None = None

    @classmethod
    def open(cls, folder: Path, *, writable: bool = True) -> Self:
        """Open the journal of a run folder; a writable one is made when missing.

        What is opened to be read shows the journal as it is at this moment, until it is closed.

        Raises:
            TargetError: the folder cannot be written, or the disk is full.
            RunError: there is no journal to read, it is damaged, or a newer version of Fabula wrote it.
        """
        path = folder / NAME
        with explained(path):
            if writable:
                journal_file.prepare(path)
            reader = journal_file.connect(path, read_only=not writable)
            try:
                if not writable:
                    reader.execute("BEGIN")  # one moment of the journal, however much is written meanwhile
                journal_file.check_format(path, reader)
            except (sqlite3.Error, RunError):
                reader.close()
                raise
            journal = cls(path, reader, writable=writable)
            if writable:
                journal._start()
        return journal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(FabulaError):  # the first error matters more than what closing met
                self.close()

    # -- writing

    def put(self, entry: Entry) -> int:
        """Queue one result and return its ``seq``; it is durable once :attr:`committed` reaches that.

        A result with the same key is replaced, and moves to the end.

        Raises:
            TargetError: an earlier write failed; nothing queued since is kept.
        """
        self._seq += 1
        kept = entry.encoded
        row = (
            self._seq, entry.key, entry.stage, entry.item, entry.part, entry.version, entry.settings,
            entry.libraries, json.dumps(dict(entry.inputs)), kept.status, kept.code, kept.reason,
            kept.evidence, json.dumps(dict(kept.outputs or {})), kept.blob,
        )  # fmt: skip
        self.write((journal_file.PUT_RESULT, row))
        return self._seq

    def note(self, name: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Queue one fact about the run (see :meth:`fact`)."""
        self.write((journal_file.PUT_META, (name, json.dumps(value, sort_keys=True))))

    def write(self, *statements: Statement, done: Done | None = None) -> None:
        """Queue statements, all of which or none get to disk; ``done`` is told when. From any thread.

        Raises:
            TargetError: an earlier write failed; nothing queued since is kept.
        """
        self._open_writer().write(*statements, done=done)

    def check(self) -> None:
        """Raise what keeps the writer from writing, if anything does."""
        self._open_writer().check()

    def flush(self) -> None:
        """Return when everything queued is on disk.

        Raises:
            TargetError: it cannot be written.
        """
        self._open_writer().flush()

    def close(self) -> None:
        """Write what is queued, stop the writer and close the files.

        Raises:
            TargetError: it cannot be written.
        """
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            self._writer = None
            self._reader.close()

    def _start(self) -> None:
        (last,) = self._reader.execute("SELECT coalesce(max(seq), 0) FROM results").fetchone()
        self._seq = self.committed = last
        self._writer = GroupCommit(self.path, self._note_committed)

    def _open_writer(self) -> GroupCommit:
        if self._writer is None:
            raise RuntimeError("the journal's writer is not running")
        return self._writer

    def _note_committed(self, statements: Iterable[Statement]) -> None:
        for sql, values in statements:
            if sql is journal_file.PUT_RESULT:
                self.committed = values[0]

    # -- reading

    def heads(self, stage: str, *, part: str = "item") -> Iterator[Head]:
        """Yield all results of a stage, oldest first, without their fields."""
        sql = (
            "SELECT seq, key, item, status, code, reason, outputs FROM results"
            " WHERE stage = ? AND part = ? ORDER BY seq"
        )
        for *plain, outputs in self._rows(sql, (stage, part)):
            yield Head._make((*plain, self._document(outputs)))

    def heads_of(self, keys: Sequence[str]) -> Iterator[Head]:
        """Yield the results with some keys, at most a few hundred, without their fields."""
        columns = "seq, key, item, status, code, reason, outputs"
        sql = f"SELECT {columns} FROM results WHERE key IN ({_marks(keys)})"
        for *plain, outputs in self._rows(sql, keys):
            yield Head._make((*plain, self._document(outputs)))

    def origin(self, seq: int) -> Made:
        """Return what a result is of, and what it was made from.

        Raises:
            RunError: there is none.
        """
        sql = "SELECT stage, part, version, settings, libraries, inputs FROM results WHERE seq = ?"
        for *plain, inputs in self._rows(sql, (seq,)):
            return Made._make((*plain, self._document(inputs)))
        raise journal_file.damaged(self.path, LookupError(f"no result {seq}"))

    def holds_anything(self) -> bool:
        """Whether there is a result or a reply."""
        sql = "SELECT EXISTS (SELECT 1 FROM results) OR EXISTS (SELECT 1 FROM calls)"
        return any(bool(row[0]) for row in self._rows(sql, ()))

    def origins(self, stage: str, *, part: str = "item") -> Iterator[Origin]:
        """Yield what each result of a stage was made from, oldest first."""
        sql = (
            "SELECT seq, item, version, settings, libraries, inputs FROM results"
            " WHERE stage = ? AND part = ? ORDER BY seq"
        )
        for *plain, inputs in self._rows(sql, (stage, part)):
            yield Origin._make((*plain, self._document(inputs)))

    def evidence(self, seq: int) -> str | None:
        """Return the evidence kept with a result, such as a traceback."""
        for (evidence,) in self._rows("SELECT evidence FROM results WHERE seq = ?", (seq,)):
            return None if evidence is None else str(evidence)
        return None

    def blobs(self, seqs: Iterable[int]) -> dict[int, bytes]:
        """Return the blobs of some results (see :func:`.codec.decode`), by ``seq``."""
        wanted = sorted(set(seqs))
        blobs: dict[int, bytes] = {}
        for start in range(0, len(wanted), _READ_TOGETHER):
            some = wanted[start : start + _READ_TOGETHER]
            blobs.update(self._rows(f"SELECT seq, blob FROM results WHERE seq IN ({_marks(some)})", some))
        return blobs

    def fact(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a fact about the run that was noted, or None."""
        for (value,) in self._rows("SELECT value FROM meta WHERE name = ?", (name,)):
            return self._document(value)
        return None

    def _document(self, text: str) -> Any:  # noqa: ANN401 - any JSON value
        try:
            return json.loads(text)
        except (ValueError, TypeError) as error:
            raise journal_file.damaged(self.path, error) from error

    def _rows(self, sql: str, values: Iterable[Any]) -> Iterator[Any]:
        with explained(self.path):
            yield from self._reader.execute(sql, tuple(values))


def _marks(values: Sized) -> str:
    return ",".join("?" * len(values))


Listing = list[list[str]]
"""What an expand or gather brought forth, in order: item id and key of its result."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a gather decided: the list of items with their keys, and the fields of each."""

    listing: Listing
    fields: Mapping[str, dict[str, Json]]


def read_listing(journal: Journal, table: Head, name: str = "items") -> Listing:
    """Return a list of a table: ``items``, or for a gather also ``kept``, the items that have gone since."""
    listing: Listing = decode(journal.blobs([table.seq])[table.seq])[name]
    return listing


def read_decisions(journal: Journal, table: Head, known: Mapping[str, Head]) -> Decisions:
    """Return what a gather decided in a table for every item that it ever saw, those now gone included.

    Args:
        journal: the journal.
        table: the gather's table.
        known: key -> result, of the gather.
    """
    listing = [*read_listing(journal, table), *read_listing(journal, table, "kept")]
    blobs = journal.blobs(known[key].seq for _, key in listing)
    return Decisions(listing, {item: decode(blobs[known[key].seq]) for item, key in listing})


def decisions(folder: Path, stage: str) -> dict[str, dict[str, Json]]:
    """Return what a gather stage last decided for every item that it ever saw: item id -> fields.

    Items that failed since, or whose source has gone, are there too. Empty before the stage's first time.
    Reads only; works while another process works on the run.

    Raises:
        RunError: the folder has no journal, or one that cannot be read.
    """
    with Journal.open(Path(folder), writable=False) as journal:
        tables = list(journal.heads(stage, part="table"))
        if not tables:
            return {}
        known = {head.key: head for head in journal.heads(stage)}
        return dict(read_decisions(journal, tables[-1], known).fields)

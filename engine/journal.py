"""The journal of a run, ``journal.sqlite``: a result is committed before anything builds on it."""

import codecs
import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ..errors import FabulaError, RunError
from ..schemas.canonical import Json, canonical_bytes, canonical_rows, digest, digest_rows, sha256_bytes
from ..schemas.plain_files import RATIO, unzipped
from . import journal_file
from .journal_file import Done, GroupCommit, Statement, explained
from .spilled import HELD, Spilled
from .stage import Failed, Made, NoAnswer, Outcome, Rejected

# -- How outcomes are kept and found: canonical JSON, a digest per field, keys of what they depend on

LEVEL = 3  # records shrink to about a third; higher levels cost more time than they save space


@dataclass(frozen=True, slots=True)
class Encoded:
    """An outcome as it is kept."""

    status: str  # ``made``, ``rejected`` or ``failed``
    # code of a rejection or failure, or of the answer that something was made without
    code: str | None = None
    reason: str | None = None  # its reason, in words
    evidence: str | None = None  # what helps to understand a failure, such as a traceback
    outputs: Mapping[str, str] | None = None  # digest of each field that was made
    blob: bytes | None = None  # the fields, compressed; see :func:`decode`


def encode(outcome: Outcome) -> Encoded:
    """Return the kept form of an outcome."""
    if isinstance(outcome, Rejected):
        return Encoded("rejected", outcome.code, _clean(outcome.reason))
    if isinstance(outcome, Failed):
        evidence = None if outcome.evidence is None else _clean(outcome.evidence)
        return Encoded("failed", outcome.code, _clean(outcome.reason), evidence)
    if not isinstance(outcome, Made):
        raise TypeError(f"an outcome is Made, Rejected or Failed, not {type(outcome).__name__}")
    pieces = {name: canonical_bytes(value) for name, value in outcome.fields.items()}
    joined = b",".join(canonical_bytes(name) + b":" + pieces[name] for name in sorted(pieces))
    code, reason, evidence = (None, None, None) if outcome.missed is None else _kept(outcome.missed)
    return Encoded(
        "made",
        code,
        reason,
        evidence,
        outputs={name: sha256_bytes(piece) for name, piece in pieces.items()},
        blob=zlib.compress(b"{" + joined + b"}", LEVEL),
    )


def _kept(missed: NoAnswer) -> tuple[str, str, str | None]:
    return missed.code, _clean(missed.reason), None if missed.evidence is None else _clean(missed.evidence)


def encode_lists(lists: Mapping[str, Iterable[Sequence[str]]]) -> Encoded:
    """Return what :func:`encode` makes of lists of texts, of which a few lines are in memory at a time."""
    packer, packed, outputs = zlib.compressobj(LEVEL), bytearray(), {}
    for number, name in enumerate(sorted(lists)):
        packed += packer.compress((b"," if number else b"{") + canonical_bytes(name) + b":")
        state = hashlib.sha256()
        for piece in canonical_rows(lists[name]):
            state.update(piece)
            packed += packer.compress(piece)
        outputs[name] = state.hexdigest()
    packed += packer.compress(b"}") + packer.flush()
    return Encoded("made", outputs=outputs, blob=bytes(packed))


def _clean(text: str) -> str:
    """Return a text that can be stored: lone surrogates, as hostile input may carry, are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def decode(blob: bytes) -> dict[str, Json]:
    """Return the fields that a blob holds."""
    try:
        fields: dict[str, Json] = json.loads(unzipped(blob))
    except (zlib.error, ValueError) as error:
        raise damaged_result(error) from error
    return fields


def damaged_result(error: Exception) -> RunError:
    """Return the error for a result that cannot be read."""
    return RunError(
        "the journal of the run", what=f"a result in it is damaged ({error})",
        fix="see what is damaged with `fabula run check RUN`; with --salvage it keeps all that is sound",
    )  # fmt: skip


def gather_fields(parts: Iterable[tuple[bytes, tuple[str, ...]]]) -> dict[str, Json]:
    """Return the named fields of several blobs as one item's fields."""
    fields: dict[str, Json] = {}
    for blob, names in parts:
        document = decode(blob)
        fields.update((name, document[name]) for name in names)
    return fields


@dataclass(frozen=True)
class Basis:
    """What all results of one stage depend on, whatever the item."""

    stage: str  # the stage's name
    version: int  # the stage's version
    settings: Mapping[str, Any]  # its own settings and the run's seed, as JSON
    # distribution -> installed version, and prompt -> hash, of those that the stage declares
    libraries: Mapping[str, str]
    settings_digest: str = field(init=False)
    libraries_digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings_digest", digest(self.settings))
        object.__setattr__(self, "libraries_digest", digest(self.libraries))
        head = [self.stage, self.version, self.settings_digest, self.libraries_digest]
        object.__setattr__(self, "_head", hashlib.sha256(canonical_bytes(head)))

    def key(self, item: str, inputs: Sequence[str]) -> str:
        state: Any = self._head.copy()  # type: ignore[attr-defined]
        name = item.encode("utf-8", "surrogatepass")
        state.update(b"%d:%s" % (len(name), name))
        state.update("".join(inputs).encode("ascii"))
        return str(state.hexdigest())


def content_key(stage: str, item: str, kept: Sequence[str | None]) -> str:
    """Return the key of a result that is addressed by what it holds: a child, a line of a table."""
    return digest([stage, item, list(kept)])


def table_digest(rows: Iterable[tuple[str, str]]) -> str:
    """Return one digest for a column of an item table: ``(item id, field digest)`` in order."""
    return digest_rows(rows)


# --

NAME = journal_file.NAME
_READ_TOGETHER, _HEADS_TOGETHER, _PIECE = 200, 1000, 65536
_HEAD = "seq, key, item, status, code, reason, outputs"
_ORIGIN = "seq, stage, item, part, version, settings, libraries, inputs"


@dataclass(frozen=True, slots=True)
class Entry:
    """One result to be written."""

    key: str  # the result's key
    stage: str  # the stage's name
    item: str  # the item's id
    part: str  # ``item``, or ``table`` for the list of what an expand or a gather brought forth
    version: int  # the stage's version
    settings: str  # digest of its settings
    libraries: str  # digest of its libraries
    inputs: Mapping[str, str]  # digests of what it read
    encoded: Encoded  # the outcome


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
    """What a result is of, and what it was made from."""

    seq: int
    stage: str
    item: str
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
        """Queue statements, all of which or none get to disk; ``done`` is told when. From any thread."""
        self._open_writer().write(*statements, done=done)

    def check(self) -> None:
        """Raise what keeps the writer from writing, if anything does."""
        self._open_writer().check()

    def flush(self) -> None:
        """Return when everything queued is on disk."""
        self._open_writer().flush()

    def close(self) -> None:
        """Write what is queued, stop the writer and close the files."""
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

    def heads(self, stage: str, *, part: str = "item", first: int = 0) -> Iterator[Head]:
        """Yield the results of a stage from a place on, oldest first, without their fields."""
        return map(self._head, self._of_stage(_HEAD, stage, part, first))

    def head(self, key: str, *, part: str = "item") -> Head | None:
        rows = self._rows(f"SELECT {_HEAD} FROM results WHERE key = ? AND part = ?", (key, part))
        return next(map(self._head, rows), None)

    def head_at(self, seq: int) -> Head | None:
        """Return a result by its place, if it is there."""
        return next(map(self._head, self._rows(f"SELECT {_HEAD} FROM results WHERE seq = ?", (seq,))), None)

    def _head(self, row: Sequence[Any]) -> Head:
        *plain, outputs = row
        return Head._make((*plain, self._document(outputs)))

    def heads_of(self, keys: Sequence[str]) -> Iterator[Head]:
        """Yield the results with some keys, at most a few hundred, without their fields."""
        sql = f"SELECT {_HEAD} FROM results WHERE key IN ({_marks(keys)})"
        return map(self._head, self._rows(sql, keys))

    def origin(self, seq: int) -> Origin:
        """Return what the result at a place was made from."""
        for row in self._rows(f"SELECT {_ORIGIN} FROM results WHERE seq = ?", (seq,)):
            return self._origin(row)
        raise journal_file.damaged(self.path, LookupError(f"no result {seq}"))

    def holds_anything(self) -> bool:
        """Whether there is a result or a reply."""
        sql = "SELECT EXISTS (SELECT 1 FROM results) OR EXISTS (SELECT 1 FROM calls)"
        return any(bool(row[0]) for row in self._rows(sql, ()))

    def origins(self, stage: str, *, part: str = "item") -> Iterator[Origin]:
        """Yield what each result of a stage was made from, oldest first."""
        return map(self._origin, self._of_stage(_ORIGIN, stage, part))

    def _origin(self, row: Sequence[Any]) -> Origin:
        *plain, inputs = row
        return Origin._make((*plain, self._document(inputs)))

    def last_of_items(self, stage: str, *, part: str = "item") -> Spilled[int]:
        """Return the places of the last results of a stage, by item."""
        places: Spilled[int] = Spilled()
        for seq, item in self._of_stage("seq, item", stage, part):
            places[item] = seq
        return places

    def _of_stage(self, columns: str, stage: str, part: str, first: int = 0) -> Iterator[Any]:
        """Yield columns, ``seq`` first, of a stage's results, oldest first, reading some at a time.

        Nothing is open between two reads: what is read meanwhile may be newer.
        """
        sql = f"SELECT {columns} FROM results WHERE stage = ? AND part = ? AND seq > ? ORDER BY seq LIMIT ?"
        last = first - 1
        while rows := list(self._rows(sql, (stage, part, last, _HEADS_TOGETHER))):
            yield from rows
            last = rows[-1][0]

    def blob_pieces(self, seq: int) -> Iterator[bytes]:
        with (
            explained(self.path),
            closing(self._reader.blobopen("results", "blob", seq, readonly=True)) as blob,
        ):
            while piece := blob.read(_PIECE):
                yield piece

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

    def all_blobs(self) -> Iterator[bytes]:
        """Yield the blobs of all results, in the order in which they were made."""
        for (blob,) in self._rows("SELECT blob FROM results WHERE blob IS NOT NULL ORDER BY seq", ()):
            yield blob

    def fact(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a fact about the run that was noted, or None."""
        for (value,) in self._rows("SELECT value FROM meta WHERE name = ?", (name,)):
            return self._document(value)
        return None

    def facts(self, begin: str) -> list[tuple[str, Any]]:
        """Return name and value of the facts whose names begin so, sorted."""
        rows = self._rows("SELECT name, value FROM meta WHERE name GLOB ? ORDER BY name", (f"{begin}*",))
        return [(name, self._document(value)) for name, value in rows]

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


class Known:
    """The results of a stage by key, of which a window is in memory.

    Results lie in a journal about in the order in which a walk asks for them: it reads on as long as that
    finds them, and looks others up one by one.
    """

    def __init__(self, journal: Journal, stage: str, *, part: str = "item") -> None:
        self._journal, self._stage, self._part = journal, stage, part
        self._made: dict[str, Head] = {}
        self._kept: dict[str, Head] = {}
        self.rewind()

    def rewind(self, seq: int = 0) -> None:
        """Go back to the first result, or to that at a place."""
        self._left = self._journal.heads(self._stage, part=self._part, first=seq)
        self._window: dict[str, Head] = {}
        self._before: dict[str, Head] = {}
        self._is_whole = not seq  # what is in memory is all that was read so far

    def get(self, key: str) -> Head | None:
        head = self._made.get(key) or self._window.get(key) or self._before.get(key) or self._kept.get(key)
        if head is None and self._read_on():
            head = self._window.get(key)
            return self._journal.head(key, part=self._part) if head is None else head
        return head if head is not None or self._is_whole else self._journal.head(key, part=self._part)

    def __getitem__(self, key: str) -> Head:
        head = self.get(key)
        if head is None:
            raise KeyError(key)
        return head

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def add(self, head: Head) -> None:
        """Take in a result that was just put into the journal."""
        self._made[head.key] = head
        if len(self._made) > HELD:
            self._journal.flush()
            self._made.clear()
            self._is_whole = False

    def keep(self, head: Head) -> None:
        """Take in a result that is in no journal of this run."""
        self._kept[head.key] = head

    def _read_on(self) -> bool:
        """Read some more results; return whether there were any."""
        if len(self._window) >= HELD:
            self._is_whole = self._is_whole and not self._before
            self._window, self._before = {}, self._window
        some = {head.key: head for head in islice(self._left, _HEADS_TOGETHER)}
        self._window.update(some)
        return bool(some)


Listing = Collection[Sequence[str]]
"""What an expand or gather brought forth, in order: item id and key of its result."""

_TEXT = r'("(?:[^"\\]|\\.)*")'
_TOKEN = re.compile(rf',?\[{_TEXT},{_TEXT}\]|[{{,\]}}]|"(\w+)":\[')


class StoredListing(Collection[Sequence[str]]):
    """A list in a journal, read piece by piece each time that one goes through it.

    ``seq``: place of the table that has it. ``name``: ``items``, or for a gather also ``kept``, the items
    that have gone since.
    """

    def __init__(self, journal: Journal, seq: int, name: str) -> None:
        self._journal, self._seq, self._name = journal, seq, name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, line: object) -> bool:
        return any(other == line for other in self)

    def __iter__(self) -> Iterator[Sequence[str]]:
        return lines_of(self._journal.blob_pieces(self._seq), self._name)


def lines_of(blob: Iterable[bytes], name: str) -> Iterator[Sequence[str]]:
    """Yield the lines of one list of a table, item id and key each."""
    current, text, at, last = "", "", 0, ""
    for piece in _texts(blob):
        text, at = text[at:] + piece, 0
        while (token := _TOKEN.match(text, at)) is not None:
            at, last = token.end(), token[0]
            if token[3] is not None:
                current = token[3]
            elif token[1] is not None and current == name:
                yield _plain_text(token[1]), _plain_text(token[2])
    if text[at:] or last != "}":
        raise damaged_result(ValueError("a list of items that ends early"))


def _texts(blob: Iterable[bytes]) -> Iterator[str]:
    packed, decoder = zlib.decompressobj(), codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in blob:
            text = packed.decompress(piece, RATIO * _PIECE)
            if packed.unconsumed_tail:
                raise zlib.error("it unpacks to far more than texts do")
            yield decoder.decode(text)
        yield decoder.decode(packed.flush(), final=True)
    except (zlib.error, ValueError) as error:
        raise damaged_result(error) from error


def _plain_text(quoted: str) -> str:
    return json.loads(quoted) if "\\" in quoted else quoted[1:-1]


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a gather decided: the key of each item's result, and its fields."""

    keys: Mapping[str, str]
    fields: Mapping[str, dict[str, Json]]


def read_listing(journal: Journal, table: Head, name: str = "items") -> Listing:
    """Return a list of a table: ``items``, or for a gather also ``kept``, the items that have gone since."""
    return StoredListing(journal, table.seq, name)


def read_decisions(journal: Journal, table: Head, known: Known) -> Decisions:
    """Return what a gather decided in a table for every item that it ever saw, those now gone included."""
    keys: Spilled[str] = Spilled()
    fields: Spilled[dict[str, Json]] = Spilled()
    lines = chain(read_listing(journal, table), read_listing(journal, table, "kept"))
    while some := list(islice(lines, _READ_TOGETHER)):
        places = {item: known[key].seq for item, key in some}
        blobs = journal.blobs(places.values())
        keys.update((item, key) for item, key in some)
        fields.update((item, decode(blobs[seq])) for item, seq in places.items())
    return Decisions(keys, fields)


def decisions(folder: Path, stage: str) -> dict[str, dict[str, Json]]:
    """Return what a gather stage last decided for every item that it ever saw: item id -> fields.

    Items that failed since, or whose source has gone, are there too. Empty before the stage's first time.
    Reads only; works while another process works on the run.
    """
    with Journal.open(Path(folder), writable=False) as journal:
        tables = list(journal.heads(stage, part="table"))
        if not tables:
            return {}
        return dict(read_decisions(journal, tables[-1], Known(journal, stage)).fields)

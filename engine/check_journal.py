"""Checking a run's journal, row by row: what can be read, what each row is verified by, what is damaged."""

import json
import mmap
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..models.chat import Reply
from ..schemas.canonical import Plain, canonical_bytes, digest, digest_rows, sha256_bytes
from ..schemas.plain_files import unzipped
from ..schemas.text import quoted
from . import journal_file
from .calls import unpacked
from .journal import lines_of
from .journal_file import NAME
from .spilled import scratch_file

# -- Rows read from the pages of a SQLite file, without SQLite: what is left where that calls it malformed
#
# Every page says by itself which rows it holds, so that one damaged page hides no other. The form of pages
# and records is that of https://www.sqlite.org/fileformat2.html; pages of the write-ahead log replace those
# of the file. What comes out may be anything: whoever uses a row has to check it.

SIZES = tuple(2**power for power in range(9, 17))
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_HEADER, _WAL_HEADER, _FRAME = 100, 32, 24
_MOST_VALUES = 64
_MOST_BYTES = 1_000_000_000
_WHOLE = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Serial type of a whole number -> its bytes."""

Value = None | int | float | str | bytes


class Pages:
    """The pages of a file, those of its write-ahead log above them.

    ``path``: the file; a log beside it ends in ``-wal``.

    Raises OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._data = _mapped(path)
        wal = path.with_name(f"{path.name}-wal")
        self._wal = _mapped(wal) if wal.is_file() else b""
        self.size = self._page_size()
        self._newer = self._logged()
        self.count = max([(len(self._data) + self.size - 1) // self.size, *self._newer])

    def page(self, number: int) -> bytes:
        """Return a page by its number from 1; shorter than others where the file ends."""
        start = self._newer.get(number)
        if start is not None:
            return self._wal[start : start + self.size]
        return self._data[(number - 1) * self.size : number * self.size]

    def rows(self) -> Iterator[tuple[int, list[Value]]]:
        """Yield rowid and values of everything that looks like a row; the rowid is 0 for rows of an index."""
        for number in range(1, self.count + 1):
            page = self.page(number)
            for start in _cells(page, _HEADER if number == 1 else 0):
                try:
                    yield self._row(page, start, page[_HEADER if number == 1 else 0])
                except (IndexError, ValueError, struct.error):  # no row after all, or one that is damaged
                    continue

    def _page_size(self) -> int:
        """Return the size of a page, from the file, else from the log, else that of SQLite's default."""
        for data, where in ((self._data, slice(16, 18)), (self._wal, slice(8, 12))):
            said = int.from_bytes(data[where], "big")
            said = 65536 if said == 1 else said
            if said in SIZES:
                return said
        return 4096

    def _logged(self) -> dict[int, int]:
        """Return page number -> where its last frame in the log begins."""
        salt, pages = self._wal[16:24], {}
        for start in range(_WAL_HEADER, len(self._wal) - _FRAME, _FRAME + self.size):
            frame = self._wal[start : start + _FRAME]
            number = int.from_bytes(frame[:4], "big")
            if frame[8:16] == salt and 0 < number < 2**31:
                pages[number] = start + _FRAME
        return pages

    def _row(self, page: bytes, start: int, kind: int) -> tuple[int, list[Value]]:
        if kind == _INDEX_INTERIOR:
            start += 4  # the page below
        length, start = _varint(page, start)
        rowid = 0
        if kind == _TABLE_LEAF:
            rowid, start = _varint(page, start)
        if length > _MOST_BYTES:
            raise ValueError("longer than any row")
        return rowid, _values(self._payload(page, start, length, table=kind == _TABLE_LEAF))

    def _payload(self, page: bytes, start: int, length: int, *, table: bool) -> bytes:
        """Return the bytes of a row, what overflows into other pages included."""
        usable = self.size
        most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return _exactly(page, start, length)
        least = (usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (usable - 4)
        here = here if here <= most else least
        parts, left = [_exactly(page, start, here)], length - here
        (following,) = struct.unpack_from(">I", page, start + here)
        while left:
            if not 0 < following <= self.count:
                raise ValueError("a page that is not there")
            more = self.page(following)
            part = _exactly(more, 4, min(left, usable - 4))
            parts.append(part)
            left -= len(part)
            (following,) = struct.unpack_from(">I", more, 0)
        return b"".join(parts)


def _mapped(path: Path) -> mmap.mmap | bytes:
    """Return the bytes of a file, which may be larger than memory."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _cells(page: bytes, start: int) -> Iterator[int]:
    """Yield where the rows of a page begin; none of one that holds no rows."""
    kind = page[start] if len(page) > start + 8 else 0
    if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
        return
    (count,) = struct.unpack_from(">H", page, start + 3)
    first = start + (12 if kind == _INDEX_INTERIOR else 8)
    for at in range(first, min(first + 2 * count, len(page) - 1), 2):
        yield struct.unpack_from(">H", page, at)[0]


def _exactly(data: bytes, start: int, length: int) -> bytes:
    part = data[start : start + length]
    if len(part) != length:
        raise ValueError("the page ends before")
    return part


def _varint(data: bytes, start: int) -> tuple[int, int]:
    value = 0
    for at in range(start, start + 8):
        value = value << 7 | data[at] & 0x7F
        if data[at] < 0x80:
            return value, at + 1
    return value << 8 | data[start + 8], start + 9


def _values(payload: bytes) -> list[Value]:
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
        if len(kinds) > _MOST_VALUES:
            raise ValueError("more values than any row has")
    values: list[Value] = []
    for kind in kinds:
        value, end = _value(payload, end, kind)
        values.append(value)
    if end != len(payload):
        raise ValueError("values that do not fill the row")
    return values


def _value(payload: bytes, start: int, kind: int) -> tuple[Value, int]:
    if kind in _WHOLE:
        end = start + _WHOLE[kind]
        return int.from_bytes(_exactly(payload, start, end - start), "big", signed=True), end
    if kind == 7:
        number: float = struct.unpack_from(">d", payload, start)[0]
        return number, start + 8
    if kind >= 12:
        length = (kind - 12) // 2
        data = _exactly(payload, start, length)
        return (data.decode("utf-8") if kind % 2 else data), start + length
    if kind not in (0, 8, 9):
        raise ValueError("no kind of value")
    return (None if kind == 0 else kind - 8), start


# -- Checking a run's journal, row by row

Row = tuple[Any, ...]
TABLES = ("calls", "sent", "batches", "batch_requests", "batch_pictures", "results", "asks", "meta")
"""In the order in which they are worth saving: what was paid for comes first."""
KEYS = {
    "calls": (0, 1), "sent": (0,), "batches": (0,), "batch_requests": (0, 1),
    "batch_pictures": (0, 1), "results": (1,), "asks": (0, 1),
    "meta": (0,),
}  # fmt: skip
"""Table -> where the values stand by which its rows are known."""
NUMBERED = ("sent", "results")
"""Tables whose first column is the number of the row."""
_STATES = ("made", "rejected", "failed")
_PROBLEMS = 100
_PIECE = 65536  # bytes of a list that are read at once
_CACHE = 65536  # KiB of memory that the keys of rows may take


def read_rows(path: Path, problems: list[str]) -> Iterator[tuple[str, Row]]:
    """Yield table and values of every row that can be read; the same row may come twice.

    Where SQLite finds fault with the file, its pages are read one by one after what SQLite can read.
    """
    try:
        with closing(journal_file.connect(path, read_only=True)) as connection:
            connection.text_factory = _text
            answers = connection.execute(f"PRAGMA integrity_check({_PROBLEMS})").fetchall()
            problems.extend(line for (line,) in answers if line != "ok")
            for table in TABLES:
                yield from _listed(connection, table, problems)
    except sqlite3.Error as error:
        if journal_file.is_unopened(error):
            raise
        problems.append(str(error))
    if problems:
        yield from _raw(path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _listed(connection: sqlite3.Connection, table: str, problems: list[str]) -> Iterator[tuple[str, Row]]:
    try:
        for row in connection.execute(f"SELECT * FROM {table}"):
            yield table, row
    except sqlite3.Error as error:
        # Format 1 had no calls.
        if "no such table" not in str(error) or table in ("meta", "results"):
            problems.append(f"{table}: {error}")


def _raw(path: Path) -> Iterator[tuple[str, Row]]:
    for rowid, values in Pages(path).rows():
        table = _table_of(values)
        if table is None or (table == "asks") != (rowid == 0):
            continue
        yield table, (rowid, *values[1:]) if table in NUMBERED else tuple(values)


def _table_of(values: Sequence[Value]) -> str | None:
    """Return the table that a row belongs to, by its form."""
    for table, fits in _FORMS.items():
        if fits(values):
            return table
    return None


def is_hash(value: object) -> bool:
    """Whether a value is a SHA-256 in hexadecimal."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_usd(value: object) -> bool:
    return value is None or isinstance(value, int | float)


_FORMS: dict[str, Callable[[Sequence[Any]], bool]] = {
    "calls": lambda row: (
        len(row) >= 10
        and is_hash(row[0])
        and _is_whole(row[1])
        and isinstance(row[4], bytes)
        and isinstance(row[5], bytes)
    ),
    "sent": lambda row: len(row) >= 7 and is_hash(row[1]) and _is_whole(row[2]) and isinstance(row[6], str),
    "batches": lambda row: (
        len(row) >= 12 and all(isinstance(text, str) for text in row[:3]) and _is_usd(row[8])
    ),
    "batch_requests": lambda row: (
        len(row) >= 9
        and _is_whole(row[1])
        and is_hash(row[2])
        and _is_whole(row[3])
        and isinstance(row[7], str)
    ),
    "batch_pictures": lambda row: (
        len(row) == 4 and isinstance(row[0], str) and is_hash(row[1]) and isinstance(row[2], str)
    ),
    "results": lambda row: len(row) >= 15 and is_hash(row[1]) and row[9] in _STATES,
    "asks": lambda row: len(row) == 4 and is_hash(row[0]) and _is_whole(row[1]) and is_hash(row[2]),
    "meta": lambda row: len(row) == 2 and all(isinstance(value, str) for value in row),
}


def problem_of(table: str, row: Row) -> str | None:
    """Return what is wrong with a row, in words; None for a sound one."""
    try:
        if not _FORMS[table](row):
            return "values of another kind than the table has"
        for value in row:
            if isinstance(value, str):
                value.encode("utf-8")
        check = _CHECKS.get(table)
        return None if check is None else check(row)
    except (ValueError, LookupError, TypeError, AttributeError, zlib.error, RecursionError, RunError):
        return "content that cannot be read"


def _call(row: Row) -> str | None:
    texts, numbers, usd, attempts = row[2:4], row[6:8], row[8], row[9]
    plain = all(isinstance(text, str) for text in texts)
    counted = all(number is None or isinstance(number, int) for number in numbers)
    if not (plain and counted and _is_usd(usd) and _is_whole(attempts)):
        return "values of another kind than the table has"
    Reply.from_json(unpacked(row[5]))
    return None if digest(unpacked(row[4])) == row[0] else "another request than its key says"


def _sent(row: Row) -> str | None:
    plain = all(isinstance(text, str) for text in row[3:5])
    return None if plain and _is_usd(row[5]) else "values of another kind than the table has"


def _batch_request(row: Row) -> str | None:
    if not isinstance(row[4], str) or not _is_usd(row[6]):
        return "values of another kind than the table has"
    if row[7] != "open":
        return None
    return None if digest(unpacked(row[5])) == row[2] else "another request than its key says"


def _result(row: Row) -> str | None:
    inputs, outputs, blob = json.loads(row[8]), json.loads(row[13]), row[14]
    if not isinstance(inputs, dict) or not all(isinstance(text, str) for text in row[2:5]):
        return "values of another kind than the table has"
    if row[9] != "made":
        return None if blob is None and isinstance(row[10], str) else "a reason that is not there"
    if row[4] == "table":
        digests = {name: digest_rows(lines_of(_pieces(blob), name)) for name in {"items", *outputs}}
    else:
        fields = json.loads(unzipped(blob))
        digests = {name: sha256_bytes(canonical_bytes(value)) for name, value in fields.items()}
    return None if digests == outputs else "other fields than their digests say"


def _fact(row: Row) -> str | None:
    json.loads(row[1])
    return None


_CHECKS: dict[str, Callable[[Row], str | None]] = {
    "calls": _call, "sent": _sent, "batch_requests": _batch_request, "results": _result, "meta": _fact,
}  # fmt: skip


def key_of(table: str, row: Row) -> Row:
    """Return the values by which a row is known."""
    return tuple(row[column] for column in KEYS[table])


@cache
def defaults(table: str) -> Row:
    """Return what the columns of a table hold where nothing is given: as many as this version has."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(journal_file.TABLES)
        listed = connection.execute(f"SELECT dflt_value FROM pragma_table_info('{table}')").fetchall()
        return tuple(None if text is None else connection.execute(f"SELECT {text}").fetchone()[0]
                     for (text,) in listed)  # fmt: skip


def _pieces(blob: bytes) -> Iterator[bytes]:
    yield from (blob[start : start + _PIECE] for start in range(0, len(blob), _PIECE))


SHOWN = 5
WORDS = {
    "calls": "replies of models", "sent": "requests without a reply", "batches": "batches at services",
    "batch_requests": "requests in batches",
    "batch_pictures": "pictures at services", "results": "results of stages",
    "asks": "notes of what a result was made from", "meta": "facts about the run",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a journal."""

    code: str  # ``file``, ``row`` or ``reference``
    what: str  # what is damaged, and how
    count: int  # how often
    first: tuple[str, ...]  # the first of them

    def line(self) -> str:
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return f"{self.what}: {self.count} ({', '.join(self.first)}{more})"


@dataclass(frozen=True, slots=True)
class JournalReport(Plain):
    """What a check of a journal found."""

    folder: Path  # the run
    rows: Mapping[str, int]  # table -> sound rows
    findings: tuple[Finding, ...] = ()  # what is wrong

    def lines(self) -> Iterator[str]:
        for finding in self.findings:
            yield f"damaged: {finding.line()}"
        counted = ", ".join(f"{count} {WORDS[table]}" for table, count in self.rows.items())
        yield f"{'sound' if self.findings else 'the journal is sound'}: {counted}"
        if self.findings:
            yield "--salvage keeps all that is sound in a new journal; the run then makes only what is lost"
            yield f"next: fabula run check {quoted(self.folder)} --salvage"


@dataclass(slots=True)
class Audit:
    """What goes through a journal's rows and keeps count; keys lie in memory up to some, then in a file."""

    problems: list[str] = field(default_factory=list)  # what is wrong with the file itself
    # table -> how many of its rows are sound
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    # damaged rows: table, key and what is wrong
    damaged: dict[tuple[str, Row], str] = field(default_factory=dict)
    unread: dict[tuple[str, Row], Row] = field(default_factory=dict)  # the same rows, as they are
    _known: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        self._known = scratch_file(_CACHE)
        self._known.executescript(
            "CREATE TABLE keys (mark BLOB PRIMARY KEY) WITHOUT ROWID;"
            "CREATE TABLE lists (key TEXT, stage TEXT, lines BLOB);"
            "CREATE TABLE asked (result TEXT, mark BLOB); BEGIN"
        )

    def close(self) -> None:
        """Forget everything but what is counted and damaged."""
        self._known.close()

    def sound_rows(self, path: Path) -> Iterator[tuple[str, Row]]:
        """Yield every sound row of a journal once."""
        for table, row in read_rows(path, self.problems):
            key = key_of(table, row)
            mark = (_mark(table, key),)
            if not self._known.execute("INSERT OR IGNORE INTO keys VALUES (?)", mark).rowcount:
                continue
            problem = problem_of(table, row)
            if problem is not None:
                self._known.execute("DELETE FROM keys WHERE mark = ?", mark)
                self.damaged[table, key] = problem
                self.unread[table, key] = row
                continue
            self.rows[table] += 1
            self._refer(table, row)
            yield table, row
        for double in [damaged for damaged in self.damaged if self._is_known(*damaged)]:
            del self.damaged[double], self.unread[double]  # found sound elsewhere

    def _is_known(self, table: str, key: Row) -> bool:
        sql = "SELECT 1 FROM keys WHERE mark = ?"
        return self._known.execute(sql, (_mark(table, key),)).fetchone() is not None

    def _refer(self, table: str, row: Row) -> None:
        if table == "asks":
            self._known.execute("INSERT INTO asked VALUES (?, ?)", (row[0], _mark("calls", row[2:4])))
        elif table == "results" and row[4] == "table" and row[14] is not None:
            self._known.execute("INSERT INTO lists VALUES (?, ?, ?)", (row[1], row[2], row[14]))

    def broken_lists(self) -> dict[str, str]:
        """Return key -> stage of the lists of items that name a result that is not there."""
        return {key: stage for key, stage, blob in self._known.execute("SELECT * FROM lists")
                if not all(self._is_known("results", (key,)) for key in _named_keys(blob))}  # fmt: skip

    def broken_asks(self) -> list[str]:
        """Return the keys of results whose note names a reply that is not there."""
        sql = "SELECT result FROM asked WHERE mark NOT IN keys GROUP BY result ORDER BY min(rowid)"
        return [result for (result,) in self._known.execute(sql)]

    def findings(self) -> Iterator[Finding]:
        if self.problems:
            said = tuple(self.problems[:SHOWN])
            yield Finding("file", "faults that SQLite finds in the file", len(self.problems), said)
        for (table, problem), count in Counter((row[0], why) for row, why in self.damaged.items()).items():
            rows = [key for (name, key), why in self.damaged.items() if (name, why) == (table, problem)]
            first = tuple(_named(table, key) for key in rows[:SHOWN])
            yield Finding("row", f"{WORDS[table]} with {problem}", count, first)
        lists = sorted(set(self.broken_lists().values()))
        if lists:
            yield Finding("reference", "stages whose list of items names results that are not there",
                          len(lists), tuple(lists[:SHOWN]))  # fmt: skip
        asks = self.broken_asks()
        if asks:
            first = tuple(key[:12] for key in asks[:SHOWN])
            yield Finding("reference", "results made from replies that are not there", len(asks), first)


def _mark(table: str, key: Row) -> bytes:
    """Return what stands for a row in the scratch file: 16 bytes."""
    return blake2b(repr((table, key)).encode("ascii", "backslashreplace"), digest_size=16).digest()


def _named_keys(blob: bytes) -> Iterator[str]:
    """Yield the keys of the results that a table names: what an expand or a gather brought forth."""
    for name in ("items", "kept"):
        yield from (key for _, key in lines_of(_pieces(blob), name))


def _named(table: str, key: Row) -> str:
    if table in NUMBERED or table == "meta":
        return str(key[0])[:60]
    return " ".join(str(value)[:12] for value in key)


def check_journal(folder: Path) -> JournalReport:
    """Verify every row of a run's journal. Reads only; works while the run is at work."""
    folder = Path(folder)
    path = folder / NAME
    if not path.is_file():
        raise journal_file.missing(path)
    with journal_file.explained(path), closing(Audit()) as audit:
        for _ in audit.sound_rows(path):
            pass
        return JournalReport(folder, audit.rows, tuple(audit.findings()))

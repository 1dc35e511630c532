"""The rows of a journal, as far as they can be read, and what there is to verify each of them by.

A reply is known by the digest of its request, which is kept beside it; requests, replies and results are
compressed, with a checksum; of every field of a result the digest is kept.
"""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from ..models.chat import Reply
from ..schemas.canonical import canonical_bytes, digest, sha256_bytes
from . import journal_file
from .calls import unpacked
from .raw_pages import Pages, Value

Row = tuple[Any, ...]
TABLES = ("calls", "sent", "results", "asks", "meta")
"""In the order in which they are worth saving: what was paid for comes first."""
KEYS = {"calls": (0, 1), "sent": (0,), "results": (1,), "asks": (0, 1), "meta": (0,)}
"""Table -> where the values stand by which its rows are known."""
NUMBERED = ("sent", "results")
"""Tables whose first column is the number of the row."""
_STATES = ("made", "rejected", "failed")
_PROBLEMS = 100


def read_rows(path: Path, problems: list[str]) -> Iterator[tuple[str, Row]]:
    """Yield table and values of every row that can be read; the same row may come twice.

    Where SQLite finds fault with the file, its pages are read one by one after what SQLite can read.

    Args:
        path: the journal's file.
        problems: takes what is wrong with the file itself, in the words of SQLite.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = _text
            told = connection.execute(f"PRAGMA integrity_check({_PROBLEMS})").fetchall()
            problems.extend(line for (line,) in told if line != "ok")
            for table in TABLES:
                yield from _listed(connection, table, problems)
    except sqlite3.Error as error:
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
    except (ValueError, LookupError, TypeError, AttributeError, zlib.error, RecursionError):
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


def _result(row: Row) -> str | None:
    inputs, outputs, blob = json.loads(row[8]), json.loads(row[13]), row[14]
    if not isinstance(inputs, dict) or not all(isinstance(text, str) for text in row[2:5]):
        return "values of another kind than the table has"
    if row[9] != "made":
        return None if blob is None and isinstance(row[10], str) else "a reason that is not there"
    fields = json.loads(zlib.decompress(blob))
    found = {name: sha256_bytes(canonical_bytes(value)) for name, value in fields.items()}
    return None if found == outputs else "other fields than their digests say"


def _fact(row: Row) -> str | None:
    json.loads(row[1])
    return None


_CHECKS: dict[str, Callable[[Row], str | None]] = {
    "calls": _call, "sent": _sent, "results": _result, "meta": _fact,
}  # fmt: skip


def key_of(table: str, row: Row) -> Row:
    """Return the values by which a row is known."""
    return tuple(row[place] for place in KEYS[table])


@cache
def defaults(table: str) -> Row:
    """Return what the columns of a table hold where nothing is given: as many as this version has."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(journal_file.TABLES)
        listed = connection.execute(f"SELECT dflt_value FROM pragma_table_info('{table}')").fetchall()
        return tuple(None if text is None else connection.execute(f"SELECT {text}").fetchone()[0]
                     for (text,) in listed)  # fmt: skip


def listed_keys(row: Row) -> list[str]:
    """Return the keys of the results that a list of items names: what an expand or a gather brought forth."""
    fields = json.loads(zlib.decompress(row[14]))
    return [str(key) for name in ("items", "kept") for _, key in fields.get(name, ())]

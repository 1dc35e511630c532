"""Rows of a file of JSON lines: found by id and by words, given a page at a time, never all in memory.

Where each row begins and what can be searched lies in a temporary SQLite file. A thread of its own fills it
while pages are shown, so that the first page of a large file is there at once.
"""

import json
import re
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..schemas.plain_files import open_plain, reason_of
from .records import name_of, record_of, stated

FIRST, TOGETHER = 50, 500
LONGEST_ROW = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, in the order of the file."""

    rows: tuple[tuple[int, Mapping[str, Any]], ...]  # number of the row in its file, from 0, and its content
    count: int  # how many rows fit in all, as far as is known
    whole: bool  # whether the whole file has been looked at


def words_of(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yield every text of a record."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from words_of(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from words_of(inner)


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is written or replaced; zeros where it cannot be looked at."""
    try:
        about = path.stat()
    except OSError:
        return (0, 0, 0)
    return about.st_ino, about.st_size, about.st_mtime_ns


class Rows:
    """The rows of a file of JSON lines.

    Args:
        path: the file.
        fields: fields that rows can be filtered by, such as ``method``.
    """

    def __init__(self, path: Path, fields: Sequence[str] = ()) -> None:
        self.path, self.fields, self.stamp = path, tuple(fields), stamp_of(path)
        self._lock = threading.Lock()
        self._file = tempfile.NamedTemporaryFile(prefix="fabula-view-", suffix=".sqlite")  # noqa: SIM115
        self._sql = sqlite3.connect(self._file.name, check_same_thread=False)
        columns = "".join(f", f{number} TEXT" for number in range(len(self.fields)))
        self._sql.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE rows (number INTEGER PRIMARY KEY, start INTEGER, size INTEGER, name TEXT"
            f"{columns});"
            "CREATE INDEX rows_name ON rows (name);"
            "CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='unicode61');"
        )
        self._whole, self._stopped, self._problem = False, False, ""
        self._begun = threading.Event()
        self._filling = threading.Thread(target=self._fill, name=f"index of {path.name}", daemon=True)
        self._filling.start()

    def close(self) -> None:
        """End the thread, and remove the temporary file."""
        self._stopped = True
        self._filling.join()
        self._sql.close()
        self._file.close()

    def __enter__(self) -> "Rows":
        """Return the rows; they are closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self.close()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the whole file has been looked at; return whether it has."""
        self._filling.join(seconds)
        return self._whole

    @property
    def problem(self) -> str:
        """What is wrong with the file, if anything."""
        return self._problem

    def _fill(self) -> None:
        try:
            with open_plain(self.path, follow=True) as lines:
                number, together = 0, FIRST  # what the first page shows comes first
                while chunk := list(islice(_located(lines), together)):
                    self._put(number, chunk)
                    number, together = number + len(chunk), TOGETHER
                    if self._stopped:
                        return
            self._whole = True
        except Exception as error:  # noqa: BLE001 - anybody may have made the file; the page says so
            self._problem = f"{self.path.name}: {reason_of(error)}"
        finally:
            self._begun.set()

    def _put(self, number: int, chunk: Sequence[tuple[int, bytes]]) -> None:
        rows, texts = [], []
        for at, (start, line) in enumerate(chunk, start=number):
            row = _read(line, self.path, at)
            record = stated(row)
            filtered = (_plain(record.get(field)) for field in self.fields)
            rows.append((at, start, len(line), name_of(row, at), *filtered))
            texts.append((at, _searched(row)))
        marks = ", ".join("?" * (4 + len(self.fields)))
        with self._lock, self._sql:
            self._sql.executemany(f"INSERT INTO rows VALUES ({marks})", rows)
            self._sql.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", texts)
        self._begun.set()

    def page(self, words: str = "", first: int = 0, most: int = 50, **chosen: str) -> Page:
        """Return some of the rows that hold all words and have the chosen values.

        ``words``: words or beginnings of words, in any order; all rows if empty. ``chosen``: field -> the
        value that it has.
        """
        self._begun.wait()
        where, values = self._where(words, chosen)
        with self._lock:
            (count,) = self._sql.execute(f"SELECT count(*) FROM rows {where}", values).fetchone()
            ordered = f"SELECT number, start, size FROM rows {where} ORDER BY number LIMIT ? OFFSET ?"
            places = self._sql.execute(ordered, (*values, most, first)).fetchall()
        rows = tuple((number, self._at(number, start, size)) for number, start, size in places)
        return Page(rows, count, self._whole)

    def _where(self, words: str, chosen: Mapping[str, str]) -> tuple[str, list[str]]:
        parts, values = [], []
        if terms := re.findall(r"\w+", words):
            parts.append("number IN (SELECT rowid FROM texts WHERE texts MATCH ?)")
            values.append(" ".join(f'"{term}"*' for term in terms))
        for field, value in chosen.items():
            parts.append(f"f{self.fields.index(field)} = ?")
            values.append(value)
        return ("WHERE " + " AND ".join(parts) if parts else ""), values

    def named(self, name: str) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows of a name; several where a file has several of one story."""
        with self._lock:
            sql = "SELECT number, start, size FROM rows WHERE name = ? ORDER BY number"
            places = self._sql.execute(sql, (name,)).fetchall()
        return [(number, self._at(number, start, size)) for number, start, size in places]

    def values(self, field: str, most: int = 200) -> list[tuple[str, int]]:
        """Return the values of a field, with how many rows have each; the most frequent first."""
        column = f"f{self.fields.index(field)}"
        sql = (
            f"SELECT {column}, count(*) FROM rows WHERE {column} != '' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?"
        )
        with self._lock:
            return list(self._sql.execute(sql, (most,)))

    def _at(self, number: int, start: int, size: int) -> Mapping[str, Any]:
        with open_plain(self.path, follow=True) as file:
            file.seek(start)
            return _read(file.read(size), self.path, number)


def _located(lines: Any) -> Iterator[tuple[int, bytes]]:  # noqa: ANN401 - an open file
    """Yield each line with where it begins; empty ones are passed over."""
    start = lines.tell()
    while line := lines.readline(LONGEST_ROW):
        if line.strip():
            yield start, line
        start += len(line)


def _read(line: bytes, path: Path, number: int) -> Mapping[str, Any]:
    """Return the content of a line; of one that is no JSON object, what is wrong with it or what it is."""
    try:
        row = json.loads(line)
        if b"\\ud" in line.lower():  # halves of surrogate pairs have no place in pages and addresses
            row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        return {"unreadable": f"{path.name}, line {number + 1}: {error}"}
    return row if isinstance(row, Mapping) else {"value": row}


def _searched(row: Mapping[str, Any]) -> str:
    try:
        return " ".join(words_of(record_of(row)))
    except RecursionError:  # lists in lists; the row is shown, and not found by its words
        return ""


def _plain(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):  # a judge
        value = value.get("spec") or value.get("id")
    return "" if value is None else str(value)

"""What models were asked in a run, and what came back: read from its journal, a page at a time."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..engine.calls import unpacked
from ..engine.journal_file import connect, explained

_COLUMNS = (
    "request", "sample", "stage", "model", "input_tokens", "output_tokens", "cost", "attempts", "prompt",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallLine:
    """One call, as a list shows it."""

    request: str  # hash of what was asked; with ``sample`` it names the call
    sample: int
    stage: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    attempts: int
    prompt: str | None
    items: tuple[str, ...] = ()  # the items whose results used it


class Asked:
    """The calls of a journal. It is opened to be read only.

    Raises:
        RunError: the journal is damaged or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        with explained(path):
            self._sql = connect(path, read_only=True)
            there = {row[1] for row in self._sql.execute("PRAGMA table_info(calls)")}
        # Journals of earlier versions, which are not changed to be read, have fewer columns.
        self._columns = ", ".join(
            f"calls.{name}" if name in there else f"NULL AS {name}" for name in _COLUMNS
        )
        self.any = bool(there)

    def close(self) -> None:
        """Close the journal."""
        self._sql.close()

    def __enter__(self) -> "Asked":
        """Return the calls; the journal is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the journal."""
        self.close()

    def page(self, first: int, most: int, **chosen: str) -> tuple[list[CallLine], int]:
        """Return some calls in the order of their stages, and how many there are.

        ``chosen``: column (``stage``, ``model``) -> its value.
        """
        where = " AND ".join(f"{column} = ?" for column in chosen)
        where = f"WHERE {where}" if where else ""
        values = tuple(chosen.values())
        with self._lock, explained(self._path):
            (count,) = self._sql.execute(f"SELECT count(*) FROM calls {where}", values).fetchone()
            sql = f"SELECT {self._columns} FROM calls {where} ORDER BY rowid LIMIT ? OFFSET ?"
            lines = [CallLine(*row) for row in self._sql.execute(sql, (*values, most, first))]
        return lines, int(count)

    def values(self, column: str) -> list[tuple[str, int]]:
        """Return the values of ``stage`` or ``model``, with how many calls have each."""
        with self._lock, explained(self._path):
            return list(self._sql.execute(f"SELECT {column}, count(*) FROM calls GROUP BY 1 ORDER BY 1"))

    def whole(
        self, request: str, sample: int
    ) -> tuple[CallLine, Mapping[str, Any], Mapping[str, Any]] | None:
        """Return a call, what was asked, and the reply as it came; None where there is none."""
        key = (request, sample)
        with self._lock, explained(self._path):
            sql = f"SELECT {self._columns}, asked, reply FROM calls WHERE request = ? AND sample = ?"
            row = self._sql.execute(sql, key).fetchone()
            if row is None:
                return None
            *line, asked, reply = row
            used = "SELECT DISTINCT item FROM results JOIN asks ON asks.result = results.key"
            sql = f"{used} WHERE request = ? AND sample = ? ORDER BY 1"
            items = self._sql.execute(sql, key).fetchall()
        return (
            replace(CallLine(*line), items=tuple(item for (item,) in items)),
            unpacked(asked),
            unpacked(reply),
        )

    def of_item(self, item: str) -> list[CallLine]:
        """Return the calls that results of an item used."""
        sql = (
            f"SELECT DISTINCT {self._columns} FROM results JOIN asks ON asks.result = results.key"
            " JOIN calls USING (request, sample) WHERE results.item = ? ORDER BY calls.rowid"
        )
        with self._lock, explained(self._path):
            return [CallLine(*row) for row in self._sql.execute(sql, (item,))]

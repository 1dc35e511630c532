"""A mapping that lies in memory while it is small, and in a file of its own once it has many entries.

What a walk knows of items grows with the run; with this it takes a bounded share of memory.
"""

import pickle
import sqlite3
import tempfile
import weakref
from collections.abc import Collection, ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from pathlib import Path
from typing import Any, Generic, TypeVar

from .journal_file import explained

V = TypeVar("V")

HELD = 20_000
"""Entries that stay in memory."""
_TOGETHER = 1000  # keys that are read at once
_CACHE = 4096  # KiB of memory that one file may use


def scratch_file(cache: int) -> sqlite3.Connection:
    """Return an unnamed SQLite file in the system's folder for such files, which goes with the connection."""
    file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    for pragma in (f"cache_size=-{cache}", "journal_mode=OFF", "synchronous=OFF"):
        file.execute(f"PRAGMA {pragma}").fetchone()
    return file


class Spilled(MutableMapping[str, V], Generic[V]):
    """Text -> value, in the order in which keys came first. Entries may go while one goes through them.

    Above :data:`HELD` entries it lies in an unnamed file in the system's folder for such files, which goes
    with the mapping, however the process ends.

    ``entries``: what it begins with.
    """

    def __init__(self, entries: Iterable[tuple[str, V]] = ()) -> None:
        self._held: dict[str, V] | None = {}
        self._waiting: dict[str, bytes] = {}  # to be written together
        self._file: sqlite3.Connection
        self.update(entries)

    def __len__(self) -> int:
        if self._held is not None:
            return len(self._held)
        return int(self._written().execute("SELECT count(*) FROM entries").fetchone()[0])

    def __contains__(self, key: object) -> bool:
        return key in self._held if self._held is not None else self._kept(key) is not None

    def __getitem__(self, key: str) -> V:
        if self._held is not None:
            return self._held[key]
        kept = self._kept(key)
        if kept is None:
            raise KeyError(key)
        value: V = _loaded(kept)
        return value

    def __setitem__(self, key: str, value: V) -> None:
        if self._held is None:
            self._waiting[key] = _dumped(value)
            if len(self._waiting) > _TOGETHER:
                self._written()
            return
        self._held[key] = value
        if len(self._held) > HELD:
            self._spill()

    def __delitem__(self, key: str) -> None:
        if self._held is not None:
            del self._held[key]
            return
        if not self._written().execute("DELETE FROM entries WHERE key = ?", (key,)).rowcount:
            raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        if self._held is not None:
            yield from list(self._held)
            return
        for key, _ in self._rows():
            yield key

    def items(self) -> ItemsView[str, V]:
        """Return keys and values, to be gone through in one pass over the file."""
        return _Pairs(self)

    def values(self) -> ValuesView[V]:
        return _Values(self)

    def pairs(self) -> Iterator[tuple[str, V]]:
        if self._held is not None:
            yield from list(self._held.items())
            return
        for key, kept in self._rows():
            yield key, _loaded(kept)

    def _rows(self) -> Iterator[tuple[str, bytes]]:
        sql = "SELECT number, key, value FROM entries WHERE number > ? ORDER BY number LIMIT ?"
        last = 0
        while rows := self._written().execute(sql, (last, _TOGETHER)).fetchall():
            yield from ((key, kept) for _, key, kept in rows)
            last = rows[-1][0]

    def in_order(self) -> Collection[str]:
        """Return the keys as they are now and later, sorted."""
        return _Sorted(self)

    def ordered_keys(self) -> Iterator[str]:
        """Yield the keys, sorted."""
        if self._held is not None:
            yield from sorted(self._held)
            return
        sql = "SELECT key FROM entries WHERE key > ? ORDER BY key LIMIT ?"
        last = ""
        if "" in self:
            yield ""
        while rows := self._written().execute(sql, (last, _TOGETHER)).fetchall():
            yield from (key for (key,) in rows)
            last = rows[-1][0]

    def _kept(self, key: object) -> bytes | None:
        if key in self._waiting:
            return self._waiting[str(key)]
        row = self._file.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def _written(self) -> sqlite3.Connection:
        """Return the file with all that was to be written in it."""
        if self._waiting:
            with explained(Path(tempfile.gettempdir())):
                self._file.execute("BEGIN")
                self._file.executemany(
                    "INSERT INTO entries (key, value) VALUES (?, ?)"
                    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    self._waiting.items(),
                )
                self._file.execute("COMMIT")
            self._waiting.clear()
        return self._file

    def _spill(self) -> None:
        held, self._held = self._held, None
        self._file = scratch_file(_CACHE)
        weakref.finalize(self, self._file.close)
        self._file.execute(
            "CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,"
            " value BLOB NOT NULL)"
        )
        self._waiting = {key: _dumped(value) for key, value in (held or {}).items()}


def _dumped(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _loaded(kept: bytes) -> Any:  # noqa: ANN401 - whatever was kept, by this process and nobody else
    return pickle.loads(kept)


class _Pairs(ItemsView[str, V]):
    _mapping: Spilled[V]

    def __iter__(self) -> Iterator[tuple[str, V]]:
        return self._mapping.pairs()


class _Values(ValuesView[V]):
    _mapping: Spilled[V]

    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._mapping.pairs())


class _Sorted(Collection[str]):
    def __init__(self, entries: "Spilled[Any]") -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return self._entries.ordered_keys()


def keys_only(keys: Iterable[str] = ()) -> "Spilled[None]":
    """Return a set of texts that remembers the order in which they came."""
    return Spilled((key, None) for key in keys)

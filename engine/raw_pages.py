"""Rows read from the pages of a SQLite file, without SQLite: what is left where that calls it malformed.

Every page says by itself which rows it holds, so that one damaged page hides no other. The form of pages and
records is that of https://www.sqlite.org/fileformat2.html; pages of the write-ahead log replace those of the
file. What comes out may be anything: whoever uses a row has to check it.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

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

    Args:
        path: the file; a log beside it ends in ``-wal``.

    Raises:
        OSError: it cannot be read.
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

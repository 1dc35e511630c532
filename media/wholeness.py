"""Whether a video file has all that its container says it has: sizes, the chain of its parts, checksums.

A decoder that meets the end of a cut file just stops, and one that meets garbled bytes looks for the next
frame; neither says so. What a container states about itself does.
"""

import mmap
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from ..schemas.plain_files import open_plain

Fault = tuple[Literal["truncated", "damaged"], str]
"""What is wrong with a file: a code of :class:`.problems.MediaProblem`, and what was found."""

_ENDS_EARLY = "the file ends early"
_EBML, _SEGMENT, _CLUSTER, _CRC = 0x1A45DFA3, 0x18538067, 0x1F43B675, 0xBF
_PARTS = {0x114D9B74, 0x1549A966, 0x1654AE6B, _CLUSTER, 0x1C53BB6B, 0x1941A469, 0x1043A770, 0x1254C367}
_IN_CLUSTER = {0xE7, 0xA3, 0xA0, 0xAB, 0xA7, 0xAF, 0x5854}
_ANYWHERE = {0xEC, _CRC}  # padding, checksum
_TS_PACKET = 188


def fault_of(path: Path) -> Fault | None:
    """Return what the container shows to be wrong; None where nothing is, or where it states nothing.

    ``path``: a file that is not empty.
    """
    with open_plain(path, follow=True) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _check_of(data)(data)
        except (IndexError, EOFError):
            return "truncated", _ENDS_EARLY
        except ValueError as error:
            return "damaged", str(error)


def _check_of(data: mmap.mmap) -> Callable[[mmap.mmap], Fault | None]:
    start = data[:12]
    if start.startswith(b"\x1a\x45\xdf\xa3"):
        return _matroska
    if start[:6] in (b"GIF87a", b"GIF89a"):
        return _gif
    if start[4:8] == b"ftyp":
        return _mp4
    if start[:4] == b"RIFF":
        return _riff
    if start[:1] == b"\x47" and data[_TS_PACKET : _TS_PACKET + 1] == b"\x47":
        return _transport_stream
    return lambda _: None


def _matroska(data: mmap.mmap) -> Fault | None:
    at = 0
    while at < len(data):
        name, size, inside = _element(data, at)
        end = len(data) if size is None else inside + size
        if name == _SEGMENT:
            _check_parts(data, inside, end)
        elif name != _EBML and name not in _ANYWHERE:
            return None  # something was appended
        at = end
    if at > len(data):
        raise EOFError
    return None


def _check_parts(data: mmap.mmap, at: int, end: int) -> None:
    """Raise where the parts of a segment do not follow each other to its end, or a checksum is wrong."""
    while at < end:
        name, size, inside = _element(data, at)
        if name not in _PARTS | _ANYWHERE:
            raise ValueError(f"no part of a Matroska file at byte {at:,}")
        if size is None:  # of a live recording: its blocks stand here as if they were parts
            at = _end_of_open_cluster(data, inside, end)
            continue
        at = inside + size
        if at > len(data):
            raise EOFError
        _check_sum(data, inside, at)
        if name == _CLUSTER:
            _check_cluster(data, inside, at)


def _check_cluster(data: mmap.mmap, at: int, end: int) -> None:
    while at < end:
        name, size, inside = _element(data, at)
        if name not in _IN_CLUSTER | _ANYWHERE or size is None or inside + size > end:
            raise ValueError(f"no block of a Matroska file at byte {at:,}")
        at = inside + size


def _end_of_open_cluster(data: mmap.mmap, at: int, end: int) -> int:
    while at < end:
        name, size, inside = _element(data, at)
        if name not in _IN_CLUSTER | _ANYWHERE:
            return at
        if size is None or inside + size > len(data):
            raise EOFError
        at = inside + size
    return at


def _check_sum(data: mmap.mmap, at: int, end: int) -> None:
    if end - at < 6 or data[at] != _CRC or data[at + 1] != 0x84:
        return
    if zlib.crc32(data[at + 6 : end]) != int.from_bytes(data[at + 2 : at + 6], "little"):
        raise ValueError(f"bytes {at:,} to {end:,} are not those of their checksum")


def _element(data: mmap.mmap, at: int) -> tuple[int, int | None, int]:
    """Return name, size (None where it is not stated) and place of the content of an element."""
    length = _length(data[at], 4, at)
    name = int.from_bytes(data[at : at + length], "big")
    at += length
    length = _length(data[at], 8, at)
    if at + length > len(data):
        raise EOFError
    most = (1 << (7 * length)) - 1
    size = int.from_bytes(data[at : at + length], "big") & most
    return name, None if size == most else size, at + length


def _length(first: int, most: int, at: int) -> int:
    length = 9 - first.bit_length()
    if length > most:
        raise ValueError(f"no part of a Matroska file at byte {at:,}")
    return length


def _gif(data: mmap.mmap) -> Fault | None:
    at = 13 + _colours(data[10])
    while (kind := data[at]) != 0x3B:
        if kind == 0x21:
            at = _after_blocks(data, at + 2)
        elif kind == 0x2C:
            at = _after_blocks(data, at + 11 + _colours(data[at + 9]))
        else:
            raise ValueError(f"no part of a GIF at byte {at:,}")
    return None


def _colours(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_blocks(data: mmap.mmap, at: int) -> int:
    while size := data[at]:
        at += 1 + size
    return at + 1


def _mp4(data: mmap.mmap) -> Fault | None:
    return _ends_in_time(data, _boxes(data))


def _boxes(data: mmap.mmap) -> Iterator[int]:
    """Yield the end of each box at the top level."""
    at = 0
    while at + 8 <= len(data) and data[at + 4 : at + 8].isalnum():
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16], "big")
        if size < 8:  # 0: to the end of the file
            return
        at += size
        yield at


def _riff(data: mmap.mmap) -> Fault | None:
    return _ends_in_time(data, _riffs(data))


def _riffs(data: mmap.mmap) -> Iterator[int]:
    """Yield the end of each part of an AVI; one that was never finished states no size."""
    at = 0
    while data[at : at + 4] == b"RIFF" and (size := int.from_bytes(data[at + 4 : at + 8], "little")):
        if size == 0xFFFFFFFF:
            return
        at += 8 + size
        yield at


def _ends_in_time(data: mmap.mmap, ends: Iterator[int]) -> Fault | None:
    return ("truncated", _ENDS_EARLY) if any(end > len(data) for end in ends) else None


def _transport_stream(data: mmap.mmap) -> Fault | None:
    return ("truncated", "its last packet is cut off") if len(data) % _TS_PACKET else None


def entries_of_no_bytes(path: Path, stream: int) -> int:
    """Return how many empty entries the index of an AVI has for a stream: there the frame before stays."""
    with open_plain(path, follow=True) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = 12
        while at + 8 <= len(data):
            size = int.from_bytes(data[at + 4 : at + 8], "little")
            if data[at : at + 4] == b"idx1":
                entries = struct.iter_unpack("<4sIII", data[at + 8 : at + 8 + size - size % 16])
                names = (b"%02ddc" % stream, b"%02ddb" % stream)
                return sum(name in names and not length for name, _, _, length in entries)
            at += 8 + size + size % 2
    return 0

"""What stands beside the pixels of a picture's file: what cannot be read, or is far too much, is left out.

Pillow refuses whole pictures for a large text, a checksum of a comment or a short profile; viewers show them.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MOST_READ = 4_000_000
"""Bytes beside the pixels that are read, unpacked; what comes behind them is left out."""
LARGEST = 1_000_000
"""Bytes that one text or profile of a PNG may have, unpacked: Pillow unpacks no more."""

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_TEXTS = {b"tEXt": "text", b"zTXt": "text", b"iTXt": "text", b"iCCP": "profile", b"eXIf": "EXIF"}
_APPS = {0xE0: "JFIF", 0xE1: "EXIF or XMP", 0xE2: "profile", 0xEE: "Adobe", 0xFE: "comment"}
_SHORTEST = {(0xE0, b"JFIF"): 14, (0xE2, b"ICC_PROFILE"): 14, (0xEE, b"Adobe"): 12}
"""Bytes that a segment of a JPEG has at least, by marker and by what it begins with."""
_PIXELS_OF_WEBP = (b"VP8 ", b"VP8L", b"ANMF")


@dataclass(slots=True)
class _Kept:
    """The parts of a file that are kept."""

    parts: list[bytes] = field(default_factory=list)  # their bytes, in order
    # what each part was that is left out though it could have been of use
    left_out: set[str] = field(default_factory=set)
    read: int = 0  # bytes beside the pixels so far, unpacked

    def take(self, part: bytes, name: str, size: int | None) -> None:
        """Keep a part of some size, unpacked; None says that it cannot be read."""
        if size is None or self.read + size > MOST_READ:
            self.left_out.add(name)
        else:
            self.parts.append(part)
            self.read += size


def without_oddities(data: bytes) -> tuple[bytes, list[str]]:
    """Return a picture's file without what is odd beside its pixels, and notes: ``beside``, ``animated``.

    The parts that decide about pixels stay as they are, whole or damaged. Of an animated PNG the first
    picture stays.
    """
    ways: tuple[tuple[bytes, Callable[[bytes], tuple[_Kept, list[str]]]], ...]
    ways = ((_PNG, _png), (_JPEG, _jpeg), (b"RIFF", _webp))
    way = next((way for start, way in ways if data.startswith(start)), None)
    if way is None:
        return data, []
    kept, notes = way(data)
    if kept.left_out:
        names = ", ".join(sorted(kept.left_out))
        notes.append(f"beside: {names} left out, damaged or very large")
    return b"".join(kept.parts), notes


def _png(data: bytes) -> tuple[_Kept, list[str]]:
    kept = _Kept([_PNG])
    at, frames, in_animation, pixels = len(_PNG), 0, False, False
    while at + 8 <= len(data):
        size, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + size
        if end > len(data) or not name.isalpha():
            break
        part, content, at = data[at:end], data[at + 8 : end - 4], end
        pixels = pixels or name == b"IDAT"
        if name[:1].isupper() or name == b"tRNS":
            kept.parts.append(part)
        elif name in _TEXTS:
            sound = zlib.crc32(part[4:-4]) == int.from_bytes(part[-4:], "big")
            kept.take(part, _TEXTS[name], _size_of_text(name, content) if sound else None)
        elif name == b"acTL" and size == 8:
            frames = int.from_bytes(content[:4], "big")
        elif name == b"fcTL" and not pixels:
            in_animation = True
    else:
        at = len(data)
    if at < len(data):
        _take_rest(kept, data[at:], pixels=pixels)
    moves = frames > 1 or (frames == 1 and not in_animation)
    return kept, ["animated: only the first frame is used"] if moves else []


def _take_rest(kept: _Kept, rest: bytes, *, pixels: bool) -> None:
    """Keep what is no whole chunk, unless it is a text behind the pixels that was cut off."""
    if pixels and rest[4:8] in _TEXTS:
        kept.left_out.add(_TEXTS[rest[4:8]])
    else:
        kept.parts.append(rest)


def _size_of_text(name: bytes, content: bytes) -> int | None:
    """Return how many bytes a text, profile or EXIF block has unpacked; None where it cannot be read."""
    if name in (b"tEXt", b"eXIf"):
        return len(content) if len(content) <= LARGEST else None
    _, end, rest = content.partition(b"\0")
    if name == b"iTXt":
        packed, method, rest = rest[:1] == b"\1", rest[1:2], rest[2:]
        rest = rest.split(b"\0", 2)[-1]
    else:
        packed, method, rest = True, rest[:1], rest[1:]
    if not end or method != b"\0":
        return None
    if not packed:
        return len(rest) if len(rest) <= LARGEST else None
    try:
        unpacked = len(zlib.decompressobj().decompress(rest, LARGEST + 1))
    except zlib.error:
        return None
    return unpacked if unpacked <= LARGEST else None


def _jpeg(data: bytes) -> tuple[_Kept, list[str]]:
    kept = _Kept([data[:2]])
    at = 2
    for marker, start, end in _segments(data):
        part, content, at = data[start:end], data[start + 4 : end], end
        if 0xE0 <= marker <= 0xEF or marker == 0xFE:
            shortest = max(
                (n for (m, s), n in _SHORTEST.items() if m == marker and content.startswith(s)), default=0
            )
            kept.take(part, _APPS.get(marker, "data"), None if len(content) < shortest else len(content))
        else:
            kept.parts.append(part)
    kept.parts.append(data[at:])
    return kept, []


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield marker, start and end of the segments of a JPEG before its pixels."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and 0xC0 <= data[at + 1] <= 0xFE and data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if end > len(data) or end < at + 4:
            return
        yield data[at + 1], at, end
        at = end


def _webp(data: bytes) -> tuple[_Kept, list[str]]:
    """Keep all, but for a part behind the pixels that goes beyond the end of the file."""
    at, pixels = 12, False
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        if end > len(data):
            break
        pixels = pixels or data[at : at + 4] in _PIXELS_OF_WEBP
        at = end + end % 2
    if data[8:12] != b"WEBP" or not pixels or at >= len(data) or data[at : at + 4] in _PIXELS_OF_WEBP:
        return _Kept([data]), []
    return _Kept([b"RIFF", (at - 8).to_bytes(4, "little"), data[8:at]], {"EXIF or XMP"}), []

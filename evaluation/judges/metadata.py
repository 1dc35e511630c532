"""What the file of a picture holds besides pixels, read from its bytes without decoding it."""

import re
from functools import lru_cache

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_NEEDED = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
# FF is followed by 00 where it is data and by D0 to D7 where decoding may start again.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_SOS, _EOI, _APP0 = 0xDA, 0xD9, 0xE0
# Tables and frame headers: DHT, DQT, DRI and the SOF family.
_JPEG_NEEDED = {0xDB, 0xDD, *range(0xC0, 0xD0)}
_JFIF_WITHOUT_THUMBNAIL = 16


@lru_cache(maxsize=64)
def foreign_chunks(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return what a PNG or JPEG file holds besides pixels: name of the chunk, start of its content.

    A file of any other format, or a damaged one, is reported as a whole: re-encoded pictures are neither.
    """
    try:
        if data.startswith(_PNG):
            return tuple(_png(data))
        if data.startswith(b"\xff\xd8"):
            return tuple(_jpeg(data))
    except (IndexError, ValueError):
        return (("damaged file", shown(data)),)
    return (("file that is not a PNG or JPEG", shown(data)),)


def shown(data: bytes) -> str:
    """Return the start of some bytes as one line of text."""
    return data[:40].decode("latin-1").encode("unicode_escape").decode("ascii")


def _png(data: bytes) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place = len(_PNG)
    while place < len(data):
        size, name = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        content = data[place + 8 : place + 8 + size]
        if len(name) < 4 or len(content) < size:
            raise ValueError("a chunk is cut")
        if name not in _PNG_NEEDED:
            found.append((f"PNG chunk {shown(name)}", shown(content)))
        place += 12 + size
        if name == b"IEND":
            return [*found, *_rest(data[place:])]
    raise ValueError("no end")


def _jpeg(data: bytes) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place = 2
    while True:
        if data[place] != 0xFF:
            raise ValueError("no marker")
        marker = data[place + 1]
        if marker == _EOI:
            return [*found, *_rest(data[place + 2 :])]
        size = int.from_bytes(data[place + 2 : place + 4], "big")
        content = data[place + 4 : place + 2 + size]
        plain = marker == _APP0 and content[:5] == b"JFIF\x00" and size == _JFIF_WITHOUT_THUMBNAIL
        if marker not in _JPEG_NEEDED and marker != _SOS and not plain:
            found.append((f"JPEG segment {marker:02X}", shown(content)))
        place += 2 + max(size, 2)
        if marker == _SOS:
            following = _MARKER.search(data, place)
            if following is None:
                raise ValueError("no end")
            place = following.start()


def _rest(data: bytes) -> list[tuple[str, str]]:
    return [("bytes after the picture", shown(data))] if data else []

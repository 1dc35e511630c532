"""Every text that a content may be read as: as it stands, and under encodings that hide it from a search.

Sought are UTF-16, percent signs, JSON and Markdown escapes, HTML entities, invisible characters, base64 and
hexadecimal digits, in any order and number. Every step works on the result of another, so that the whole is
bounded: what is decoded may be a few times as long as the content, and no longer.
"""

import binascii
import html
import re
import unicodedata
from collections.abc import Iterator

_MOST = 8
"""How many times the length of a content its decoded texts may have, all together."""
_FREE = 20_000
"""Characters that are decoded of any content, however short."""
_WIDE_LETTERS = re.compile(rb"(?:[ -~]\x00){6,}|(?:\x00[ -~]){6,}")
_LONG_ENOUGH = 120
"""Bytes from which a decoded piece may be UTF-16 without zeros in it, as texts of some scripts are."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
_NO_TEXT = "\x00-\x08\x0e-\x1f\x7f\ue000-\uf8ff\ufffd\ufffe\uffff\U000f0000-\U0010ffff"
_RUN_OF_TEXT = re.compile(f"[^{_NO_TEXT}]{{6,}}")
_WIDE_RUN = re.compile(f"[^{_NO_TEXT}]{{40,}}")
"""Of any bytes as UTF-16 seven in eight are characters that a text may have."""
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ESCAPE = re.compile(
    r"(?:\\u[0-9A-Fa-f]{4})+|\\x[0-9A-Fa-f]{2}|\\U[0-9A-Fa-f]{8}|\\[nrtbfv]|\\([!-/:-@\[-`{-~])"
)
_RUN = r"[A-Za-z0-9+/_-]{16,}"
_BASE64 = re.compile(rf"{_RUN}(?:\s{{1,9}}{_RUN})*(?:\s{{1,9}}[A-Za-z0-9+/_-]{{2,15}}(?![A-Za-z0-9+/_-]))?")
_CHUNK = re.compile(_RUN)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){10,}")
_CODED = re.compile(rf"[%&\\\x00]|{_INVISIBLE.pattern}|{_RUN}")
_PIECE = re.compile(r"\S{1,1000}|\s+")
_ALPHABET = str.maketrans("-_", "+/")


class TooMuchEncoded(ValueError):
    """A content unfolds into more text than can be searched."""


def plain(text: str) -> str:
    """Return a text as it is compared: without invisible characters, in one form and one case."""
    if text.isascii():
        return text.casefold()
    # In pieces: a run of accents as long as a book is sorted, which takes the square of its length.
    pieces = (unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(_INVISIBLE.sub("", text)))
    return "".join(pieces).casefold()


def readings(content: bytes | str) -> Iterator[str]:
    """Yield every text that a content may be read as, in the form of :func:`plain`; the plain text first.

    Raises:
        TooMuchEncoded: more is encoded in it than can be searched.
    """
    waiting = [content] if isinstance(content, str) else list(_texts(content))
    left = _MOST * len(content) + _FREE
    seen: set[tuple[int, int]] = set()
    while waiting:
        text = waiting.pop()
        if (key := key_of(text)) in seen:
            continue
        seen.add(key)
        yield plain(text)
        if _CODED.search(text) is None:
            continue
        for reading in _decoded(text):
            left -= len(reading)
            if left < 0:
                raise TooMuchEncoded("more text is encoded in it than can be searched")
            waiting.append(reading)


def key_of(content: bytes | str) -> tuple[int, int]:
    """Return what tells a content from others: two texts of the same bytes in memory have the same hash."""
    return len(content), hash(content)


def _decoded(text: str) -> Iterator[str]:
    """Yield what a text stands for one step further, and the texts of what is encoded in it."""
    step = _unescaped(text)
    if step != text:
        yield step
    if "\0" in text:
        yield from _wide(text.encode("utf-8", "surrogatepass"))
    for match in _BASE64.finditer(text):
        for piece in dict.fromkeys(("".join(match[0].split()), *_CHUNK.findall(match[0]))):
            for content in _from_base64(piece):
                yield from _texts_inside(content)
    for match in _HEX.finditer(text):
        yield from _texts_inside(bytes.fromhex(match[0]))


def _unescaped(text: str) -> str:
    if "%" in text:
        text = _PERCENT.sub(lambda match: _of_bytes(bytes.fromhex(match[0].replace("%", ""))), text)
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    if "&" in text:
        text = html.unescape(text)
    return text if text.isascii() else _INVISIBLE.sub("", text)


def _unescape(match: re.Match[str]) -> str:
    escape = match[0]
    if escape.startswith("\\u"):
        return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "replace")
    if escape.startswith(("\\x", "\\U")):
        number = int(escape[2:], 16)
        return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else ""
    return match[1] or " "


def _from_base64(run: str) -> Iterator[bytes]:
    """Yield what a run of letters decodes to; what comes before the code may be up to three letters of it."""
    letters = run.translate(_ALPHABET)
    if letters == letters.lower() and _HEX.fullmatch(letters):  # a hash
        return
    for start in range(4):
        part = letters[start:]
        part = part[: len(part) - (len(part) % 4 == 1)]
        yield binascii.a2b_base64(part + "=" * (-len(part) % 4))


def _texts(content: bytes) -> Iterator[str]:
    """Yield the texts of a file: of UTF-8, and of UTF-16 where it is none."""
    try:
        yield content.decode("utf-8-sig")
        return  # zeros are looked at as any other code
    except UnicodeDecodeError:
        yield from _wide(content)
        yield content.decode("utf-8", "replace")


def _texts_inside(content: bytes) -> Iterator[str]:
    """Yield the texts among bytes that were found in a text; of most bytes there are none."""
    if listed := "\n".join(_RUN_OF_TEXT.findall(_of_bytes(content))):
        yield listed
    if b"\0" in content or (len(content) >= _LONG_ENOUGH and not content.isascii()):
        yield from _wide(content)


def _wide(content: bytes) -> Iterator[str]:
    """Yield the texts among bytes as UTF-16, of either order, from either byte on."""
    if b"\0" in content and (letters := b"\n".join(_WIDE_LETTERS.findall(content))):
        yield letters.replace(b"\0", b"").decode("ascii")
    for start in (0, 1):
        part = content[start : len(content) - (len(content) - start) % 2]
        for order in ("utf-16-le", "utf-16-be"):
            text = part.decode(order, "replace")
            if _RUN_OF_TEXT.fullmatch(text):
                yield text
            elif listed := "\n".join(_WIDE_RUN.findall(text)):
                yield listed


def _of_bytes(content: bytes) -> str:
    return content.decode("utf-8", "replace")

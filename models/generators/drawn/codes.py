"""Emblems: the squares of coloured cells by which a mark is known again, from a text to cells and back.

An emblem has five by five cells of four colours, two bits each: the kind of the mark (4 bits), a number that
follows from its text (32 bits), and check bits of both (14 bits). The four colours differ in brightness, so
that the cells survive what encoders do to colours. That an arbitrary square of a picture passes for an
emblem takes each cell near one of the four brightnesses and the check bits right by chance, 1 in 16,384.
"""

import hashlib
from typing import get_args

from ....schemas.canonical import sha256_bytes
from ....schemas.text import normalize_answer
from .scene import MarkKind

SIDE = 5
"""Cells of an emblem in a row, and rows."""
COLOURS = ((26, 30, 74), (176, 66, 70), (116, 192, 140), (252, 240, 188))
"""Colour of a cell of value 0 to 3, as sRGB; their brightnesses are about 34, 99, 163 and 238 of 255."""
KINDS: tuple[MarkKind, ...] = get_args(MarkKind)
_KIND_BITS, _NUMBER_BITS, _CHECK_BITS = 4, 32, 14


def code_of(text: str) -> str:
    """Return the code of a text: 8 hexadecimal digits, equal for texts that differ in case and punctuation.

    >>> code_of("The Ant.") == code_of("the ant")
    True
    """
    return sha256_bytes((normalize_answer(text) or text).encode("utf-8"))[: _NUMBER_BITS // 4]


def cells_of(kind: MarkKind, code: str) -> tuple[int, ...]:
    """Return the values of an emblem's 25 cells, 0 to 3, row by row."""
    number = int(code, 16)
    value = (KINDS.index(kind) << _NUMBER_BITS | number) << _CHECK_BITS | _check(kind, number)
    return tuple(value >> 2 * (SIDE * SIDE - 1 - cell) & 3 for cell in range(SIDE * SIDE))


def read_cells(cells: tuple[int, ...]) -> tuple[MarkKind, str] | None:
    """Return the kind and code that cells stand for; None where the check bits do not fit."""
    value = 0
    for cell in cells:
        value = value << 2 | cell
    check = value & (1 << _CHECK_BITS) - 1
    number = value >> _CHECK_BITS & (1 << _NUMBER_BITS) - 1
    kind_number = value >> _CHECK_BITS + _NUMBER_BITS
    if kind_number >= len(KINDS) or _check(KINDS[kind_number], number) != check:
        return None
    return KINDS[kind_number], f"{number:0{_NUMBER_BITS // 4}x}"


def _check(kind: MarkKind, number: int) -> int:
    content = bytes([KINDS.index(kind)]) + number.to_bytes(_NUMBER_BITS // 8, "big")
    whole = int.from_bytes(hashlib.sha256(content).digest()[:2], "big")
    return whole >> 16 - _CHECK_BITS


def choice(text: str, purpose: str, options: int) -> int:
    """Return a number below ``options`` that follows from a text, another for each purpose.

    By it a figure of a name has the same shape and colour in every picture.
    """
    content = f"{purpose}\0{normalize_answer(text) or text}".encode()
    return int(sha256_bytes(content)[:12], 16) % options

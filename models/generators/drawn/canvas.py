"""A drawing surface of whole pixels: nothing is smoothed, so that every machine draws the same."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from ....schemas.canonical import sha256_bytes
from ....schemas.text import normalize_answer
from .scene import BORDER, CELL, EMBLEM, Frame, MarkKind, Slot

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Emblems: the squares of coloured cells by which a mark is known again, from a text to cells and back
#
# An emblem has five by five cells of four colours, two bits each: the kind of the mark (4 bits), a number
# that follows from its text (32 bits), and check bits of both (14 bits). The four colours differ in
# brightness, so that the cells survive what encoders do to colours. That an arbitrary square of a picture
# passes for an emblem takes each cell near one of the four brightnesses and the check bits right by
# chance, 1 in 16,384.

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


# --

Colour = tuple[int, int, int]
Point = tuple[float, float]
Square = tuple[float, float, float, float]

INK: Colour = (28, 26, 38)
NEUTRAL = "no feeling is shown"
"""What the emblem of a feeling stands for where the feeling was taken away."""


def whole(value: float) -> int:
    """Return the nearest whole number, halves upwards."""
    return int((value + 0.5) // 1)


@dataclass(frozen=True)
class Canvas:
    """An RGB image to draw on, in pixels; points may lie between pixels and are rounded."""

    image: "Image"

    @property
    def frame(self) -> Frame:
        """Its size."""
        return Frame(self.image.width, self.image.height)

    def box(self, square: Square, colour: Colour) -> None:
        """Fill a rectangle; what is outside the picture is left out."""
        from PIL import ImageDraw

        left, top, right, bottom = (whole(value) for value in square)
        if right > left and bottom > top:
            ImageDraw.Draw(self.image).rectangle((left, top, right - 1, bottom - 1), fill=colour)

    def shape(self, points: Sequence[Point], colour: Colour, *, outline: float = 0.0) -> None:
        """Fill a polygon; with an outline of so many pixels."""
        from PIL import ImageDraw

        corners = [(whole(x), whole(y)) for x, y in points]
        draw = ImageDraw.Draw(self.image)
        draw.polygon(corners, fill=colour)
        if outline:
            width = max(1, whole(outline))
            draw.line([*corners, corners[0], corners[1]], fill=INK, width=width, joint="curve")

    def disc(self, square: Square, colour: Colour, *, outline: float = 0.0) -> None:
        """Fill an ellipse; with an outline of so many pixels."""
        from PIL import ImageDraw

        left, top, right, bottom = (whole(value) for value in square)
        if right > left and bottom > top:
            width = max(1, whole(outline)) if outline else 0
            ImageDraw.Draw(self.image).ellipse(
                (left, top, right - 1, bottom - 1), fill=colour, outline=INK if width else None, width=width
            )

    def arc(self, square: Square, start: int, end: int, width: float) -> None:
        """Draw part of an ellipse's edge, from one angle to another, in degrees from the right, downwards."""
        from PIL import ImageDraw

        left, top, right, bottom = (whole(value) for value in square)
        if right > left and bottom > top:
            ImageDraw.Draw(self.image).arc(
                (left, top, right - 1, bottom - 1), start, end, fill=INK, width=max(1, whole(width))
            )

    def line(self, points: Sequence[Point], width: float, colour: Colour = INK) -> None:
        """Draw a line through points."""
        from PIL import ImageDraw

        corners = [(whole(x), whole(y)) for x, y in points]
        ImageDraw.Draw(self.image).line(corners, fill=colour, width=max(1, whole(width)))

    def emblem(self, slot: Slot, kind: MarkKind, code: str) -> None:
        """Draw the emblem of a mark."""
        self.box(slot.around(EMBLEM), INK)
        left, top = (centre - SIDE * CELL * slot.unit / 2 for centre in (slot.x, slot.y))
        side = CELL * slot.unit
        for number, value in enumerate(cells_of(kind, code)):
            row, column = divmod(number, SIDE)
            square = (left + column * side, top + row * side, left + (column + 1) * side,
                      top + (row + 1) * side)  # fmt: skip
            self.box(square, COLOURS[value])


def blank(width: int, height: int, colour: Colour) -> Canvas:
    """Return a surface of one colour."""
    from PIL import Image

    return Canvas(Image.new("RGB", (width, height), colour))


__all__ = ["BORDER", "INK", "NEUTRAL", "Canvas", "Colour", "Point", "Square", "blank", "whole"]

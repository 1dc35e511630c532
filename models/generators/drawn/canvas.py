"""A drawing surface of whole pixels: nothing is smoothed, so that every machine draws the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .codes import COLOURS, SIDE, cells_of
from .layout import BORDER, CELL, EMBLEM, Frame, Slot
from .scene import MarkKind

if TYPE_CHECKING:
    from PIL.Image import Image

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

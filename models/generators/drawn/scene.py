"""A scene as data: what a drawn picture is made from, and what is known of every picture that was drawn.

A mark is one thing that a picture has to show, named by a text. Marks of equal text look the same in every
picture, whoever asks for it, so that who is in one panel can be known again in the next.

A scene from a prompt alone: what a renderer draws that is given words and no data.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field

from ....schemas.canonical import sha256_bytes
from ....schemas.text import normalize_answer
from ....schemas.values import Own

if TYPE_CHECKING:
    from PIL.Image import Image

Form = Literal["panel", "portrait", "panorama"]
"""A panel of a storyboard or a keyframe of a shot; one entity on a ground of one colour; a wide place."""
MarkKind = Literal[
    "character",
    "object",
    "place",
    "action",
    "state",
    "emotion",
    "must_show",
    "cause",
    "intention",
    "consequence",
    "change",
    "moral",
]
"""What a mark stands for: of a scene the first seven, of a transition the others."""


class Mark(Own):
    """One thing that a picture has to show."""

    kind: MarkKind = Field(description="What it is.")
    text: str = Field(min_length=1, description="What is shown, in words; by it a mark is known again.")


class DrawnScene(Own):
    """What one picture has to show."""

    form: Form = Field(default="panel", description="What sort of picture.")
    marks: tuple[Mark, ...] = Field(default=(), description="What is in it, the most important first.")
    ground: str | None = Field(
        default=None, pattern=r"^#[0-9a-fA-F]{6}$", description="Colour behind a portrait, as #rrggbb."
    )


LABELS: dict[str, MarkKind] = {
    "who": "character", "characters": "character", "character": "character", "with": "object",
    "things": "object", "thing": "object", "objects": "object", "object": "object", "place": "place",
    "where": "place", "setting": "place", "action": "action", "what is done": "action", "state": "state",
    "how things stand": "state", "feeling": "emotion", "emotion": "emotion", "must be visible": "must_show",
    "must show": "must_show", "cause": "cause", "intention": "intention", "outcome": "consequence",
    "consequence": "consequence", "what changes": "change", "change": "change", "value": "moral",
    "moral": "moral",
}  # fmt: skip
"""What stands before a colon at the beginning of a line -> the kind of what follows."""
_LISTED = ("character", "object", "must_show", "place")
"""Kinds of which a line may name several, parted by semicolons."""
_LABEL = re.compile(r"[-*\s]*([^:,;]{2,40})(?:,[^:;]{0,40})?:\s+(.+)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?。！？।])\s+")
_PARTS = re.compile(r"\s*[;；]\s*")
_ABOUT = re.compile(r"\b(storyboard|pictures?|images?|panel|scene before|next scene)\b", re.IGNORECASE)
_ENDS = " \t.,;:!?。！？।"


def scene_of(prompt: str) -> DrawnScene:
    """Return what a prompt asks to be seen.

    A line that begins with a known label, such as ``Feeling: The ant is afraid.``, is a mark of that kind, or
    several, parted by semicolons, for who is there, things, places and what must be visible. Any other line
    is phrases, parted at the ends of sentences and at semicolons. Sentences about pictures, and what ends
    with a colon, are left out.
    """
    marks: dict[str, Mark] = {}
    for line in prompt.splitlines():
        for kind, text in _marks(line.strip()):
            marks.setdefault(text.casefold(), Mark(kind=kind, text=text))
    return DrawnScene(marks=tuple(marks.values()))


def phrases_of(text: str) -> tuple[str, ...]:
    """Return the phrases of a text, parted at ends of sentences and at semicolons, without final marks."""
    parts = (part for sentence in _SENTENCE.split(text) for part in _PARTS.split(sentence))
    return tuple(part.strip(_ENDS) for part in parts if part.strip(_ENDS))


def _marks(line: str) -> Iterator[tuple[MarkKind, str]]:
    label = _LABEL.fullmatch(line)
    kind = None if label is None else LABELS.get(label[1].strip().casefold())
    if label is not None and kind is not None:
        texts = _PARTS.split(label[2]) if kind in _LISTED else [label[2]]
        yield from ((kind, text.strip(_ENDS)) for text in texts if text.strip(_ENDS))
        return
    words = line if label is None else label[2]
    for sentence in _SENTENCE.split(words):
        if not _ABOUT.search(sentence) and not sentence.rstrip().endswith(":"):
            yield from (("must_show", phrase) for phrase in phrases_of(sentence))


# -- Where things stand in a drawn picture: rows and columns of places, the same for whoever draws and reads
#
# Everything is measured in units: a 256th of the shorter side. Columns are twelfths of the width, rows are
# counted from the bottom (places from the top), so that a picture can be read at any size and shape.

COLUMNS = 12
CELL, BORDER = 3.0, 1.5
"""Side of an emblem's cell, and width of its border, in units."""
EMBLEM = 5 * CELL + 2 * BORDER
"""Side of an emblem, in units."""

Row = Literal["top", "air", "chest", "ground", "upper", "lower", "portrait"]
HEIGHTS: dict[Row, float] = {
    "air": 190.0, "chest": 124.0, "ground": 70.0, "upper": 39.0, "lower": 12.0,
}  # fmt: skip
"""Row of emblems -> distance of their centres from the bottom, in units."""
TOP = 19.0
"""Distance of the centres of the top row from the top, in units."""
FEET, OBJECT_TOP, HORIZON = 84.0, 106.0, 112.0
"""Distances from the bottom, in units: where figures stand, how high objects reach, where the sky begins."""
TAB = 6.0
"""Height of the tab above an emblem that says by a sign what kind of mark it is, in units."""
PORTRAIT_SCALE = 2.4
"""An emblem of a portrait is so much larger."""
PORTRAIT_HEIGHT = 110.0
FIGURES = ((), (5,), (3, 8), (1, 5, 10), (1, 4, 7, 10), (1, 3, 6, 8, 10), (0, 2, 4, 7, 9, 11))
"""Columns of so many figures."""

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are outside."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a picture, in pixels."""

    width: int
    height: int

    @property
    def unit(self) -> float:
        """Pixels of a unit."""
        return min(self.width, self.height) / 256

    def x(self, column: int) -> float:
        """Return the middle of a column, in pixels."""
        return (column + 0.5) / COLUMNS * self.width

    def y(self, row: Row) -> float:
        """Return the middle of a row's emblems, in pixels."""
        if row == "top":
            return TOP * self.unit
        if row == "portrait":
            return self.height - PORTRAIT_HEIGHT * self.unit
        return self.height - HEIGHTS[row] * self.unit

    def up(self, units: float) -> float:
        """Return so many units above the bottom, in pixels from the top."""
        return self.height - units * self.unit


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for an emblem."""

    row: Row  # which row
    column: int  # which of the twelve columns; the middle of the picture for a portrait
    x: float  # its centre, in pixels
    y: float  # the same
    unit: float  # pixels of a unit, of an emblem here

    def around(self, units: float) -> tuple[float, float, float, float]:
        """Return the square of so many units around its centre, in pixels."""
        half = units * self.unit / 2
        return self.x - half, self.y - half, self.x + half, self.y + half


def slot_at(frame: Frame, row: Row, column: int) -> Slot:
    if row == "portrait":
        return Slot(row, column, frame.width / 2, frame.y(row), frame.unit * PORTRAIT_SCALE)
    return Slot(row, column, frame.x(column), frame.y(row), frame.unit)


def all_slots(frame: Frame) -> list[Slot]:
    """Return every place where an emblem may be, in a picture of any form."""
    rows: tuple[Row, ...] = ("top", "air", "chest", "ground", "upper", "lower")
    slots = [slot_at(frame, row, column) for row in rows for column in range(COLUMNS)]
    return [slot_at(frame, "portrait", 0), *slots]


def in_pixels(box: tuple[float, float, float, float], frame: Frame) -> Box:
    """Return a box in whole pixels, outwards, cut at the edges of the picture."""
    left, top, right, bottom = box
    return (
        max(0, int(left // 1)), max(0, int(top // 1)),
        min(frame.width, -int(-right // 1)), min(frame.height, -int(-bottom // 1)),
    )  # fmt: skip


def default_size(form: Form) -> tuple[int, int]:
    """Return width and height of a picture for which none are asked, in pixels."""
    return (1536, 512) if form == "panorama" else (512, 512)


# -- A drawing surface of whole pixels: nothing is smoothed, so that every machine draws the same

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
        from PIL import ImageDraw

        corners = [(whole(x), whole(y)) for x, y in points]
        ImageDraw.Draw(self.image).line(corners, fill=colour, width=max(1, whole(width)))

    def emblem(self, slot: Slot, kind: MarkKind, code: str) -> None:
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

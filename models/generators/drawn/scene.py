"""A scene as data: what a drawn picture is made from, and what is known of every picture that was drawn.

A mark is one thing that a picture has to show, named by a text. Marks of equal text look the same in every
picture, whoever asks for it, so that who is in one panel can be known again in the next.

A scene from a prompt alone: what a renderer draws that is given words and no data.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from ....schemas.values import Own

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
    """Return the place in a row and column."""
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

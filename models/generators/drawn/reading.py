"""What a drawn picture shows, read from its pixels alone, after it was resized and encoded again."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .codes import COLOURS, SIDE, code_of, read_cells
from .layout import CELL, EMBLEM, Box, Frame, Slot, all_slots, in_pixels
from .scene import MarkKind

if TYPE_CHECKING:
    from PIL.Image import Image

_FINE = 5
"""Samples of a cell in each direction."""
_SHIFTS = ((0.0, 0.0), (0.5, 0.0), (-0.5, 0.0), (0.0, 0.5), (0.0, -0.5))
"""Where an emblem is looked for, in units off its place: resizing moves it by parts of a pixel."""
_FARTHEST = 32.0
"""How far a cell's brightness may be from that of its colour, of 255."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A mark that was read."""

    kind: MarkKind  # what the emblem says it is
    code: str  # of its text; see :func:`.codes.code_of`
    box: Box  # where the emblem is, in pixels of the picture that was read


def read_marks(picture: "bytes | Image") -> tuple[Seen, ...]:
    """Return every mark whose emblem can be read, from the top of the picture to its bottom.

    ``picture``: a picture, or the bytes of a PNG or JPEG file. It may be of any size; below 256 pixels of the
    shorter side emblems get lost.
    """
    image = _opened(picture) if isinstance(picture, bytes) else picture
    frame = Frame(image.width, image.height)
    grey = image.convert("RGB").convert("L")
    seen = (_read(grey, slot, frame) for slot in all_slots(frame))
    return tuple(sorted((mark for mark in seen if mark is not None), key=lambda mark: mark.box[1::-1]))


def codes_in(picture: "bytes | Image") -> frozenset[str]:
    """Return the codes of all marks that can be read."""
    return frozenset(mark.code for mark in read_marks(picture))


def _opened(data: bytes) -> "Image":
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        image.load()
        return image


def _read(grey: "Image", slot: Slot, frame: Frame) -> Seen | None:
    for across, down in _SHIFTS:
        moved = Slot(slot.row, slot.column, slot.x + across * slot.unit, slot.y + down * slot.unit, slot.unit)
        samples = _samples(grey, moved, frame)
        if samples is None or _is_no_emblem(samples):
            return None
        for reach in (0, 1):
            cells = _cells(samples, reach)
            mark = None if cells is None else read_cells(cells)
            if mark is not None:
                return Seen(*mark, in_pixels(moved.around(EMBLEM), frame))
    return None


def _samples(grey: "Image", slot: Slot, frame: Frame) -> bytes | None:
    """Return the brightness of five by five points of each cell; None for a place outside the picture."""
    from PIL.Image import Resampling

    square = slot.around(SIDE * CELL)
    if square[0] < 0 or square[1] < 0 or square[2] > frame.width or square[3] > frame.height:
        return None
    return grey.resize((_ACROSS, _ACROSS), Resampling.BOX, box=square).tobytes()


def _is_no_emblem(samples: bytes) -> bool:
    """Whether the middles of the cells are all alike, or most of them are of none of the four colours."""
    values = [_VALUES[samples[middle]] for middle in _MIDDLES]
    return len(set(values)) == 1 or values.count(None) > len(values) // 2


def _cells(samples: bytes, reach: int) -> tuple[int, ...] | None:
    """Return the value of each cell by the points around its middle; None where one has none."""
    around = range(-reach, reach + 1)
    steps = [down * _ACROSS + across for down in around for across in around]
    cells = [_VALUES[sum(samples[middle + step] for step in steps) // len(steps)] for middle in _MIDDLES]
    return None if None in cells else tuple(cell for cell in cells if cell is not None)


def _brightness(colour: tuple[int, int, int]) -> float:
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue


LEVELS = tuple(_brightness(colour) for colour in COLOURS)
"""Brightness of a cell of value 0 to 3, of 255 (ITU-R BT.601)."""


def _value(level: int) -> int | None:
    value = min(range(len(LEVELS)), key=lambda number: abs(LEVELS[number] - level))
    return value if abs(LEVELS[value] - level) <= _FARTHEST else None


_VALUES = tuple(_value(level) for level in range(256))
_ACROSS = SIDE * _FINE
_MIDDLES = tuple(
    (row * _FINE + _FINE // 2) * _ACROSS + column * _FINE + _FINE // 2
    for row in range(SIDE)
    for column in range(SIDE)
)

__all__ = ["LEVELS", "Seen", "code_of", "codes_in", "read_marks"]

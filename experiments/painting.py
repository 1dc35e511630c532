"""Changing a picture where a loss is planted: boxes painted over, feelings made neutral, a corner nudged."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..media.images import open_picture
from ..models.generators.drawn.canvas import NEUTRAL, Canvas
from ..models.generators.drawn.codes import code_of
from ..models.generators.drawn.figures import flatten_face
from ..models.generators.drawn.images import encode_png
from ..models.generators.drawn.layout import Box, Slot, all_slots

if TYPE_CHECKING:
    from PIL.Image import Image

RING = 2
"""Pixels around a box by whose colour it is painted over."""
_NUDGE = 8  # levels of 255 by which a control's corner differs


def opened(data: bytes) -> "Image":
    """Return a picture to be changed, as RGB."""
    return open_picture(data).image.copy()


def paint_over(image: "Image", boxes: Sequence[Box]) -> None:
    """Fill boxes, each with the median colour of the pixels around it."""
    import numpy as np

    pixels = np.asarray(image)
    for left, top, right, bottom in boxes:
        low, high = max(0, top - RING), min(image.height, bottom + RING)
        near, far = max(0, left - RING), min(image.width, right + RING)
        ring = np.ones((high - low, far - near), bool)
        ring[max(0, top - low) : bottom - low, max(0, left - near) : right - near] = False
        around = pixels[low:high, near:far][ring]
        levels = np.median(around, axis=0) if len(around) else (128, 128, 128)
        colour = tuple(int(level) for level in levels)
        image.paste(colour, (max(0, left), max(0, top), min(image.width, right), min(image.height, bottom)))


def flatten_emblems(image: "Image", boxes: Sequence[Box]) -> None:
    """Draw the emblem of no feeling over the emblems in boxes of a drawn picture."""
    canvas = Canvas(image)
    for box in boxes:
        canvas.emblem(_slot_in(canvas, box), "emotion", code_of(NEUTRAL))


def flatten_faces(image: "Image", heads: Sequence[Box]) -> None:
    """Take the feelings out of the faces of a drawn picture."""
    canvas = Canvas(image)
    for left, top, right, bottom in heads:
        flatten_face(canvas, (left, top, right, bottom))


def nudge_corner(image: "Image") -> None:
    """Change the colour of the lowest left pixels by little: another file, and nothing that is seen."""
    for x in range(min(2, image.width)):
        for y in range(max(0, image.height - 2), image.height):
            pixel = image.getpixel((x, y))
            assert isinstance(pixel, tuple)
            changed = tuple(int(level) + (_NUDGE if level < 128 else -_NUDGE) for level in pixel)
            image.putpixel((x, y), changed)


def encoded(image: "Image") -> bytes:
    """Return a changed picture as a PNG file, the same bytes everywhere."""
    return encode_png(image)


def _slot_in(canvas: Canvas, box: Box) -> Slot:
    """Return the place whose emblem a box holds: the nearest to its lower part, which the emblem fills."""
    x, y = (box[0] + box[2]) / 2, box[3] - (box[2] - box[0]) / 2
    return min(all_slots(canvas.frame), key=lambda slot: (slot.x - x) ** 2 + (slot.y - y) ** 2)

"""The labelled grid as EntityBench's public code draws it: ours differs in colours, letters and which boxes.

Source: ``evaluate_benchmark.py`` at 3776439. Every box of every entity is drawn in the size of the frame, its
name on a plate above it; the frame is then made smaller, never larger, and stands in the middle of its cell.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

COLOURS = (
    (255, 64, 64), (64, 192, 255), (64, 255, 96), (255, 192, 0),
    (224, 64, 224), (255, 128, 0), (128, 255, 255), (255, 96, 160),
)  # fmt: skip
"""Colours of entities in the order of the schedule, again from the first after the last."""
_LINE, _PAD, _HIGH = 3, 2, 12
_COLUMNS, _GAP, _GROUND = 3, 8, (32, 32, 32)

Labelled = tuple[str, Sequence[float], tuple[int, int, int]]
"""Name of an entity, a box of it in pixels, and its colour."""


def draw_frame(image: "Image", boxes: Iterable[Labelled]) -> "Image":
    """Return a frame with its boxes, in its own size."""
    from PIL import ImageDraw, ImageFont

    drawn, font = image.convert("RGB").copy(), ImageFont.load_default()
    draw = ImageDraw.Draw(drawn)
    for name, box, colour in boxes:
        left, top, right, bottom = (int(side) for side in box[:4])
        if right < left or bottom < top:
            continue
        for line in range(_LINE):
            draw.rectangle((left - line, top - line, right + line, bottom + line), outline=colour)
        above = max(0, top - _HIGH - 2 * _PAD)
        wide = draw.textlength(name, font=font)
        draw.rectangle((left, above, left + wide + 2 * _PAD, above + _HIGH + 2 * _PAD), fill=colour)
        draw.text((left + _PAD, above + _PAD), name, fill=(0, 0, 0), font=font)
    return drawn


def tile_frames(frames: "Sequence[Image]", cell: tuple[int, int]) -> "Image":
    """Return frames in rows of three, as many rows as they fill."""
    from PIL import Image
    from PIL.Image import Resampling

    rows = -(-len(frames) // _COLUMNS)
    size = (_COLUMNS * (cell[0] + _GAP) + _GAP, rows * (cell[1] + _GAP) + _GAP)
    grid = Image.new("RGB", size, _GROUND)
    for number, frame in enumerate(frames):
        small = frame.copy()
        small.thumbnail(cell, Resampling.LANCZOS)
        row, column = divmod(number, _COLUMNS)
        left = _GAP + column * (cell[0] + _GAP) + (cell[0] - small.width) // 2
        top = _GAP + row * (cell[1] + _GAP) + (cell[1] - small.height) // 2
        grid.paste(small, (left, top))
    return grid

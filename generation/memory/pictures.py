"""Pictures of the bank: on a checkered ground, side by side, cut into thirds; always the same bytes."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...media.images import open_picture
from .bank import PANORAMA_SIZE, VIEWS, View

if TYPE_CHECKING:
    from PIL.Image import Image

SQUARE = 16
"""Pixels of a square of the checkered ground."""
LIGHT, DARK = (236, 236, 236), (188, 188, 188)
CELL = (320, 400)
"""Width and height of a candidate on the grid, in pixels."""
_GAP, _BAND = 8, 36
_FRAME, _INK = (40, 40, 48), (255, 255, 255)


def png_bytes(image: "Image") -> bytes:
    """Return a picture as the bytes of a PNG with pixels and nothing else."""
    clean = image.copy()
    clean.info = {}
    file = io.BytesIO()
    clean.save(file, "PNG", compress_level=6)
    return file.getvalue()


def opened_rgb(data: bytes, name: str) -> "Image":
    """Return a picture as RGB."""
    return open_picture(data, name=name).image


def opened_rgba(data: bytes, name: str) -> "Image":
    """Return a picture with its opacity, as RGBA."""
    from PIL import Image

    open_picture(data, name=name)  # the limits and the errors are the same
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGBA")


def checkered(size: tuple[int, int]) -> "Image":
    """Return a ground of light and dark squares, on which holes and leftovers show."""
    import numpy as np
    from PIL import Image

    rows, columns = (np.arange(side) // SQUARE for side in (size[1], size[0]))
    dark = (rows[:, None] + columns[None, :]) % 2 == 1
    pixels = np.where(dark[..., None], np.array(DARK, np.uint8), np.array(LIGHT, np.uint8))
    return Image.fromarray(pixels.astype(np.uint8), "RGB")


def on_checkers(cut: "Image") -> "Image":
    """Return a cut-out on a checkered ground."""
    ground = checkered(cut.size)
    ground.paste(cut, mask=cut.getchannel("A"))
    return ground


def grid_of(cuts: "Sequence[tuple[int, Image]]") -> "Image":
    """Return cut-outs side by side on checkered ground, each with its number in a band below.

    ``cuts``: number and RGBA picture of each.
    """
    from PIL import Image, ImageDraw, ImageFont
    from PIL.Image import Resampling

    width = len(cuts) * (CELL[0] + _GAP) + _GAP
    grid = Image.new("RGB", (width, CELL[1] + _BAND + 2 * _GAP), _FRAME)
    draw, font = ImageDraw.Draw(grid), ImageFont.load_default(24)
    for column, (number, cut) in enumerate(cuts):
        left = _GAP + column * (CELL[0] + _GAP)
        scale = min(CELL[0] / cut.width, CELL[1] / cut.height)
        size = (max(1, round(cut.width * scale)), max(1, round(cut.height * scale)))
        cell = checkered(CELL)
        small = cut.resize(size, Resampling.LANCZOS)
        cell.paste(small, ((CELL[0] - size[0]) // 2, (CELL[1] - size[1]) // 2), small.getchannel("A"))
        grid.paste(cell, (left, _GAP))
        draw.text((left + CELL[0] / 2, _GAP + CELL[1] + _BAND / 2), str(number), _INK, font, anchor="mm")
    return grid


def panorama_of(image: "Image") -> "Image":
    """Return a picture as a panorama: another shape is cut to its middle, another size is scaled."""
    from PIL.Image import Resampling

    width, height = PANORAMA_SIZE
    if image.size == PANORAMA_SIZE:
        return image
    wanted = width / height
    if image.width / image.height > wanted:
        side = round(image.height * wanted)
        left = (image.width - side) // 2
        image = image.crop((left, 0, left + side, image.height))
    else:
        side = max(1, round(image.width / wanted))
        top = (image.height - side) // 2
        image = image.crop((0, top, image.width, top + side))
    return image.resize(PANORAMA_SIZE, Resampling.LANCZOS)


def thirds_of(panorama: "Image") -> "dict[View, Image]":
    """Return the thirds of a panorama, by the camera angle that each is the background of."""
    third = panorama.width // 3
    return {
        view: panorama.crop((column * third, 0, (column + 1) * third, panorama.height))
        for column, view in enumerate(VIEWS)
    }

"""Portraits drawn for tests, sound ones and ones with a planted fault, as PNG files and as model replies."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from ..models.generators.request import Generated, GeneratedFile
from .drawn import picture_bytes

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

Fault = Literal["hole", "second figure", "key-coloured clothes", "cropped head"]
"""What can be wrong with a drawn portrait."""
FAULTS: Mapping[Fault, str] = {
    "hole": "holes", "second figure": "pieces", "key-coloured clothes": "pieces", "cropped head": "border",
}  # fmt: skip
"""Fault -> the code of the check that finds it."""
WIDTH, HEIGHT = 120, 160
SKIN, COAT, LEGS = (226, 180, 138), (190, 70, 58), (60, 60, 70)
Colour = tuple[int, int, int]


def draw_portrait(ground: Colour, fault: Fault | None = None) -> "Image":
    """Return a figure of head, coat and legs on a ground of one colour, 120 x 160 pixels.

    The coat has 40 x 60 pixels, the hole in it 16 x 16: 256 of about 4,600.
    """
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, HEIGHT), ground)
    draw = ImageDraw.Draw(image)
    up = -30 if fault == "cropped head" else 0
    coat = ground if fault == "key-coloured clothes" else COAT
    _figure(draw, 30 if fault == "second figure" else 60, up, coat)
    if fault == "second figure":
        _figure(draw, 92, up, COAT)
    if fault == "hole":
        draw.rectangle((52, 70, 67, 85), fill=ground)
    return image


def _figure(draw: "ImageDraw", x: int, up: int, coat: Colour) -> None:
    draw.ellipse((x - 14, 16 + up, x + 13, 43 + up), fill=SKIN)
    draw.rectangle((x - 20, 42 + up, x + 19, 101 + up), fill=coat)
    draw.rectangle((x - 14, 102 + up, x + 13, 145 + up), fill=LEGS)


def reply_of(image: "Image") -> str:
    """Return a picture as the reply of a model that makes pictures."""
    return Generated(GeneratedFile(picture_bytes(image), "image/png")).packed()

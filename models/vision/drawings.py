"""Pictures of ours that models are tried on."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 320
"""Pixels a side of a drawing."""
SHIFT = 8
"""Pixels by which a drawing is moved for a flow."""
FACE = ((140.0, 91.0), (182.0, 91.0), (160.0, 112.0), (142.0, 130.0), (178.0, 130.0))
"""Eyes, nose and corners of the mouth of the person who is drawn, in pixels."""
FACE_BOX = (106.0, 30.0, 214.0, 155.0)
"""Where that face is: left, top, right, bottom."""


def draw_pair() -> "tuple[Image, Image]":
    """Return the two drawings: somebody in a red coat, and a house under a tree."""
    from PIL import Image, ImageDraw

    person, house = (Image.new("RGB", (SIDE, SIDE), ground) for ground in ((226, 232, 240), (150, 200, 240)))
    draw = ImageDraw.Draw(person)
    draw.rectangle((105, 150, 215, 270), fill=(190, 40, 40))
    draw.rectangle((120, 270, 150, 318), fill=(40, 50, 90))
    draw.rectangle((170, 270, 200, 318), fill=(40, 50, 90))
    draw.ellipse((110, 40, 210, 155), fill=(240, 200, 170))
    draw.chord((106, 30, 214, 120), 180, 360, fill=(80, 50, 20))
    for left in (133, 175):
        draw.ellipse((left, 85, left + 14, 97), fill=(30, 30, 30))
    draw.polygon(((160, 98), (152, 118), (168, 118)), fill=(220, 170, 140))
    draw.arc((138, 112, 182, 138), 20, 160, fill=(150, 30, 40), width=4)
    draw = ImageDraw.Draw(house)
    draw.rectangle((0, 240, SIDE, SIDE), fill=(90, 160, 70))
    draw.rectangle((60, 150, 200, 270), fill=(230, 210, 160))
    draw.polygon(((45, 150), (215, 150), (130, 70)), fill=(120, 60, 40))
    draw.rectangle((115, 200, 150, 270), fill=(100, 60, 30))
    draw.rectangle((250, 160, 270, 280), fill=(110, 70, 40))
    draw.ellipse((215, 60, 310, 190), fill=(40, 120, 50))
    return person, house


def draw_three() -> "tuple[Image, Image, Image]":
    """Return the two drawings, and rings whose colours change from left to right and from top to bottom."""
    from PIL import Image

    down, across = np.mgrid[0:SIDE, 0:SIDE].astype(np.int64)
    far = ((across - SIDE // 2) ** 2 + (down - SIDE // 2) ** 2) // 1024 % 2
    colours = np.stack([across * 255 // SIDE, down * 255 // SIDE, 40 + 180 * far], axis=-1)
    return (*draw_pair(), Image.fromarray(colours.astype(np.uint8)))


def shifted(image: "Image") -> "Image":
    """Return a drawing moved to the right; its left edge is repeated."""
    from PIL import Image

    pixels = np.asarray(image)
    return Image.fromarray(np.concatenate([np.repeat(pixels[:, :1], SHIFT, 1), pixels[:, :-SHIFT]], 1))

"""Crops of entities: how a box becomes a crop, and how good a crop is (EntityBench, Eq. 7-11).

Both definitions cut whole pixels with a margin, and rate a crop by the product of three numbers. ``paper``
scales crops to 224 x 224 pixels and takes the variance of the Laplacian and the area of the box; ``code``
leaves them in their size and takes second differences and the area of the padded crop. All functions are
pure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....media.quality import sharpness
from ....models.vision.types import Box
from .settings import Grounding

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 224
"""Pixels a side of a crop (Table 11)."""
QUERY_WORDS = 12
"""Words of a description that ``code`` looks for."""
_SHARP, _AREA = (100.0, 200.0), (2.0, 5.0)
"""Middle and spread of the logistic functions of sharpness, and of area in percent (Eq. 8 and 9)."""


class Pixels(NamedTuple):
    """A rectangle of whole pixels; ``right`` and ``bottom`` are beyond it."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        """How many pixels it has."""
        return max(0, self.right - self.left) * max(0, self.bottom - self.top)


@dataclass(frozen=True, slots=True)
class Rating:
    """How good a crop is."""

    clip: float  # similarity to the description, -1 to 1 (Eq. 7).
    sharpness: float  # 0 to 1 (Eq. 8).
    area: float  # 0 to 1 (Eq. 9).

    @property
    def selection(self) -> float:
        """The product, by which the canonical crop is chosen (Eq. 10)."""
        return self.clip * self.sharpness * self.area


def query_of(description: str, definition: Grounding) -> str:
    """Return what is looked for: the whole description, or its first twelve words."""
    return description if definition == "paper" else " ".join(description.split()[:QUERY_WORDS])


def padded(box: Box, size: tuple[int, int], padding: float) -> Pixels:
    """Return the pixels of a crop: those of the box and a margin, as far as they are in the picture.

    ``box``: in pixels. ``padding``: share of the box's width and height that is added on each side; whole
    pixels, rounded down.
    """
    left, top = max(0, int(box.left)), max(0, int(box.top))
    right, bottom = min(size[0], int(box.right)), min(size[1], int(box.bottom))
    across, down = int((right - left) * padding), int((bottom - top) * padding)
    return Pixels(
        max(0, left - across), max(0, top - down), min(size[0], right + across), min(size[1], bottom + down)
    )


def crop_of(image: "Image", pixels: Pixels, definition: Grounding) -> "Image | None":
    """Return the crop; None where no pixel is in it."""
    if not pixels.area:
        return None
    crop = image.crop(pixels)
    if definition == "code":
        return crop
    from PIL.Image import Resampling

    return crop.resize((SIDE, SIDE), Resampling.BICUBIC)


def crop_sharpness(crop: "Image", definition: Grounding) -> float:
    """Return how sharp a crop is, before it is brought to 0 to 1; 0 of less than 3 x 3 pixels."""
    if definition == "paper":
        return sharpness(np.asarray(crop.convert("L"), dtype=np.float64))
    grey = np.asarray(crop, dtype=np.uint8).mean(axis=2)
    if min(grey.shape) < 3:
        return 0.0
    return float(np.diff(grey, n=2, axis=1).var() + np.diff(grey, n=2, axis=0).var())


def area_percent(box: Box, pixels: Pixels, size: tuple[int, int], definition: Grounding) -> float:
    """Return the area of the box, or of the padded crop, in percent of the picture."""
    return 100.0 * (box.area if definition == "paper" else pixels.area) / (size[0] * size[1])


def rating_of(clip: float, sharp: float, percent: float) -> Rating:
    """Return how good a crop is."""
    return Rating(clip, logistic((sharp - _SHARP[0]) / _SHARP[1]), logistic((percent - _AREA[0]) / _AREA[1]))


def best_of(ratings: Sequence[Rating]) -> int:
    """Return which rating is the best, the first of equals (Eq. 11)."""
    return max(range(len(ratings)), key=lambda index: (ratings[index].selection, -index))


def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value))."""
    return 1.0 / (1.0 + math.exp(-value))

"""Colours of pictures in numbers and words, the same on every machine."""

import colorsys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

LEVELS = 4
"""Levels of each of red, green and blue in a histogram."""

_HUES = (
    (15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (255, "blue"), (290, "purple"),
    (345, "pink"), (361, "red"),
)  # fmt: skip
"""Colour words and the degrees of hue below which they hold."""


def histogram(images: Iterable["Image"]) -> tuple[int, ...]:
    """Return the share of pixels in each of 64 bins, in thousandths rounded down; nothing without images."""
    counts: Counter[int] = Counter()
    for image in images:
        data = _small(image)
        step = 256 // LEVELS
        counts.update(
            (data[at] // step * LEVELS + data[at + 1] // step) * LEVELS + data[at + 2] // step
            for at in range(0, len(data), 3)
        )
    total = counts.total()
    return tuple(counts[bin] * 1000 // total for bin in range(LEVELS**3)) if total else ()


def distance(one: Sequence[int], other: Sequence[int]) -> float:
    """Return how far two histograms are apart: 0 for equal ones, 1 for colours of which none is shared.

    Without one of them nothing can be told: 1.
    """
    if not one or not other:
        return 1.0
    return min(1.0, sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2000)


def colour_word(image: "Image") -> str:
    """Return the word for the colour that most of an image has: its fullest bin's mean colour."""
    data = _small(image)
    bins: dict[tuple[int, int, int], list[int]] = {}
    for at in range(0, len(data), 3):
        red, green, blue = data[at : at + 3]
        sums = bins.setdefault((red // 64, green // 64, blue // 64), [0, 0, 0, 0])
        for place, value in enumerate((red, green, blue, 1)):
            sums[place] += value
    _, sums = min(bins.items(), key=lambda entry: (-entry[1][3], entry[0]))
    return word_of(sums[0] // sums[3], sums[1] // sums[3], sums[2] // sums[3])


def word_of(red: int, green: int, blue: int) -> str:
    """Return the word for a colour, each channel 0 to 255."""
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if value < 0.2:
        return "black"
    if saturation < 0.15:
        return "white" if value > 0.85 else "grey"
    word = next(word for bound, word in _HUES if hue * 360 < bound)
    return "brown" if word in ("orange", "red") and value < 0.65 and hue * 360 > 10 else word


def _small(image: "Image") -> bytes:
    from PIL.Image import Resampling

    return image.convert("RGB").resize((32, 18), Resampling.BOX).tobytes()

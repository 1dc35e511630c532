"""Which views of a tracklet show the person best.

    quality = w_face * f + w_size * s + w_sharp * h

with f the score of the face times the square root of its area over that of the largest face of the tracklet
(0 without a face), s the square root of the area of the box over the largest one, and h the sharpness over
the largest one, where the pixels were looked at; each between 0 and 1. Sharpness is the variance of the
Laplacian of the grey crop, brought to one height so that near and far views compare.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .drafts import Box4, Seen

if TYPE_CHECKING:
    from PIL.Image import Image

_HEIGHT = 128
_WIDEST = 512


@dataclass(frozen=True, slots=True)
class ViewWeights:
    """How much face, size and sharpness count."""

    face: float = 0.5
    size: float = 0.3
    sharp: float = 0.2


def qualities(
    seen: Sequence[Seen], weights: ViewWeights, sharpness: Mapping[int, float] | None = None
) -> list[float]:
    """Return the quality of every view of a tracklet; ``sharpness`` of those whose pixels were looked at."""
    largest = max((_area(one.box) for one in seen), default=0.0)
    largest_face = max((_area(one.face) for one in seen if one.face is not None), default=0.0)
    sharpest = max((sharpness or {}).values(), default=0.0)
    made = []
    for place, one in enumerate(seen):
        face = 0.0
        if one.face is not None and largest_face > 0:
            score = 1.0 if one.face_score is None else one.face_score
            face = score * (_area(one.face) / largest_face) ** 0.5
        size = (_area(one.box) / largest) ** 0.5 if largest > 0 else 0.0
        sharp = (sharpness or {}).get(place, 0.0) / sharpest if sharpest > 0 else 0.0
        made.append(weights.face * face + weights.size * size + weights.sharp * sharp)
    return made


def candidates(seen: Sequence[Seen], weights: ViewWeights, most: int) -> list[int]:
    """Return the views whose pixels are worth looking at, ascending: the best of each of ``most`` parts."""
    quality = qualities(seen, weights)
    parts = [part for part in np.array_split(np.arange(len(seen)), max(1, min(most, len(seen)))) if len(part)]
    return [max(part.tolist(), key=lambda place: (quality[place], -place)) for part in parts]


def best(quality: Mapping[int, float], most: int) -> list[int]:
    """Return the best of some views, best first; of equal ones the earlier."""
    return sorted(quality, key=lambda place: (-quality[place], place))[:most]


def sharpness_of(image: "Image") -> float:
    """Return how sharp a crop is: the variance of the Laplacian of its grey values, 0 or more."""
    width = min(_WIDEST, max(3, round(image.width * _HEIGHT / image.height)))
    grey = np.asarray(image.convert("L").resize((width, _HEIGHT)), dtype=np.float64)
    middle = grey[1:-1, 1:-1]
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float(np.var(around - 4 * middle))


def _area(box: Box4) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])

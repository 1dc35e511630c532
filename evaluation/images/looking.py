"""What the stages that look at pictures share: opening pictures, crops, and rows as plain JSON."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...media.images import open_picture
from ...models.vision.crop import Definition, cut
from ...models.vision.types import Box, Detector, Rows
from ...schemas.canonical import Json
from .layout import VIDEOS

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_BOXES = 64
"""Boxes of a picture that are kept, those of the highest scores."""
_BOX = 5  # left, top, right, bottom, score


def open_shot(file: str | Path) -> "Image":
    """Return a picture as RGB; of a clip, its first frame.

    Raises:
        MediaProblem: it cannot be used. MissingRequirement: a clip needs the extra ``video``.
    """
    path = Path(file)
    if path.suffix.lower() in VIDEOS:
        from ...media.video import first_frame

        return first_frame(path).image
    return open_picture(path).image


class BoxRows:
    """A detector as a predictor, so that the store keeps its boxes: each picture is looked at once.

    A row holds :data:`MOST_BOXES` boxes of five numbers, ``nan`` behind the last.
    """

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self.card = detector.card

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return f"{self._detector.identity}/boxes-{MOST_BOXES}"

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return the boxes of each picture, shape (images, 320)."""
        rows = np.full((len(images), MOST_BOXES, _BOX), np.nan, dtype=np.float32)
        for row, boxes in zip(rows, self._detector.detect(images), strict=True):
            best = sorted(boxes, key=lambda one: (-one.score, one.left, one.top, one.right, one.bottom))
            for place, box in enumerate(best[:MOST_BOXES]):
                row[place] = (box.left, box.top, box.right, box.bottom, box.score)
        return rows.reshape(len(images), MOST_BOXES * _BOX)


def boxes_of(row: Rows) -> list[list[float]]:
    """Return the boxes in a row of :class:`BoxRows`, highest score first."""
    table = row.reshape(MOST_BOXES, _BOX)
    return [[float(value) for value in line] for line in table[~np.isnan(table[:, 0])]]


def crop_of(image: "Image", box: Sequence[float], definition: Definition = "clamped") -> "Image | None":
    """Return the part of a picture in a box; None where no pixel is."""
    left, top, right, bottom = box[:4]
    return cut(image, Box(left, top, right, bottom), definition)


def boxes_are(value: Json) -> None:
    """Check what an archive says of boxes.

    Raises:
        ValueError: it is no mapping of shots to lists of five numbers.
    """
    for number, boxes in {} if value is None else value["shots"].items():
        if not str(number).isdigit() or any(len(box) != _BOX for box in boxes):
            raise ValueError(f"the boxes of shot {number} are not lists of {_BOX} numbers")


def packed(rows: Rows) -> Json:
    """Return rows as plain JSON, bit for bit: shape, and little-endian float32 in base 64."""
    data = np.ascontiguousarray(rows, dtype="<f4").tobytes()
    return {"shape": list(rows.shape), "data": base64.b64encode(data).decode("ascii")}

"""Pictures as torchvision resizes tensors: without antialiasing, which its own resizing of pictures has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .networks import Preparation
from .types import Rows
from .weights import library

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class TensorPreparation(Preparation):
    """How VBench prepares frames: as tensors from 0 to 255, whose values are not rounded after resizing.

    With ``crop`` 0 nothing is cut off, so that pictures of other proportions have another shape.
    """

    def text(self) -> str:
        """Return the preparation in words, for a card."""
        cut = f"centre crop {self.crop}" if self.crop else "whole"
        return (
            f"RGB, shorter side {self.resize}, {cut}, {self.resampling} without antialiasing,"
            f" mean {self.mean}, std {self.std}"
        )

    def _one(self, image: "Image") -> Rows:
        torch = library()
        height, width = image.height, image.width
        shorter = min(height, width)
        size = tuple(int(self.resize * side / shorter) for side in (height, width))
        fitted = resized(torch.from_numpy(pixels_of(image))[None], size, self.resampling)[0]
        if self.crop:
            top, left = (round((side - self.crop) / 2) for side in size)
            fitted = fitted[:, top : top + self.crop, left : left + self.crop]
        mean, std = (torch.tensor(values)[:, None, None] for values in (self.mean, self.std))
        return np.asarray(((fitted / 255 - mean) / std).numpy(), dtype=np.float32)


def pixels_of(image: "Image") -> Rows:
    """Return a picture as float32, shape (3, height, width), 0 to 255."""
    plain = image if image.mode == "RGB" else image.convert("RGB")
    return np.ascontiguousarray(np.asarray(plain, dtype=np.float32).transpose(2, 0, 1))


def resized(pixels: Any, size: tuple[int, ...], resampling: str) -> Any:  # noqa: ANN401 - torch's own
    """Return pictures, shape (n, 3, height, width), at another height and width, without antialiasing."""
    if tuple(pixels.shape[-2:]) == size:
        return pixels
    how = {"size": size, "mode": resampling, "align_corners": False, "antialias": False}
    return library().nn.functional.interpolate(pixels, **how)


def by_shape(arrays: Sequence[Rows], make: Callable[[Rows], Rows]) -> Rows:
    """Return the rows that ``make`` gives for arrays, which are stacked where they have one shape."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for number, array in enumerate(arrays):
        alike.setdefault(array.shape, []).append(number)
    rows: dict[int, Rows] = {}
    for some in alike.values():
        rows |= zip(some, make(np.stack([arrays[number] for number in some])), strict=True)
    return np.stack([rows[number] for number in range(len(arrays))])

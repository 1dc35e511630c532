"""What a picture becomes before a network sees it, in plain steps: sizes, resampling, normalisation.

Every step is stated here instead of left to a library's defaults, which change between versions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from .types import Rows

if TYPE_CHECKING:
    from PIL.Image import Image

Fit = Literal["shorter side, centre crop", "stretched"]
Resampling = Literal["bicubic", "bilinear"]

CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5, 0.5, 0.5)
NONE_MEAN, NONE_STD = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Preparation:
    """How pictures are prepared.

    Attributes:
        resize: pixels of the shorter side, or of both sides where pictures are stretched.
        crop: pixels a side of the square cut from the middle; ignored where pictures are stretched.
        fit: how a picture is brought to its size.
        resampling: the filter.
        mean: subtracted from each channel in [0, 1].
        std: what the channels are divided by after that.
    """

    resize: int
    crop: int
    fit: Fit = "shorter side, centre crop"
    resampling: Resampling = "bicubic"
    mean: tuple[float, float, float] = CLIP_MEAN
    std: tuple[float, float, float] = CLIP_STD

    @property
    def side(self) -> int:
        """Pixels a side of what the network sees."""
        return self.resize if self.fit == "stretched" else self.crop

    def text(self) -> str:
        """Return the preparation in words, for a card."""
        how = (
            f"stretched to {self.side} x {self.side}"
            if self.fit == "stretched"
            else f"shorter side {self.resize}, centre crop {self.crop}"
        )
        return f"RGB, {how}, {self.resampling}, mean {self.mean}, std {self.std}"

    def pixels(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, 3, side, side), float32, normalised."""
        return np.stack([self._one(image) for image in images])

    def _one(self, image: "Image") -> Rows:
        from PIL import Image as Pillow

        plain = image if image.mode == "RGB" else image.convert("RGB")
        kind = {"bicubic": Pillow.Resampling.BICUBIC, "bilinear": Pillow.Resampling.BILINEAR}[self.resampling]
        if self.fit == "stretched":
            fitted = plain.resize((self.resize, self.resize), kind)
        else:
            scale = self.resize / min(plain.size)
            size = tuple(max(self.resize, int(length * scale + 0.5)) for length in plain.size)
            left, top = ((length - self.crop) // 2 for length in size)
            fitted = plain.resize((size[0], size[1]), kind)
            fitted = fitted.crop((left, top, left + self.crop, top + self.crop))
        values = np.asarray(fitted, dtype=np.float32) / np.float32(255)
        mean, std = np.array(self.mean, dtype=np.float32), np.array(self.std, dtype=np.float32)
        return np.ascontiguousarray(((values - mean) / std).transpose(2, 0, 1))

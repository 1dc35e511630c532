"""Pictures of a report on shot images: small JPEGs of shots, crops and references, within a budget."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UserError
from ...media.images import encode_image, fitted
from ..images.looking import crop_of, open_shot
from .shots_model import Snap

if TYPE_CHECKING:
    from PIL.Image import Image

SHOT_SIDE, CROP_SIDE, QUALITY = 240, 96, 70
"""Longer sides in pixels of shots and of crops, and quality, of embedded pictures."""
MEGABYTES = 12.0
"""Size of all embedded pictures together, where no other is asked for."""
GONE, SPENT = "picture not available", "left out: there is no room for more pictures in this page"


@dataclass
class Snaps:
    """Makes small pictures until their budget is spent.

    Attributes:
        budget: characters of data that are left.
        made: pictures that were embedded.
        gone: pictures that were not at hand.
        spent: pictures that the budget left out.
    """

    budget: int = int(MEGABYTES * 1_000_000)
    made: int = 0
    gone: int = 0
    spent: int = 0
    _last: "tuple[Path, Image] | None" = field(default=None, repr=False)

    def whole(self, file: Path | None) -> tuple[Snap, tuple[int, int] | None]:
        """Return a shot's picture, and its size before it was made small; None where there is none."""
        image = self.open(file)
        if image is None:
            return self.none(), None
        return self._small(image, SHOT_SIDE), (image.width, image.height)

    def crop(self, file: Path | None, box: Sequence[float] | None) -> Snap:
        """Return the part of a picture in a box; all of it without one."""
        image = self.open(file)
        part = image if image is None or box is None else crop_of(image, box)
        return self.none() if part is None else self._small(part, CROP_SIDE)

    def none(self) -> Snap:
        """Return the place of a picture that is not at hand."""
        self.gone += 1
        return Snap(lost=GONE)

    def open(self, file: Path | None) -> "Image | None":
        """Return a picture; None where it is gone or cannot be opened."""
        if file is None:
            return None
        if self._last is None or self._last[0] != file:
            try:
                self._last = file, open_shot(file)
            except UserError:
                return None
        return self._last[1]

    def _small(self, image: "Image", side: int) -> Snap:
        small = fitted(image, side)
        data = encode_image(small, format="jpeg", quality=QUALITY)
        text = f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}"
        if len(text) > self.budget:
            self.budget, self.spent = 0, self.spent + 1
            return Snap(lost=SPENT)
        self.budget -= len(text)
        self.made += 1
        return Snap(width=small.width, height=small.height, data=text)

"""MUSIQ: how good a picture is as a picture, 0 to 100, with the weights for SPAQ that VBench takes.

The network is that of pyiqa, which may not be used commercially; so it has an extra of its own, ``musiq``.
"""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .networks import loaded_card, settled
from .stored import Source
from .tensors import by_shape, pixels_of, resized
from .types import Card, Rows, identity_of
from .weights import (
    Place,
    fetch_file,
    library,
    load_state,
    load_strictly,
    missing,
    number_type,
)

if TYPE_CHECKING:
    from PIL.Image import Image

SOURCE = Source("chaofengc/IQA-PyTorch-Weights", file="musiq_spaq_ckpt-358bb6af.pth", size=109_000_000)
"""The first digits of the file's SHA-256 are in its name."""
LONGEST = 512
"""Longer side of a picture at most, as in VBench."""
CARD = Card(
    "musiq-spaq", SOURCE.repo, SOURCE.revision,
    f"RGB in [0, 1], longer side at most {LONGEST}, bilinear without antialiasing",
    0, 1e-2, "pyiqa: PolyForm Noncommercial 1.0.0 and S-Lab 1.0, no commercial use",
)  # fmt: skip


class MusiqPredictor:
    """The predictor; pictures of one shape go through the network together.

    Args:
        card: what it is.
        run_on: where it runs.
        module: the network of pyiqa.
    """

    def __init__(self, card: Card, run_on: Place, module: Any) -> None:  # noqa: ANN401 - the library's own
        self.card, self._place, self._module = card, run_on, module

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return identity_of(self.card, self._place.dtype, self._place.device)

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, 1)."""
        return by_shape([_prepared(image) for image in images], self._values)

    def _values(self, pixels: Rows) -> Rows:
        torch = library()
        with torch.inference_mode():
            given = torch.from_numpy(pixels).to(self._place.device, number_type(self._place.dtype))
            return np.asarray(self._module(given).float().cpu().numpy(), dtype=np.float32)


def _prepared(image: "Image") -> Rows:
    pixels = library().from_numpy(pixels_of(image))[None]
    longest = max(image.size)
    if longest > LONGEST:
        size = tuple(int(LONGEST / longest * side) for side in (image.height, image.width))
        pixels = resized(pixels, size, "bilinear")
    return np.asarray((pixels[0] / 255).numpy(), dtype=np.float32)


def load_musiq(run_on: Place, local: Path | None = None) -> MusiqPredictor:
    """Return the predictor: one value for each picture, 0 to 100.

    A process says once, on standard error, that it may not be used commercially.

    ``local``: the checkpoint; None for the published one.
    """
    run_on.checked()
    path = fetch_file(SOURCE, local)
    state = load_state(SOURCE, path)
    try:
        from pyiqa.archs.musiq_arch import MUSIQ
    except ImportError as error:
        raise missing("pyiqa") from error
    _tell_terms()
    module = MUSIQ(pretrained=False)
    load_strictly(module, state, SOURCE)
    return MusiqPredictor(loaded_card(CARD, SOURCE, path), run_on, settled(module, run_on))


@cache
def _tell_terms() -> None:
    sys.stderr.write(f"note: {CARD.name} is for noncommercial use only ({CARD.licence})\n")

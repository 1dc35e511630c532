"""CLIP ViT-L/14: the projected embedding of a picture, for stylised characters and the CLIP score."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .devices import Place, library, missing, number_type
from .preprocess import Preparation
from .types import Card, Rows, identity_of
from .weights import Source, load_pretrained

if TYPE_CHECKING:
    from PIL.Image import Image

SOURCE = Source("openai/clip-vit-large-patch14", "32bd64288804d66eefd0ccbe215aa642df71cc41")
PREPARATION = Preparation(224, 224)
CARD = Card(
    "clip-vit-l-14",
    SOURCE.repo,
    SOURCE.revision,
    PREPARATION.text(),
    768,
    1e-4,
    "MIT (code); see the model card",
)


@dataclass(frozen=True)
class Network:
    """A network with what is around it.

    Attributes:
        card: what it is.
        place: where it runs.
        module: the network, in evaluation mode.
        preparation: how pictures are prepared.
    """

    card: Card
    place: Place
    module: Any
    preparation: Preparation

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return identity_of(self.card, self.place.dtype, self.place.device)

    def tensor(self, images: "Sequence[Image]") -> Any:  # noqa: ANN401 - torch's own
        """Return the pictures as the network takes them."""
        torch = library()
        pixels = torch.from_numpy(self.preparation.pixels(images))
        return pixels.to(self.place.device, number_type(self.place.dtype))


class Clip:
    """The image tower of CLIP with its projection.

    Args:
        place: where it runs.
        local: folder with the weights; None for the pinned ones of the Hub.
    """

    def __init__(self, place: Place, local: Path | None = None) -> None:
        try:
            from transformers import CLIPVisionModelWithProjection
        except ImportError as error:
            raise missing("transformers") from error
        module = load_pretrained(CLIPVisionModelWithProjection, SOURCE, local)
        side = module.config.image_size
        preparation = PREPARATION if side == PREPARATION.crop else Preparation(side, side)
        self._network = Network(CARD, place.checked(), settled(module, place), preparation)

    @property
    def card(self) -> Card:
        """What it is."""
        return self._network.card

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return self._network.identity

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, dimensions)."""
        with library().inference_mode():
            return unit_rows(self._network.module(pixel_values=self._network.tensor(images)).image_embeds)


def settled(module: Any, place: Place) -> Any:  # noqa: ANN401 - torch's own
    """Return a module in evaluation mode, where and in the numbers it is to run."""
    return module.eval().requires_grad_(False).to(place.device, number_type(place.dtype))


def rows_of(tensor: Any) -> Rows:  # noqa: ANN401 - torch's own
    """Return a tensor as float32 on this side."""
    return np.asarray(tensor.float().cpu().numpy(), dtype=np.float32)


def unit_rows(tensor: Any) -> Rows:  # noqa: ANN401 - torch's own
    """Return the rows of a tensor with length 1; a row of zeros becomes ``nan``."""
    rows = rows_of(tensor).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(scaled, dtype=np.float32)

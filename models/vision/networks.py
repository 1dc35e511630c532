"""What all networks of torch share: where they run, how pictures reach them, what comes back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .devices import Place, library, number_type
from .preprocess import Preparation
from .types import Card, Rows, identity_of
from .weights import Source, revision_of

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Network:
    """A network in evaluation mode with what is around it.

    Attributes:
        card: what it is.
        place: where it runs.
        forward: from prepared pixels, shape (images, 3, side, side), to a tensor of shape (images, values).
        preparation: how pictures are prepared.
    """

    card: Card
    place: Place
    forward: Callable[[Any], Any]
    preparation: Preparation

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return identity_of(self.card, self.place.dtype, self.place.device)

    def values(self, images: "Sequence[Image]") -> Rows:
        """Return what the network makes of pictures, shape (images, values), float32."""
        torch = library()
        with torch.inference_mode():
            pixels = torch.from_numpy(self.preparation.pixels(images))
            found = self.forward(pixels.to(self.place.device, number_type(self.place.dtype)))
            return np.asarray(found.float().cpu().numpy(), dtype=np.float32)


class NetworkEncoder:
    """An encoder whose network gives the vector before it is made a unit vector.

    Args:
        network: the network.
    """

    def __init__(self, network: Network) -> None:
        self._network = network

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
        return unit_rows(self._network.values(images))


class NetworkPredictor:
    """A predictor whose network gives the values themselves.

    Args:
        network: the network.
    """

    def __init__(self, network: Network) -> None:
        self._network = network

    @property
    def card(self) -> Card:
        """What it is."""
        return self._network.card

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return self._network.identity

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, values)."""
        return self._network.values(images)


def loaded_card(card: Card, source: Source, local: Path | None) -> Card:
    """Return the card of what was loaded: with weights of the user's own, their hash is the revision.

    Raises:
        MissingRequirement: the weights cannot be read.
    """
    return replace(card, revision=revision_of(source, local))


def settled(module: Any, place: Place) -> Any:  # noqa: ANN401 - torch's own
    """Return a module in evaluation mode, where and in the numbers it is to run."""
    return module.eval().requires_grad_(False).to(place.device, number_type(place.dtype))


def unit_rows(rows: Rows) -> Rows:
    """Return rows with length 1; a row of zeros becomes ``nan``."""
    exact = rows.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray(scaled, dtype=np.float32)

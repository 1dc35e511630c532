"""DINOv2 ViT-L/14: the embedding of the class token, for bodies and for whole frames."""

from pathlib import Path

from .devices import Place, missing
from .networks import Network, NetworkEncoder, loaded_card, settled
from .preprocess import IMAGENET_MEAN, IMAGENET_STD, Preparation
from .types import Card
from .weights import Source, load_pretrained

SOURCE = Source("facebook/dinov2-large", "47b73eefe95e8d44ec3623f8890bd894b6ea2d6c")
PREPARATION = Preparation(256, 224, mean=IMAGENET_MEAN, std=IMAGENET_STD)
CARD = Card("dinov2-l-14", SOURCE.repo, SOURCE.revision, PREPARATION.text(), 1024, 1e-4, "Apache-2.0")


def load_dinov2(place: Place, local: Path | None = None) -> NetworkEncoder:
    """Return DINOv2; its vector is the class token after the last layer norm.

    Args:
        place: where it runs.
        local: folder with the weights; None for the pinned ones of the Hub.

    Raises:
        MissingRequirement: a library or the weights are missing. ConfigError: there is no such device.
    """
    try:
        from transformers import Dinov2Model
    except ImportError as error:
        raise missing("transformers") from error
    module = settled(load_pretrained(Dinov2Model, SOURCE, local), place.checked())
    card = loaded_card(CARD, SOURCE, local)
    return NetworkEncoder(
        Network(card, place, lambda pixels: module(pixel_values=pixels).pooler_output, PREPARATION)
    )

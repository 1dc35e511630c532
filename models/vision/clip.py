"""CLIP ViT-L/14: the projected embedding of a picture, for stylised characters and the CLIP score."""

from pathlib import Path

from .devices import Place, missing
from .networks import Network, NetworkEncoder, loaded_card, settled
from .preprocess import Preparation
from .types import Card
from .weights import Source, load_pretrained

SOURCE = Source("openai/clip-vit-large-patch14", "32bd64288804d66eefd0ccbe215aa642df71cc41")
PREPARATION = Preparation(224, 224)
CARD = Card(
    "clip-vit-l-14", SOURCE.repo, SOURCE.revision, PREPARATION.text(), 768, 1e-4, "see the model's page"
)


def load_clip(place: Place, local: Path | None = None) -> NetworkEncoder:
    """Return the image tower of CLIP with its projection.

    Args:
        place: where it runs.
        local: folder with the weights; None for the pinned ones of the Hub.

    Raises:
        MissingRequirement: a library or the weights are missing. ConfigError: there is no such device.
    """
    try:
        from transformers import CLIPVisionModelWithProjection
    except ImportError as error:
        raise missing("transformers") from error
    module = settled(load_pretrained(CLIPVisionModelWithProjection, SOURCE, local), place.checked())
    side = module.config.image_size
    card = loaded_card(CARD, SOURCE, local)
    return NetworkEncoder(
        Network(card, place, lambda pixels: module(pixel_values=pixels).image_embeds, Preparation(side, side))
    )

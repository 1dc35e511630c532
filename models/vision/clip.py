"""CLIP ViT-L/14: the projected embedding of a picture, for stylised characters, and of a text.

Pictures and texts share a space, so that their cosine is the CLIP score. The text tower is loaded when the
first text comes.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from .clip_text import TextTower, load_text_tower
from .devices import Place, missing
from .networks import Network, NetworkEncoder, loaded_card, settled
from .preprocess import Preparation
from .types import Card, TextRows
from .weights import Source, load_pretrained

SOURCE = Source("openai/clip-vit-large-patch14", "32bd64288804d66eefd0ccbe215aa642df71cc41")
PREPARATION = Preparation(224, 224)
CARD = Card(
    "clip-vit-l-14", SOURCE.repo, SOURCE.revision, PREPARATION.text(), 768, 1e-4, "see the model's page"
)


class ClipEncoder(NetworkEncoder):
    """An encoder of pictures and of texts.

    Args:
        network: the image tower.
        load_texts: loads the text tower.
    """

    def __init__(self, network: Network, load_texts: Callable[[], TextTower]) -> None:
        super().__init__(network)
        self._load_texts = load_texts

    @cached_property
    def _texts(self) -> TextTower:
        return self._load_texts()

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return unit vectors of texts, in the space of those of pictures.

        Raises:
            MissingRequirement: the weights of the text tower are missing, or those of another model.
        """
        return self._texts.encode(texts)


def load_clip(place: Place, local: Path | None = None) -> ClipEncoder:
    """Return both towers of CLIP with their projections.

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
    network = Network(
        card, place, lambda pixels: module(pixel_values=pixels).image_embeds, Preparation(side, side)
    )
    return ClipEncoder(network, lambda: load_text_tower(place, SOURCE, local))

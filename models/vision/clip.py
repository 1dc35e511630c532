"""CLIP ViT-L/14 and ViT-B/32: the projected embedding of a picture and of a text."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import needing
from .networks import Network, NetworkEncoder, Preparation, loaded_card, settled, unit_rows
from .store import Card, TextRows
from .weights import Place, Source, library, load_pretrained, missing

_ENDS = 2


class TextTower:
    """The text tower of a CLIP model with its tokenizer.

    ``module``: the network of transformers. ``tokenizer``: of the same model.
    """

    def __init__(self, module: Any, tokenizer: Any, place: Place) -> None:  # noqa: ANN401 - the library's
        self._module, self._tokenizer, self._place = module, tokenizer, place
        self._length: int = module.config.max_position_embeddings

    def encode(self, texts: Sequence[str]) -> TextRows:
        """Return unit vectors of texts, and how many tokens of each were cut off."""
        torch = library()
        tokens = [self._tokens(text) for text in texts]
        with torch.inference_mode():
            ids = torch.tensor([ids for ids, _ in tokens], device=self._place.device)
            # Causal attention: what stands behind the end of a text changes nothing before it.
            rows = self._module(input_ids=ids).text_embeds.float().cpu().numpy()
        return TextRows(unit_rows(np.asarray(rows, dtype=np.float32)), tuple(cut for _, cut in tokens))

    def _tokens(self, text: str) -> tuple[list[int], int]:
        """Return a text as tokens of the network's full length, and how many were cut off."""
        start, end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        tokens = self._tokenizer.encode(text, add_special_tokens=False, verbose=False)
        tokens = [token for token in tokens if token not in (start, end)]  # a text may spell them out
        kept = tokens[: self._length - _ENDS]
        ids = [start, *kept, end]
        return ids + [end] * (self._length - len(ids)), len(tokens) - len(kept)


def load_text_tower(place: Place, source: Source, local: Path | None) -> TextTower:
    """Return the text tower of a CLIP model with its projection."""
    with needing(missing("transformers")):
        from transformers import CLIPTextModelWithProjection, CLIPTokenizer
    tokenizer = load_pretrained(CLIPTokenizer, source, local)
    module = load_pretrained(CLIPTextModelWithProjection, source, local)
    return TextTower(settled(module, place), tokenizer, place)


_WORDS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt")
SOURCE = Source(
    "openai/clip-vit-large-patch14", "32bd64288804d66eefd0ccbe215aa642df71cc41", also=_WORDS,
    size=1_715_000_000,
)  # fmt: skip
LICENCE = "MIT (OpenAI's repository; the page on the Hub names none)"
PREPARATION = Preparation(224, 224)
CARD = Card("clip-vit-l-14", SOURCE.repo, SOURCE.revision, PREPARATION.text(), 768, 1e-4, LICENCE)


class ClipEncoder(NetworkEncoder):
    """An encoder of pictures and of texts.

    ``network``: the image tower. ``load_texts``: loads the text tower.
    """

    def __init__(self, network: Network, load_texts: Callable[[], TextTower]) -> None:
        super().__init__(network)
        self._load_texts = load_texts

    @cached_property
    def _texts(self) -> TextTower:
        return self._load_texts()

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return unit vectors of texts, in the space of those of pictures."""
        return self._texts.encode(texts)


def load_clip(place: Place, local: Path | None = None) -> ClipEncoder:
    """Return both towers of CLIP ViT-L/14 with their projections.

    ``local``: folder with the weights; None for the pinned ones of the Hub.
    """
    return _load(place, local, SOURCE, CARD)


B_32_SOURCE = Source(
    "openai/clip-vit-base-patch32", "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268", also=_WORDS, size=609_000_000
)
B_32_CARD = replace(
    CARD, name="clip-vit-b-32", source=B_32_SOURCE.repo, revision=B_32_SOURCE.revision, dimensions=512
)


def load_clip_b_32(place: Place, local: Path | None = None) -> ClipEncoder:
    """Return both towers of CLIP ViT-B/32 with their projections; see :func:`load_clip`.

    ``local``: folder with the weights; None for the pinned ones of the Hub.
    """
    return _load(place, local, B_32_SOURCE, B_32_CARD)


def _load(place: Place, local: Path | None, source: Source, card: Card) -> ClipEncoder:
    with needing(missing("transformers")):
        from transformers import CLIPVisionModelWithProjection
    module = settled(load_pretrained(CLIPVisionModelWithProjection, source, local), place.checked())
    side = module.config.image_size
    network = Network(
        loaded_card(card, source, local), place, lambda pixels: module(pixel_values=pixels).image_embeds,
        Preparation(side, side),
    )  # fmt: skip
    return ClipEncoder(network, lambda: load_text_tower(place, source, local))

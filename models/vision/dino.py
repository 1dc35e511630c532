"""DINO ViT-B/16, the first version, as VBench uses it: on whole frames of any proportions."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import needing
from .networks import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Network,
    NetworkEncoder,
    TensorPreparation,
    by_shape,
    loaded_card,
    settled,
    unit_rows,
)
from .store import Card, Rows
from .weights import Place, Source, library, load_pretrained, missing, number_type

if TYPE_CHECKING:
    from PIL.Image import Image

SOURCE = Source("facebook/dino-vitb16", "f205d5d8e640a89a2b8ef0369670dfc37cc07fc2", size=346_000_000)
PREPARATION = TensorPreparation(224, 0, resampling="bilinear", mean=IMAGENET_MEAN, std=IMAGENET_STD)
CARD = Card("dino-b-16", SOURCE.repo, SOURCE.revision, PREPARATION.text(), 768, 1e-4, "Apache-2.0")
EPSILON = 1e-6
"""Of the layer norms, in the authors' code; the converted configuration says 1e-12."""
_OFFSET = 0.1
"""What the authors' code adds to the rows and columns of patches before it makes a scale of them."""


class DinoEncoder(NetworkEncoder):
    """An encoder of whole pictures; those of one shape go through the network together."""

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, dimensions)."""
        torch, network = library(), self._network

        def values(pixels: Rows) -> Rows:
            with torch.inference_mode():
                given = torch.from_numpy(pixels).to(network.place.device, number_type(network.place.dtype))
                return np.asarray(network.forward(given).float().cpu().numpy(), dtype=np.float32)

        prepared = [network.preparation.pixels([image])[0] for image in images]
        return unit_rows(by_shape(prepared, values))


def load_dino(run_on: Place, local: Path | None = None) -> DinoEncoder:
    """Return DINO; its vector is the class token after the last layer norm.

    ``local``: folder with the weights; None for the pinned ones of the Hub.
    """
    with needing(missing("transformers")):
        from transformers import ViTModel
    run_on.checked()
    model = load_pretrained(ViTModel, SOURCE, local, add_pooling_layer=False)  # nobody trained its weights
    for layer in model.modules():
        if isinstance(layer, library().nn.LayerNorm):
            layer.eps = EPSILON
    model.embeddings.interpolate_pos_encoding = partial(_positions, model.embeddings)
    module = settled(model, run_on)

    def forward(pixels: Any) -> Any:  # noqa: ANN401 - torch's own
        return module(pixel_values=pixels, interpolate_pos_encoding=True).last_hidden_state[:, 0]

    return DinoEncoder(Network(loaded_card(CARD, SOURCE, local), run_on, forward, PREPARATION))


def _positions(embeddings: Any, tokens: Any, height: int, width: int) -> Any:  # noqa: ANN401 - torch's own
    """Return the embeddings of positions for a picture of another size than the network was trained on.

    The authors scale by (rows + 0.1) / trained rows, which moves every position a little.
    """
    torch = library()
    known = embeddings.position_embeddings
    count, patch = known.shape[1] - 1, embeddings.patch_size
    if tokens.shape[1] - 1 == count and height == width:
        return known
    side = round(count**0.5)
    grid = known[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
    scale = tuple((length // patch + _OFFSET) / side for length in (height, width))
    grid = torch.nn.functional.interpolate(grid, scale_factor=scale, mode="bicubic")
    return torch.cat([known[:, :1], grid.flatten(2).transpose(1, 2)], dim=1)

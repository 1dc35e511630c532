"""Aesthetic Predictor V2.5: SigLIP so400m/14 at 384 pixels, and a head of five linear layers.

Two definitions of what the network sees. ``normalised`` (default) is how the predictor was published: the
picture stretched to 384 x 384, scaled to [-1, 1]. ``code`` is what the public code of ViStoryBench does: 378
pixels a side, in [0, 1], without normalisation, which the weights were not trained on; its numbers differ.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from .devices import Place, library, missing
from .networks import Network, NetworkPredictor, settled
from .preprocess import HALF, NONE_MEAN, NONE_STD, Preparation
from .types import Card
from .weights import Source, load_pretrained, load_state, load_strictly, needed, revision_of

SOURCE = Source("google/siglip-so400m-patch14-384", "9fdffc58afc957d1a03a25b10dba0329ab15c2a3")
HEAD = Source("github.com/discus0434/aesthetic-predictor-v2-5", file="aesthetic_predictor_v2_5.pth")
"""The head: a file in its authors' code repository, not on the Hub, so that it has to be fetched by hand."""
Definition = Literal["normalised", "code"]
PREPARATIONS: dict[Definition, Preparation] = {
    "normalised": Preparation(384, 0, "stretched", mean=HALF, std=HALF),
    "code": Preparation(378, 0, "stretched", mean=NONE_MEAN, std=NONE_STD),
}
WIDTHS = (1024, 128, 64, 16, 1)
"""Outputs of the head's layers."""


def card_of(definition: Definition) -> Card:
    """Return the card of one definition."""
    text = PREPARATIONS[definition].text()
    return Card(f"aesthetic-v2.5-{definition}", SOURCE.repo, SOURCE.revision, text, 0, 1e-3, "see both pages")


def load_aesthetic(
    place: Place, local: Path | None = None, head: Path | None = None, definition: Definition = "normalised"
) -> NetworkPredictor:
    """Return the predictor: one value for each picture, about 1 to 10.

    Args:
        place: where it runs.
        local: folder with the weights of SigLIP; None for the pinned ones of the Hub.
        head: file with the weights of the head.
        definition: what the network sees.

    Raises:
        MissingRequirement: a library or weights are missing, or they are those of another model.
            ConfigError: there is no such device.
    """
    try:
        from transformers import SiglipVisionModel
    except ImportError as error:
        raise missing("transformers") from error
    tower = settled(load_pretrained(SiglipVisionModel, SOURCE, local), place.checked())
    if head is None:
        raise needed(HEAD, "no file named in the settings")
    layers = settled(make_head(tower.config.hidden_size, load_state(HEAD, head)), place)
    revision = f"{revision_of(SOURCE, local)}+{revision_of(HEAD, head)}"

    def forward(pixels: Any) -> Any:  # noqa: ANN401 - torch's own
        pooled = tower(pixel_values=pixels, interpolate_pos_encoding=True).pooler_output
        return layers(pooled / pooled.norm(dim=-1, keepdim=True))

    card = replace(card_of(definition), revision=revision)
    return NetworkPredictor(Network(card, place, forward, PREPARATIONS[definition]))


def make_head(width: int, state: Mapping[str, Any]) -> Any:  # noqa: ANN401 - torch's own
    """Return the head with its weights; dropout between the layers does nothing in evaluation.

    The tensors are taken in the order of the numbers in their names; each must fit its layer.

    Raises:
        MissingRequirement: the tensors are not those of such a head.
    """
    torch = library()
    head = torch.nn.Sequential(*(torch.nn.Linear(*pair) for pair in pairwise((width, *WIDTHS))))
    names = sorted(state, key=_layer)
    if len(names) != len(head.state_dict()):
        raise needed(HEAD, f"{len(names)} tensors instead of {len(head.state_dict())}")
    load_strictly(head, dict(zip(head.state_dict(), (state[name] for name in names), strict=True)), HEAD)
    return head


def _layer(name: str) -> tuple[int, bool]:
    """Sort tensors by the number of their layer, the weights before the biases."""
    numbers = [int(part) for part in name.split(".") if part.isdigit()]
    return (numbers[-1] if numbers else -1, name.endswith("bias"))

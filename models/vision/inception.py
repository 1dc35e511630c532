"""Inception v3 with ImageNet weights: the probabilities of 1,000 classes, for the inception score.

Two definitions of what the network sees. ``paper`` (default): ImageNet normalisation, then the input
transform that belongs to these weights. ``code`` leaves that transform out, as the public code of
ViStoryBench does; its numbers differ.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from .devices import Place, library, missing
from .networks import Network, NetworkPredictor, loaded_card, settled
from .preprocess import IMAGENET_MEAN, IMAGENET_STD, Preparation
from .types import Card
from .weights import Source, load_state, load_strictly, told

SOURCE = Source(
    "torchvision's inception_v3 IMAGENET1K_V1", file="inception_v3_google-0cc3c7bd.pth",
    sha256="0cc3c7bd75056d25e46cba549dc184522069b81e9787eff6df84f397bd52a5ef",
)  # fmt: skip
PREPARATION = Preparation(299, 299, resampling="bilinear", mean=IMAGENET_MEAN, std=IMAGENET_STD)
Definition = Literal["paper", "code"]


def card_of(definition: Definition) -> Card:
    """Return the card of one definition."""
    text = PREPARATION.text() + (", input transform of the weights" if definition == "paper" else "")
    return Card(f"inception-v3-{definition}", SOURCE.repo, SOURCE.sha256, text, 0, 1e-4, "BSD-3-Clause")


def fetch_published() -> None:
    """Fetch torchvision's weights, unless they are in its cache.

    Raises:
        MissingRequirement: they are neither there nor to be had, or torchvision is not installed.
    """
    try:
        from torchvision.models import Inception_V3_Weights
    except ImportError as error:
        raise missing("torchvision") from error
    weights = Inception_V3_Weights.IMAGENET1K_V1
    told(SOURCE, None, lambda: weights.get_state_dict(progress=False, check_hash=True))


def load_inception(
    place: Place, local: Path | None = None, definition: Definition = "paper"
) -> NetworkPredictor:
    """Return the classifier: 1,000 probabilities for each picture.

    Args:
        place: where it runs.
        local: file with other weights; None for torchvision's own.
        definition: what the network sees.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
            ConfigError: there is no such device.
    """
    try:
        from torchvision.models import Inception_V3_Weights, inception_v3
    except ImportError as error:
        raise missing("torchvision") from error
    place.checked()
    if local is None:
        module = told(SOURCE, None, lambda: inception_v3(weights=Inception_V3_Weights.IMAGENET1K_V1))
    else:
        module = inception_v3(weights=None, init_weights=False)
        load_strictly(module, load_state(replace(SOURCE, sha256=""), local), SOURCE)
    module.transform_input = definition == "paper"
    module = settled(module, place)

    def forward(pixels: Any) -> Any:  # noqa: ANN401 - torch's own
        return library().softmax(module(pixels).float(), dim=1)

    card = loaded_card(card_of(definition), SOURCE, local)
    return NetworkPredictor(Network(card, place, forward, PREPARATION))

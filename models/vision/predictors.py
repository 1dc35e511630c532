"""Predictors: how pleasing a picture is, and its probabilities of 1,000 classes (Inception v3).

Aesthetic Predictor V2.5 is SigLIP so400m/14 at 384 pixels and a head of five linear layers.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from .networks import (
    HALF,
    IMAGENET_MEAN,
    IMAGENET_STD,
    NONE_MEAN,
    NONE_STD,
    Network,
    NetworkPredictor,
    Preparation,
    loaded_card,
    settled,
)
from .stored import Source
from .types import Card
from .weights import (
    Place,
    fetch_file,
    library,
    load_pretrained,
    load_state,
    load_strictly,
    missing,
    needed,
    revision_of,
)

SIGLIP_SOURCE = Source(
    "google/siglip-so400m-patch14-384", "9fdffc58afc957d1a03a25b10dba0329ab15c2a3", size=3_512_000_000
)
AESTHETIC_HEAD = Source(
    "github.com/discus0434/aesthetic-predictor-v2-5", file="aesthetic_predictor_v2_5.pth",
    address="https://github.com/discus0434/aesthetic-predictor-v2-5/raw/main/models/"
    "aesthetic_predictor_v2_5.pth",
    size=5_300_000, on_request=True,
)  # fmt: skip
"""The head: a file in its authors' code repository."""
AestheticDefinition = Literal["normalised", "code"]
PREPARATIONS: dict[AestheticDefinition, Preparation] = {
    "normalised": Preparation(384, 0, "stretched", mean=HALF, std=HALF),
    "code": Preparation(378, 0, "stretched", mean=NONE_MEAN, std=NONE_STD),
}
WIDTHS = (1024, 128, 64, 16, 1)
"""Outputs of the head's layers."""


def aesthetic_card(definition: AestheticDefinition) -> Card:
    """Return the card of one definition."""
    text = PREPARATIONS[definition].text()
    return Card(
        f"aesthetic-v2.5-{definition}",
        SIGLIP_SOURCE.repo,
        SIGLIP_SOURCE.revision,
        text,
        0,
        1e-3,
        "SigLIP: Apache-2.0; head: AGPL-3.0",
    )


def load_aesthetic(
    place: Place,
    local: Path | None = None,
    head: Path | None = None,
    definition: AestheticDefinition = "normalised",
) -> NetworkPredictor:
    """Return the predictor: one value for each picture, about 1 to 10.

    ``local``: folder with the weights of SigLIP; None for the pinned ones of the Hub. ``head``: file with the
    weights of the head; None for the published one.
    """
    try:
        from transformers import SiglipVisionModel
    except ImportError as error:
        raise missing("transformers") from error
    tower = settled(load_pretrained(SiglipVisionModel, SIGLIP_SOURCE, local), place.checked())
    head = fetch_file(AESTHETIC_HEAD, head)
    layers = settled(make_head(tower.config.hidden_size, load_state(AESTHETIC_HEAD, head)), place)
    revision = f"{revision_of(SIGLIP_SOURCE, local)}+{revision_of(AESTHETIC_HEAD, head)}"

    def forward(pixels: Any) -> Any:  # noqa: ANN401 - torch's own
        pooled = tower(pixel_values=pixels, interpolate_pos_encoding=True).pooler_output
        return layers(pooled / pooled.norm(dim=-1, keepdim=True))

    card = replace(aesthetic_card(definition), revision=revision)
    return NetworkPredictor(Network(card, place, forward, PREPARATIONS[definition]))


def make_head(width: int, state: Mapping[str, Any]) -> Any:  # noqa: ANN401 - torch's own
    """Return the head with its weights; dropout between the layers does nothing in evaluation.

    The tensors are taken in the order of the numbers in their names; each must fit its layer.
    """
    torch = library()
    head = torch.nn.Sequential(*(torch.nn.Linear(*pair) for pair in pairwise((width, *WIDTHS))))
    names = sorted(state, key=_layer)
    if len(names) != len(head.state_dict()):
        raise needed(AESTHETIC_HEAD, f"{len(names)} tensors instead of {len(head.state_dict())}")
    load_strictly(
        head, dict(zip(head.state_dict(), (state[name] for name in names), strict=True)), AESTHETIC_HEAD
    )
    return head


def _layer(name: str) -> tuple[int, bool]:
    """Sort tensors by the number of their layer, the weights before the biases."""
    numbers = [int(part) for part in name.split(".") if part.isdigit()]
    return (numbers[-1] if numbers else -1, name.endswith("bias"))


INCEPTION = Source(
    "torchvision's inception_v3 IMAGENET1K_V1", file="inception_v3_google-0cc3c7bd.pth",
    sha256="0cc3c7bd75056d25e46cba549dc184522069b81e9787eff6df84f397bd52a5ef",
    address="https://download.pytorch.org/models/inception_v3_google-0cc3c7bd.pth", size=109_000_000,
)  # fmt: skip
INCEPTION_PREPARATION = Preparation(299, 299, resampling="bilinear", mean=IMAGENET_MEAN, std=IMAGENET_STD)
InceptionDefinition = Literal["paper", "code"]


def inception_card(definition: InceptionDefinition) -> Card:
    """Return the card of one definition."""
    text = INCEPTION_PREPARATION.text() + (
        ", input transform of the weights" if definition == "paper" else ""
    )
    return Card(f"inception-v3-{definition}", INCEPTION.repo, INCEPTION.sha256, text, 0, 1e-4, "BSD-3-Clause")


def load_inception(
    place: Place, local: Path | None = None, definition: InceptionDefinition = "paper"
) -> NetworkPredictor:
    """Return the classifier: 1,000 probabilities for each picture.

    ``local``: file with other weights; None for torchvision's own.
    """
    try:
        from torchvision.models import inception_v3
    except ImportError as error:
        raise missing("torchvision") from error
    place.checked()
    module = inception_v3(weights=None, init_weights=False)
    source = INCEPTION if local is None else replace(INCEPTION, sha256="")
    load_strictly(module, load_state(source, local), INCEPTION)
    module.transform_input = definition == "paper"
    module = settled(module, place)

    def forward(pixels: Any) -> Any:  # noqa: ANN401 - torch's own
        return library().softmax(module(pixels).float(), dim=1)

    card = loaded_card(inception_card(definition), INCEPTION, local)
    return NetworkPredictor(Network(card, place, forward, INCEPTION_PREPARATION))

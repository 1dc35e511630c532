"""Predictors: how pleasing a picture is, and its probabilities of 1,000 classes (Inception v3).

Aesthetic Predictor V2.5 is SigLIP so400m/14 at 384 pixels and a head of five linear layers.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...errors import needing
from .clip import B_32_SOURCE as CLIP_B_32
from .clip import LICENCE as CLIP_LICENCE
from .clip import SOURCE as CLIP_L_14
from .networks import (
    HALF,
    IMAGENET_MEAN,
    IMAGENET_STD,
    NONE_MEAN,
    NONE_STD,
    Network,
    NetworkPredictor,
    Preparation,
    TensorPreparation,
    by_shape,
    loaded_card,
    pixels_of,
    resized,
    settled,
)
from .store import Card, Rows, identity_of
from .weights import (
    Place,
    Source,
    fetch_file,
    library,
    load_pretrained,
    load_state,
    load_strictly,
    missing,
    needed,
    number_type,
    revision_of,
)

if TYPE_CHECKING:
    from PIL.Image import Image

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
    with needing(missing("transformers")):
        from transformers import SiglipVisionModel
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
    with needing(missing("torchvision")):
        from torchvision.models import inception_v3
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


# -- LAION's first aesthetic predictors: a linear layer on the unit vector of CLIP, a value of about 1 to 10
#
# Each width of CLIP has its own head: 512 numbers of ViT-B/32, 768 of ViT-L/14. The later heads of several
# layers ("improved") are published for 768 numbers only.

_HEADS = "github.com/LAION-AI/aesthetic-predictor"
_AT = "https://github.com/LAION-AI/aesthetic-predictor/raw/main/"
_B, _L = "sa_0_4_vit_b_32_linear.pth", "sa_0_4_vit_l_14_linear.pth"
HEAD_B_32 = Source(_HEADS, file=_B, address=_AT + _B, size=3_000, on_request=True)
HEAD_L_14 = Source(_HEADS, file=_L, address=_AT + _L, size=4_000, on_request=True)
"""The heads: files in their authors' code repository."""
_TERMS = f"head: MIT; CLIP: {CLIP_LICENCE}"
B_32 = Preparation(224, 224)
L_14 = TensorPreparation(224, 224)
CARD_B_32 = Card("laion-b-32", CLIP_B_32.repo, CLIP_B_32.revision, B_32.text(), 0, 1e-3, _TERMS)
CARD_L_14 = Card("laion-l-14", CLIP_L_14.repo, CLIP_L_14.revision, L_14.text(), 0, 1e-3, _TERMS)


def load_laion_b_32(run_on: Place, local: Path | None = None, head: Path | None = None) -> NetworkPredictor:
    """Return the predictor on CLIP ViT-B/32, the width in EntityBench's notation (Eq. 4).

    ``local``: folder with the weights of CLIP; None for the pinned ones of the Hub. ``head``: file with the
    weights of the head; None for the published one.
    """
    return _load(run_on, (CLIP_B_32, HEAD_B_32), (local, head), (CARD_B_32, B_32))


def load_laion_l_14(run_on: Place, local: Path | None = None, head: Path | None = None) -> NetworkPredictor:
    """Return the predictor on CLIP ViT-L/14, as VBench has it.

    ``local``: folder with the weights of CLIP; None for the pinned ones of the Hub. ``head``: file with the
    weights of the head; None for the published one.
    """
    return _load(run_on, (CLIP_L_14, HEAD_L_14), (local, head), (CARD_L_14, L_14))


def _load(
    run_on: Place,
    sources: tuple[Source, Source],
    files: tuple[Path | None, Path | None],
    seen: tuple[Card, Preparation],
) -> NetworkPredictor:
    with needing(missing("transformers")):
        from transformers import CLIPVisionModelWithProjection
    (source, head_source), (local, head), (card, preparation) = sources, files, seen
    tower = settled(load_pretrained(CLIPVisionModelWithProjection, source, local), run_on.checked())
    head = fetch_file(head_source, head)
    line = library().nn.Linear(tower.config.projection_dim, 1)
    load_strictly(line, load_state(head_source, head), head_source)
    line = settled(line, run_on)
    revision = f"{revision_of(source, local)}+{revision_of(head_source, head)}"

    def forward(pixels: Any) -> Any:  # noqa: ANN401 - torch's own
        embedded = tower(pixel_values=pixels).image_embeds
        return line(embedded / embedded.norm(dim=-1, keepdim=True))

    return NetworkPredictor(Network(replace(card, revision=revision), run_on, forward, preparation))


# -- MUSIQ: how good a picture is as a picture, 0 to 100, with the weights for SPAQ that VBench takes
#
# The network is that of pyiqa, which may not be used commercially; so it has an extra of its own, ``musiq``.

SOURCE = Source("chaofengc/IQA-PyTorch-Weights", file="musiq_spaq_ckpt-358bb6af.pth", size=109_000_000)
"""The first digits of the file's SHA-256 are in its name."""
LONGEST = 512
"""Longer side of a picture at most, as in VBench."""
CARD = Card(
    "musiq-spaq", SOURCE.repo, SOURCE.revision,
    f"RGB in [0, 1], longer side at most {LONGEST}, bilinear without antialiasing",
    0, 1e-2, "pyiqa: PolyForm Noncommercial 1.0.0 and S-Lab 1.0, no commercial use",
)  # fmt: skip


class MusiqPredictor:
    """The predictor; pictures of one shape go through the network together.

    ``module``: the network of pyiqa.
    """

    def __init__(self, card: Card, run_on: Place, module: Any) -> None:  # noqa: ANN401 - the library's own
        self.card, self._place, self._module = card, run_on, module

    @property
    def identity(self) -> str:
        return identity_of(self.card, self._place.dtype, self._place.device)

    def predict(self, images: "Sequence[Image]") -> Rows:
        return by_shape([_prepared(image) for image in images], self._values)

    def _values(self, pixels: Rows) -> Rows:
        torch = library()
        with torch.inference_mode():
            given = torch.from_numpy(pixels).to(self._place.device, number_type(self._place.dtype))
            return np.asarray(self._module(given).float().cpu().numpy(), dtype=np.float32)


def _prepared(image: "Image") -> Rows:
    pixels = library().from_numpy(pixels_of(image))[None]
    longest = max(image.size)
    if longest > LONGEST:
        size = tuple(int(LONGEST / longest * side) for side in (image.height, image.width))
        pixels = resized(pixels, size, "bilinear")
    return np.asarray((pixels[0] / 255).numpy(), dtype=np.float32)


def load_musiq(run_on: Place, local: Path | None = None) -> MusiqPredictor:
    """Return the predictor: one value for each picture, 0 to 100.

    A process says once, on standard error, that it may not be used commercially.

    ``local``: the checkpoint; None for the published one.
    """
    run_on.checked()
    path = fetch_file(SOURCE, local)
    state = load_state(SOURCE, path)
    with needing(missing("pyiqa")):
        from pyiqa.archs.musiq_arch import MUSIQ
    _tell_terms()
    module = MUSIQ(pretrained=False)
    load_strictly(module, state, SOURCE)
    return MusiqPredictor(loaded_card(CARD, SOURCE, path), run_on, settled(module, run_on))


@cache
def _tell_terms() -> None:
    sys.stderr.write(f"note: {CARD.name} is for noncommercial use only ({CARD.licence})\n")

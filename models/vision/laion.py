"""LAION's first aesthetic predictors: a linear layer on the unit vector of CLIP, a value of about 1 to 10.

Each width of CLIP has its own head: 512 numbers of ViT-B/32, 768 of ViT-L/14. The later heads of several
layers ("improved") are published for 768 numbers only.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from .clip import B_32_SOURCE as CLIP_B_32
from .clip import LICENCE as CLIP_LICENCE
from .clip import SOURCE as CLIP_L_14
from .networks import Network, NetworkPredictor, Preparation, settled
from .stored import Source
from .tensors import TensorPreparation
from .types import Card
from .weights import (
    Place,
    fetch_file,
    library,
    load_pretrained,
    load_state,
    load_strictly,
    missing,
    revision_of,
)

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
    try:
        from transformers import CLIPVisionModelWithProjection
    except ImportError as error:
        raise missing("transformers") from error
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

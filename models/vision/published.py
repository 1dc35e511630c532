"""What the weights of each model of ours are, where they are published, and under which terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import (
    clip,
    csd,
    detectors,
    dino,
    face_encoders,
    faces,
    flow,
    laion,
    musiq,
    networks,
    predictors,
    segmenters,
)
from .stored import Source


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that a model is loaded from."""

    source: Source  # where they come from
    option: str  # of the model's loader, that names other ones
    licence: str  # their terms, in short
    # whether the terms forbid or demand so much that somebody has to accept them first
    restricts: bool = False


_RESEARCH = "insightface's terms: non-commercial research only"
_CLIP_L = Weights(clip.SOURCE, "local", clip.LICENCE)
_CLIP_B = Weights(clip.B_32_SOURCE, "local", clip.LICENCE)
_FINDER = Weights(faces.SOURCE, "detector", _RESEARCH, restricts=True)
WEIGHTS: Mapping[str, tuple[Weights, ...]] = {
    "clip-vit-l-14": (_CLIP_L,),
    "clip-vit-b-32": (_CLIP_B,),
    "dinov2-l-14": (Weights(networks.DINOV2_SOURCE, "local", "Apache-2.0"),),
    "dinov2-base": (Weights(networks.DINOV2_BASE_SOURCE, "local", "Apache-2.0"),),
    "csd-vit-l": (Weights(csd.SOURCE, "local", csd.CARD.licence),),
    "aesthetic-v2.5": (
        Weights(predictors.SIGLIP_SOURCE, "local", "Apache-2.0"),
        Weights(predictors.AESTHETIC_HEAD, "head", "AGPL-3.0", restricts=True),
    ),
    "inception-v3": (Weights(predictors.INCEPTION, "local", "BSD-3-Clause"),),
    "grounding-dino-swin-t": (Weights(detectors.DINO_SOURCE, "local", "Apache-2.0"),),
    "dino-b-16": (Weights(dino.SOURCE, "local", dino.CARD.licence),),
    "raft-large": (Weights(flow.RAFT, "local", flow.CARD.licence),),
    "laion-b-32": (_CLIP_B, Weights(laion.HEAD_B_32, "head", "MIT")),
    "laion-l-14": (_CLIP_L, Weights(laion.HEAD_L_14, "head", "MIT")),
    "musiq-spaq": (Weights(musiq.SOURCE, "local", musiq.CARD.licence, restricts=True),),
    "people-yolo11n": (Weights(detectors.PEOPLE_SOURCE, "local", "AGPL-3.0", restricts=True),),
    "faces-scrfd-10g": (Weights(faces.SOURCE, "local", _RESEARCH, restricts=True),),
    "arcface-r100": (
        Weights(face_encoders.ARCFACE_SOURCE, "local", _RESEARCH, restricts=True), _FINDER,
    ),
    "adaface-ir101": (
        Weights(face_encoders.ADAFACE_SOURCE, "local", face_encoders.ADAFACE_LICENCE, restricts=True),
        _FINDER,
    ),
    "sam2.1-hiera-tiny": (Weights(segmenters.SAM2_SOURCE, "local", segmenters.SAM2_CARD.licence),),
    "facenet-vggface2": (
        Weights(face_encoders.FACENET_SOURCE, "local", face_encoders.FACENET_LICENCE), _FINDER,
    ),
}  # fmt: skip
"""Model -> its weights."""


def sources_of(names: Sequence[str]) -> dict[Source, tuple[Weights, tuple[str, ...]]]:
    """Return each source that models are loaded from once, with its terms and the models that want it."""
    wanted_by: dict[Source, tuple[Weights, tuple[str, ...]]] = {}
    for name in names:
        for weights in WEIGHTS[name]:
            first, wanted = wanted_by.get(weights.source, (weights, ()))
            wanted_by[weights.source] = (first, (*wanted, name))
    return wanted_by

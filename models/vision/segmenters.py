"""SAM 2: what hangs together with points in a picture, as a mask.

The network is that of transformers. No commit of the published weights has been confirmed by us yet, so that
they are taken from a folder: the user's own, or the one that ``fabula models fetch vision`` filled.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .networks import loaded_card, settled
from .stored import Source, stored
from .types import Card, Masks, Points, identity_of
from .weights import Place, library, load_pretrained, missing, needed, number_type

if TYPE_CHECKING:
    from PIL.Image import Image

SAM2_SOURCE = Source("facebook/sam2.1-hiera-tiny", size=156_000_000, on_request=True)
SAM2_CARD = Card(
    "sam2.1-hiera-tiny", SAM2_SOURCE.repo, SAM2_SOURCE.revision,
    "RGB, stretched to the network's square (1024), bilinear, ImageNet mean and std", 0, 2e-2, "Apache-2.0",
)  # fmt: skip
_MASK_SHARE = 4
"""The network's masks have a fourth of its pixels a side."""

LAYOUTS: Mapping[str, Points] = {
    "character": Points(
        inside=((0.5, 0.2), (0.5, 0.35), (0.5, 0.5), (0.5, 0.65), (0.5, 0.8)),
        outside=((0.03, 0.03), (0.97, 0.03), (0.03, 0.97), (0.97, 0.97), (0.05, 0.5), (0.95, 0.5)),
    ),
    "object": Points(
        inside=((0.5, 0.5), (0.42, 0.5), (0.58, 0.5), (0.5, 0.42), (0.5, 0.58)),
        outside=((0.03, 0.03), (0.97, 0.03), (0.03, 0.97), (0.97, 0.97)),
    ),
}
"""Type of an entity -> where its portrait is sure to show it, and where it is not: down the middle for a
standing figure, around the centre for a thing (the paper has points by type, and does not say which)."""


class Sam2:
    """SAM 2 on single pictures.

    Args:
        card: what it is.
        where: it runs.
        module: a ``Sam2Model`` in evaluation mode.
    """

    def __init__(self, card: Card, where: Place, module: Any) -> None:  # noqa: ANN401 - torch's own
        from transformers import Sam2ImageProcessor, Sam2Processor

        self.card, self.place, self._module = card, where, module
        height, width = module.config.vision_config.backbone_config.image_size
        pictures = Sam2ImageProcessor(
            size={"height": height, "width": width},
            mask_size={"height": height // _MASK_SHARE, "width": width // _MASK_SHARE},
        )
        self._processor = Sam2Processor(pictures, target_size=height)

    @property
    def identity(self) -> str:
        """What its results depend on."""
        return identity_of(self.card, self.place.dtype, self.place.device)

    def segment(self, images: "Sequence[Image]", points: Sequence[Points]) -> list[Masks]:
        """Return for each picture the mask that the network rates best of three, shape (height, width)."""
        return [self._mask(image, some) for image, some in zip(images, points, strict=True)]

    def _mask(self, image: "Image", points: Points) -> Masks:
        torch = library()
        plain = image if image.mode == "RGB" else image.convert("RGB")
        spots = [[x * plain.width, y * plain.height] for x, y in (*points.inside, *points.outside)]
        labels = [1] * len(points.inside) + [0] * len(points.outside)
        given = self._processor(
            images=plain, input_points=[[spots]], input_labels=[[labels]], return_tensors="pt"
        ).to(self.place.device)
        given["pixel_values"] = given["pixel_values"].to(number_type(self.place.dtype))
        with torch.inference_mode():
            made = self._module(
                pixel_values=given["pixel_values"], input_points=given["input_points"],
                input_labels=given["input_labels"], multimask_output=True,
            )  # fmt: skip
        masks = self._processor.post_process_masks(
            made.pred_masks.float().cpu(), [[plain.height, plain.width]]
        )[0][0]
        best = int(made.iou_scores[0, 0].float().argmax())
        return np.asarray(masks[best].numpy(), dtype=np.bool_)


def load_sam2(where: Place, local: Path | None = None) -> Sam2:
    """Return the segmenter.

    ``local``: folder with the weights; None for the one in the folder of weights.
    """
    try:
        from transformers import Sam2Model
    except ImportError as error:
        raise missing("transformers") from error
    folder = local or stored(SAM2_SOURCE)
    if folder is None:
        raise needed(SAM2_SOURCE, "no folder with them is named, and nobody fetched them")
    module = settled(load_pretrained(Sam2Model, SAM2_SOURCE, folder), where.checked())
    return Sam2(loaded_card(SAM2_CARD, SAM2_SOURCE, folder), where, module)

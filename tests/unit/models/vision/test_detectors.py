"""Detectors of characters and of people, and the segmenter: what is prepared, kept and refused."""

import io
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.models.vision.detectors import fitted, load_grounding_dino
from fabula.models.vision.segmenters import SAM2_CARD, Sam2
from fabula.models.vision.types import Box, Points
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import draw_shot, onstage
from fabula.testing.tiny_vision import tiny_settings

if TYPE_CHECKING:
    from PIL.Image import Image


@pytest.fixture
def shot() -> "Image":
    from PIL import Image

    return Image.open(io.BytesIO(draw_shot(onstage(3)))).convert("RGB")


@pytest.mark.parametrize(
    ("size", "wanted"),
    [((640, 480), (1066, 800)), ((480, 640), (800, 1066)), ((1000, 1000), (800, 800)),
     ((2000, 500), (1332, 333)), ((500, 2000), (333, 1332)), ((900, 1), (900, 1)),
     ((1333, 800), (1333, 800))],
)  # fmt: skip
def test_fitted_keeps_the_ratio_within_both_limits(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    # 800 * 640 / 480 = 1066.7 -> 1066; 1333 * 500 / 2000 = 333.25 -> 333, 333 * 4 = 1332.
    assert fitted(size, (800, 1333)) == wanted


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("transformers", reason="the extra metrics is not installed")
    pytest.importorskip("torch", reason="the extra metrics is not installed")
    return tiny_settings("grounding-dino-swin-t", tmp_path_factory.mktemp("dino"))


def test_grounding_dino_gives_what_the_library_makes_of_the_same_pixels(
    tiny: dict[str, Any], shot: "Image"
) -> None:
    import torch
    from transformers import AutoTokenizer, GroundingDinoForObjectDetection

    from fabula.models.vision.detectors import _pixels

    module = GroundingDinoForObjectDetection.from_pretrained(tiny["local"]).eval()
    words = AutoTokenizer.from_pretrained(tiny["local"])("character.", return_tensors="pt")
    with torch.no_grad():
        pixels = torch.from_numpy(_pixels(shot, fitted(shot.size, tiny["sides"])))[None]
        found = module(pixel_values=pixels, **words)
    scores = found.logits.sigmoid().amax(-1)[0].numpy()
    x, y, width, height = (found.pred_boxes[0] * torch.tensor([320, 180, 320, 180])).numpy().T
    wanted = sorted(
        (
            Box(*map(float, edges), float(score)).within(320, 180)
            for score, *edges in zip(
                scores, x - width / 2, y - height / 2, x + width / 2, y + height / 2, strict=True
            )
            if score > tiny["threshold"]
        ),
        key=lambda box: -box.score,
    )
    (boxes,) = load_grounding_dino(Place(), **tiny).detect([shot])
    assert len(boxes) == len(wanted) > 0
    for box, other in zip(boxes, wanted, strict=True):
        assert box.score == pytest.approx(other.score, abs=1e-5)
        assert (box.left, box.bottom) == pytest.approx((other.left, other.bottom), abs=0.05)


def test_segmenter_when_asked_gives_points_by_side_and_keeps_the_mask_that_is_rated_best() -> None:
    torch = pytest.importorskip("torch", reason="the extra metrics is missing")
    from PIL import Image

    asked: dict[str, Any] = {}

    class Rated:
        """Three masks, each of one row of the picture; the second is rated best."""

        config = SimpleNamespace(
            vision_config=SimpleNamespace(backbone_config=SimpleNamespace(image_size=(64, 64)))
        )

        def __call__(self, **given: Any) -> Any:
            asked.update(given)
            masks = torch.full((1, 1, 3, 16, 16), -10.0)
            for number in range(3):
                masks[0, 0, number, 8 * (number == 1) :] = 10.0 - 20.0 * (number == 2)
            return SimpleNamespace(pred_masks=masks, iou_scores=torch.tensor([[[0.2, 0.9, 0.5]]]))

    points = Points(inside=((0.5, 0.25), (0.25, 0.5)), outside=((0.0, 1.0),))
    (mask,) = Sam2(SAM2_CARD, Place(), Rated()).segment([Image.new("L", (40, 20))], [points])
    # points of a picture of 40 x 20 in the network's 64 x 64: 0.5 * 40 * 64/40 = 32, 0.25 * 20 * 64/20 = 16
    assert asked["input_points"].tolist() == [[[[32.0, 16.0], [16.0, 32.0], [0.0, 64.0]]]]
    assert asked["input_labels"].tolist() == [[[1, 1, 0]]]
    assert asked["multimask_output"] is True and asked["pixel_values"].shape == (1, 3, 64, 64)
    assert np.array_equal(mask, np.repeat([[False], [True]], 10, axis=0) & np.ones((20, 40), bool))

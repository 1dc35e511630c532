"""Preparations: sizes, crops and normalisation, against the steps done by hand."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.errors import MissingRequirement
from fabula.models.vision.networks import HALF, NONE_MEAN, NONE_STD, Preparation
from fabula.models.vision.types import Box, suppressed
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import CAST, draw_reference


def test_pixels_of_one_colour_are_that_colour_normalised() -> None:
    from PIL import Image

    rows = Preparation(8, 8, mean=HALF, std=HALF).pixels([Image.new("RGB", (30, 20), (255, 0, 51))])
    assert rows.shape == (1, 3, 8, 8)
    assert rows.dtype == np.float32
    assert rows[0, :, 0, 0].tolist() == pytest.approx([1.0, -1.0, (0.2 - 0.5) / 0.5])


def test_pixels_when_cropped_keep_the_middle_and_when_stretched_everything() -> None:
    from PIL import Image

    wide = Image.new("RGB", (60, 20), (0, 0, 0))
    wide.paste((255, 255, 255), (0, 0, 15, 20))  # a white left quarter
    plain = {"mean": NONE_MEAN, "std": NONE_STD}
    assert Preparation(20, 20, **plain).pixels([wide]).max() == 0.0
    stretched = Preparation(20, 20, "stretched", **plain).pixels([wide])
    assert stretched.mean() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("size", [(1, 400), (400, 1), (7, 7), (224, 224)])
def test_pixels_of_any_size_have_the_networks_size(size: tuple[int, int]) -> None:
    from PIL import Image

    for mode in ("RGB", "L", "RGBA", "CMYK"):
        assert Preparation(16, 16).pixels([Image.new(mode, size)]).shape == (1, 3, 16, 16)


# Boxes: areas, overlaps, and what is suppressed.


def test_box_overlap_is_intersection_over_union() -> None:
    one, two = Box(0, 0, 10, 10), Box(5, 0, 15, 10)
    assert one.overlap(two) == pytest.approx(50 / 150)
    assert one.overlap(Box(20, 20, 30, 30)) == 0.0
    assert one.overlap(one) == 1.0
    assert Box(0, 0, 0, 0).overlap(Box(0, 0, 0, 0)) == 0.0


def test_suppressed_keeps_the_best_of_overlapping_boxes_whatever_their_order() -> None:
    best, worse, other = Box(0, 0, 10, 10, 0.9), Box(1, 0, 11, 10, 0.8), Box(50, 0, 60, 10, 0.3)
    assert suppressed([other, worse, best], 0.5) == (best, other)
    assert suppressed([best, other, worse], 0.5) == (best, other)
    assert suppressed([best, worse], 0.95) == (best, worse)


# DINOv2, the aesthetic predictor and Inception through the real classes, with random weights.

if TYPE_CHECKING:
    from PIL.Image import Image

torch: Any = pytest.importorskip("torch", reason="the extra metrics is not installed")
transformers: Any = pytest.importorskip("transformers", reason="the extra metrics is not installed")


@pytest.fixture
def pictures() -> "list[Image]":
    from PIL import Image

    return [Image.open(io.BytesIO(draw_reference(key))).convert("RGB") for key, *_ in CAST]


@pytest.fixture
def siglip(tmp_path: Path) -> Path:
    torch.manual_seed(2)
    config = transformers.SiglipVisionConfig(
        hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=384,
        patch_size=128,
    )  # fmt: skip
    transformers.SiglipVisionModel(config).save_pretrained(tmp_path / "siglip")
    return tmp_path / "siglip"


def head_state(names: tuple[int, ...] = (0, 2, 4, 6, 7)) -> dict[str, Any]:
    """The head's tensors, as a sequence with dropout between the layers numbers them."""
    sizes = (24, 1024, 128, 64, 16, 1)
    state = {}
    for place, number in enumerate(names):
        layer = torch.nn.Linear(sizes[place], sizes[place + 1])
        state |= {f"scoring_head.{number}.{name}": part for name, part in layer.state_dict().items()}
    return state


@pytest.mark.parametrize("definition", ["normalised", "code"])
def test_aesthetic_gives_one_value_a_picture_and_says_which_definition(
    siglip: Path, tmp_path: Path, pictures: "list[Image]", definition: Any
) -> None:
    from fabula.models.vision.predictors import PREPARATIONS, load_aesthetic

    state = head_state()
    torch.save(state, tmp_path / "head.pth")
    model = load_aesthetic(Place(), siglip, tmp_path / "head.pth", definition)
    found = model.predict(pictures)
    tower = transformers.SiglipVisionModel.from_pretrained(siglip).eval()
    with torch.no_grad():
        pixels = torch.from_numpy(PREPARATIONS[definition].pixels(pictures))
        x = tower(pixel_values=pixels, interpolate_pos_encoding=True).pooler_output
        x = x / x.norm(dim=-1, keepdim=True)
        for number in (0, 2, 4, 6, 7):
            x = x @ state[f"scoring_head.{number}.weight"].T + state[f"scoring_head.{number}.bias"]
    assert found.shape == (3, 1)
    assert np.abs(found - x.numpy()).max() < 1e-5
    assert definition in model.identity


def test_inception_gives_probabilities_and_the_definitions_differ(
    tmp_path: Path, pictures: "list[Image]"
) -> None:
    torchvision: Any = pytest.importorskip("torchvision", reason="the extra metrics is not installed")
    from fabula.models.vision.predictors import load_inception

    torch.manual_seed(4)
    module = torchvision.models.inception_v3(weights=None, init_weights=False)
    torch.save(module.state_dict(), tmp_path / "inception.pth")
    found = {}
    for definition in ("paper", "code"):
        model = load_inception(Place(), tmp_path / "inception.pth", definition)  # type: ignore[arg-type]
        found[definition] = model.predict(pictures[:2])
        assert found[definition].shape == (2, 1000)
        assert np.allclose(found[definition].sum(axis=1), 1.0, atol=1e-4)
    assert not np.array_equal(found["paper"], found["code"])
    torch.save({"fc.weight": torch.zeros(1)}, tmp_path / "other.pth")
    with pytest.raises(MissingRequirement, match="inception"):
        load_inception(Place(), tmp_path / "other.pth")

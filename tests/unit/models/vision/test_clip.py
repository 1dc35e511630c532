"""CLIP through the real class, from a tiny random configuration saved and loaded like the published one."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabula.errors import ConfigError, MissingRequirement
from fabula.models.vision.types import Encoder
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import CAST, draw_reference

if TYPE_CHECKING:
    from PIL.Image import Image

torch = pytest.importorskip("torch", reason="the extra metrics is not installed")
transformers = pytest.importorskip("transformers", reason="the extra metrics is not installed")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    config = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=28,
        patch_size=14, projection_dim=16,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("clip")
    transformers.CLIPVisionModelWithProjection(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pictures() -> "list[Image]":
    import io

    from PIL import Image

    return [Image.open(io.BytesIO(draw_reference(key))).convert("RGB") for key, *_ in CAST] * 3


def load(weights: Path) -> Encoder:
    from fabula.models.vision.clip import load_clip

    return load_clip(Place(), weights)


def test_clip_gives_unit_vectors_whatever_the_batch_and_the_order(
    weights: Path, pictures: "list[Image]"
) -> None:
    model = load(weights)
    whole = model.encode(pictures)
    assert whole.shape == (9, 16)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1.0, atol=1e-5)
    alone = np.concatenate([model.encode([picture]) for picture in pictures])
    turned = model.encode(pictures[::-1])[::-1]
    assert np.abs(whole - alone).max() <= model.card.tolerance
    assert np.abs(whole - turned).max() <= model.card.tolerance
    assert np.abs(whole[0] - whole[1]).max() > model.card.tolerance


def test_clip_gives_what_the_library_gives_for_the_same_pixels(
    weights: Path, pictures: "list[Image]"
) -> None:
    from fabula.models.vision.networks import Preparation

    module = transformers.CLIPVisionModelWithProjection.from_pretrained(weights).eval()
    with torch.no_grad():
        raw = module(pixel_values=torch.from_numpy(Preparation(28, 28).pixels(pictures))).image_embeds
    wanted = (raw / raw.norm(dim=1, keepdim=True)).numpy()
    assert np.abs(load(weights).encode(pictures) - wanted).max() < 1e-5


def test_clip_when_weights_are_missing_or_damaged_says_what_is_needed(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingRequirement, match="openai/clip-vit-large-patch14"):
        load(tmp_path / "none")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in weights.iterdir():
        content = file.read_bytes()
        (damaged / file.name).write_bytes(content[:100] if file.suffix == ".safetensors" else content)
    with pytest.raises(MissingRequirement, match="weights"):
        load(damaged)


def test_place_when_there_is_no_such_device_names_those_there_are() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    with pytest.raises(ConfigError, match="cpu"):
        Place("cuda").checked()
    with pytest.raises(ConfigError, match="float32"):
        Place("cpu", "float16").checked()

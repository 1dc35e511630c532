"""CLIP through the real class, from a tiny random configuration saved and loaded like the published one."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabula.errors import ConfigError, MissingRequirement
from fabula.models.vision.registry import open_vision
from fabula.models.vision.types import Encoder, TextEncoder
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import CAST, draw_reference
from fabula.testing.tiny_vision import tiny_settings

if TYPE_CHECKING:
    from PIL.Image import Image

torch = pytest.importorskip("torch", reason="the extra metrics is not installed")
transformers = pytest.importorskip("transformers", reason="the extra metrics is not installed")

pytestmark = pytest.mark.slow


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


def test_clip_gives_what_the_library_gives_for_the_same_pixels(
    weights: Path, pictures: "list[Image]"
) -> None:
    from fabula.models.vision.networks import Preparation

    module = transformers.CLIPVisionModelWithProjection.from_pretrained(weights).eval()
    with torch.no_grad():
        raw = module(pixel_values=torch.from_numpy(Preparation(28, 28).pixels(pictures))).image_embeds
    wanted = (raw / raw.norm(dim=1, keepdim=True)).numpy()
    assert np.abs(load(weights).encode(pictures) - wanted).max() < 1e-5


# The text side of CLIP through the real classes: its tokens, its vectors, and weights that lack a part.

CLIP = "clip-vit-l-14"


@pytest.fixture(scope="module")
def text_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return Path(tiny_settings(CLIP, tmp_path_factory.mktemp("clip"))["local"])


@pytest.fixture(scope="module")
def clip(text_weights: Path) -> TextEncoder:
    model = open_vision(CLIP, Place(), {"local": text_weights}, "text encoder")
    assert isinstance(model, TextEncoder)
    return model


def test_texts_when_they_fit_get_what_the_library_gives(clip: TextEncoder, text_weights: Path) -> None:
    texts = ["A wolf", "an old man by the well"]
    tokenizer = transformers.CLIPTokenizer.from_pretrained(text_weights)
    given = tokenizer(texts, padding="max_length", max_length=77, return_tensors="pt")
    module = transformers.CLIPModel.from_pretrained(text_weights).eval()
    with torch.no_grad():
        pooled = module.text_model(**given).pooler_output
        wanted = module.text_projection(pooled)
    wanted = (wanted / wanted.norm(dim=1, keepdim=True)).numpy()
    found = clip.encode_texts(texts)
    assert np.abs(found.rows - wanted).max() < 1e-5
    assert found.cut == (0, 0)


def test_texts_when_too_long_are_cut_behind_and_say_by_how_much(clip: TextEncoder) -> None:
    # Without merges every letter is a token: 75 fit beside the two marks.
    fits, long = "a" * 75, "a" * 75 + "b" * 20
    found = clip.encode_texts([fits, long])
    assert found.cut == (0, 20)
    assert np.abs(found.rows[0] - clip.encode_texts([fits]).rows[0]).max() <= clip.card.tolerance
    assert np.abs(found.rows[0] - clip.encode_texts(["a" * 74]).rows[0]).max() > 1e-4


def test_weights_when_tensors_are_missing_are_refused_not_made_up(text_weights: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    for file in text_weights.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(text_weights / "model.safetensors")
    del tensors["visual_projection.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(MissingRequirement, match=r"1 of its tensors, such as visual_projection\.weight"):
        open_vision(CLIP, Place(), {"local": tmp_path})


def test_model_when_it_reads_no_text_is_refused_where_one_is_needed() -> None:
    place = "fabula.testing.table_detector:load_colour_encoder"
    with pytest.raises(
        ConfigError, match=r"the kind text encoder is needed here, and this is: encoder[\s\S]*clip-vit-l-14"
    ):
        open_vision(place, Place(), kind="text encoder")

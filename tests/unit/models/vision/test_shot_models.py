"""DINO, RAFT, LAION's heads and MUSIQ against their libraries and arithmetic by hand, with random weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.models.vision.known import draw_pair
from fabula.models.vision.registry import open_vision
from fabula.models.vision.weights import Place
from fabula.testing.tiny_vision import tiny_settings

if TYPE_CHECKING:
    from PIL.Image import Image

torch: Any = pytest.importorskip("torch", reason="the extra metrics is not installed")
transformers: Any = pytest.importorskip("transformers", reason="the extra metrics is not installed")
torchvision: Any = pytest.importorskip("torchvision", reason="the extra metrics is not installed")


@pytest.fixture(scope="module")
def drawings() -> "list[Image]":
    return [drawing.resize((352, 240)) for drawing in draw_pair()]


def as_vbench(images: "list[Image]", mode: str, crop: int, mean: Any, std: Any) -> Any:
    """Prepare frames with torchvision's own transforms, as VBench's utils.py calls them."""
    from torchvision import transforms

    tensor = torch.stack([torch.from_numpy(np.array(image)).permute(2, 0, 1).float() for image in images])
    how = transforms.InterpolationMode(mode)
    tensor = transforms.Resize(224, interpolation=how, antialias=False)(tensor)
    if crop:
        tensor = transforms.CenterCrop(crop)(tensor)
    return transforms.Normalize(mean, std)(tensor / 255)


def test_preparation_when_vbench_prepares_equals_torchvision(drawings: "list[Image]") -> None:
    from fabula.models.vision import dino, laion

    for mode, crop, preparation in (("bilinear", 0, dino.PREPARATION), ("bicubic", 224, laion.L_14)):
        wanted = as_vbench(drawings, mode, crop, preparation.mean, preparation.std)
        assert np.abs(preparation.pixels(drawings) - wanted.numpy()).max() < 1e-6
    assert "whole" in dino.PREPARATION.text() and "centre crop 224" in laion.L_14.text()


def test_dino_when_pictures_are_square_equals_transformers_with_the_authors_epsilon(
    tmp_path: Path, drawings: "list[Image]"
) -> None:
    square = [drawing.resize((256, 256)) for drawing in drawings]
    model: Any = open_vision("dino-b-16", Place(), tiny_settings("dino-b-16", tmp_path))
    theirs = transformers.ViTModel.from_pretrained(tmp_path, add_pooling_layer=False, layer_norm_eps=1e-6)
    pixels = torch.from_numpy(model._network.preparation.pixels(square))
    with torch.no_grad():
        wanted = theirs.eval()(pixel_values=pixels).last_hidden_state[:, 0]
    wanted = torch.nn.functional.normalize(wanted, dim=-1).numpy()
    assert np.abs(model.encode(square) - wanted).max() < 1e-6


def cubic(distance: float) -> float:
    """Weight of a neighbour in bicubic resampling, a = -0.75."""
    x, a = abs(distance), -0.75
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def resampling(rows: int, known: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Matrix from trained to wanted positions, with the authors' scale (rows + 0.1) / known; edges repeat."""
    weights = np.zeros((rows, known))
    for row in range(rows):
        place = (row + 0.5) * known / (rows + 0.1) - 0.5
        left = int(np.floor(place))
        for neighbour in range(left - 1, left + 3):
            weights[row, min(max(neighbour, 0), known - 1)] += cubic(place - neighbour)
    return weights


def test_dino_when_a_picture_is_wide_moves_positions_as_its_authors_do() -> None:
    from types import SimpleNamespace

    from fabula.models.vision.dino import _positions

    torch.manual_seed(3)
    known = torch.randn(1, 1 + 14 * 14, 6)
    there = SimpleNamespace(position_embeddings=known, patch_size=16)
    height, width = 224, 398  # 14 x 24 patches
    found = _positions(there, torch.zeros(1, 1 + 14 * 24, 6), height, width)
    grid = known[0, 1:].reshape(14, 14, 6).numpy().astype(np.float64)
    wanted = np.einsum("ri,cj,ijk->rck", resampling(14, 14), resampling(24, 14), grid)
    assert torch.equal(found[:, :1], known[:, :1])
    assert np.abs(found[0, 1:].numpy() - wanted.reshape(-1, 6)).max() < 1e-5
    assert torch.equal(_positions(there, torch.zeros(1, 197, 6), 224, 224), known)


def test_dino_when_shapes_are_mixed_gives_each_picture_its_own_vector(
    tmp_path: Path, drawings: "list[Image]"
) -> None:
    model: Any = open_vision("dino-b-16", Place(), tiny_settings("dino-b-16", tmp_path))
    mixed = [drawings[0], drawings[1].resize((100, 200)), drawings[1]]
    alone = np.concatenate([model.encode([picture]) for picture in mixed])
    assert np.abs(model.encode(mixed) - alone).max() <= model.card.tolerance
    assert alone.shape == (3, 32) and np.allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("size", [(136, 128), (141, 100)], ids=["fits", "odd and small"])
def test_raft_when_sides_do_not_fit_repeats_edges_and_equals_torchvision(
    tmp_path: Path, drawings: "list[Image]", size: tuple[int, int]
) -> None:
    from torchvision.models.optical_flow import raft_large

    settings = tiny_settings("raft-large", tmp_path)
    model: Any = open_vision("raft-large", Place(dtype="bfloat16"), settings, "flow")
    first, second = (drawing.resize(size) for drawing in drawings)
    found = model.flows([(first, second)])
    assert found.shape == (1, 2, size[1], size[0]) and found.dtype == np.float32
    theirs = raft_large(weights=None).eval()
    theirs.load_state_dict(torch.load(settings["local"], weights_only=True))
    lacking = {(136, 128): (0, 0), (141, 100): (3, 28)}[size]  # to 144 and 128
    left, top = (lack // 2 for lack in lacking)
    around = ((top, lacking[1] - top), (left, lacking[0] - left), (0, 0))
    padded = [np.pad(np.array(image), around, mode="edge") for image in (first, second)]
    given = [torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255 * 2 - 1 for pixels in padded]
    with torch.no_grad():
        wanted = theirs(*given, num_flow_updates=2)[-1].numpy()
    assert np.abs(found - wanted[..., top : top + size[1], left : left + size[0]]).max() < 1e-4
    assert "/float32/" in model.identity and model.identity.endswith("/2-updates")


@pytest.mark.parametrize("name", ["laion-b-32", "laion-l-14"])
def test_laion_when_a_picture_is_rated_equals_the_linear_layer_on_the_unit_vector(
    tmp_path: Path, drawings: "list[Image]", name: str
) -> None:
    settings = tiny_settings(name, tmp_path)
    model: Any = open_vision(name, Place(), settings, "predictor")
    tower = transformers.CLIPVisionModelWithProjection.from_pretrained(settings["local"]).eval()
    head = torch.nn.Linear(16, 1)
    head.load_state_dict(torch.load(settings["head"], weights_only=True))
    with torch.no_grad():
        pixels = torch.from_numpy(model._network.preparation.pixels(drawings))
        wanted = head(torch.nn.functional.normalize(tower(pixel_values=pixels).image_embeds, dim=-1))
    assert np.abs(model.predict(drawings) - wanted.numpy()).max() < 1e-5
    assert model.predict(drawings).shape == (2, 1) and "+" in model.card.revision


def test_musiq_when_a_picture_is_large_is_shown_it_as_vbench_does(
    tmp_path: Path, drawings: "list[Image]"
) -> None:
    library: Any = pytest.importorskip(
        "pyiqa.archs.musiq_arch", reason="the extra musiq, for noncommercial use, is not installed"
    )
    settings = tiny_settings("musiq-spaq", tmp_path)
    model: Any = open_vision("musiq-spaq", Place(), settings, "predictor")
    theirs = library.MUSIQ(pretrained=False).eval()
    theirs.load_state_dict(torch.load(settings["local"], weights_only=True))
    large, small = drawings[0].resize((900, 610)), drawings[1]
    tensors = [torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float() for image in (large, small)]
    tensors[0] = torchvision.transforms.Resize((int(512 / 900 * 610), 512), antialias=False)(tensors[0])
    with torch.no_grad():
        wanted = [float(theirs(tensor / 255)) for tensor in tensors]
    assert np.abs(model.predict([large, small]).ravel() - wanted).max() < 1e-4

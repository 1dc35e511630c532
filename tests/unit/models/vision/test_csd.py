"""The style encoder: a checkpoint with OpenAI's names gives what OpenAI's network would give."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.errors import MissingRequirement
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import CAST, draw_reference

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from PIL.Image import Image

torch: Any = pytest.importorskip("torch", reason="the extra metrics is not installed")
pytest.importorskip("transformers", reason="the extra metrics is not installed")
WIDTH, LAYERS, PATCH, SIDE, SIZE = 64, 2, 56, 224, 24


def block(width: int) -> Any:
    nn = torch.nn

    class QuickGelu(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * torch.sigmoid(1.702 * x)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attn = nn.MultiheadAttention(width, 1, batch_first=True)
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mlp = nn.Sequential()
            self.mlp.add_module("c_fc", nn.Linear(width, 4 * width))
            self.mlp.add_module("gelu", QuickGelu())
            self.mlp.add_module("c_proj", nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            normed = self.ln_1(x)
            x = x + self.attn(normed, normed, normed, need_weights=False)[0]
            return x + self.mlp(self.ln_2(x))

    return Block()


class Tower:
    """A visual tower built from torch's own modules, with the names that OpenAI's checkpoints have."""

    def __init__(self) -> None:
        torch.manual_seed(3)
        nn, self.module = torch.nn, torch.nn.Module()
        self.module.conv1 = nn.Conv2d(3, WIDTH, PATCH, PATCH, bias=False)
        self.module.class_embedding = nn.Parameter(torch.randn(WIDTH))
        self.module.positional_embedding = nn.Parameter(torch.randn((SIDE // PATCH) ** 2 + 1, WIDTH))
        self.module.ln_pre, self.module.ln_post = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.module.transformer = nn.Module()
        self.module.transformer.resblocks = nn.Sequential(*(block(WIDTH) for _ in range(LAYERS)))
        self.style = torch.randn(WIDTH, SIZE)

    def forward(self, pixels: Any) -> Any:
        module = self.module
        patches = module.conv1(pixels).flatten(2).transpose(1, 2)
        first = module.class_embedding.expand(len(pixels), 1, -1)
        x = module.ln_pre(torch.cat([first, patches], dim=1) + module.positional_embedding)
        return module.ln_post(module.transformer.resblocks(x)[:, 0]) @ self.style

    def state(self) -> dict[str, Any]:
        inner = {f"module.backbone.{name}": tensor for name, tensor in self.module.state_dict().items()}
        heads = {"module.last_layer_style": self.style, "module.last_layer_content": self.style * 2}
        return {**inner, **heads, "module.backbone.proj": self.style}


@pytest.fixture(scope="module")
def tower() -> Tower:
    return Tower()


@pytest.fixture
def pictures() -> "list[Image]":
    from PIL import Image

    return [Image.open(io.BytesIO(draw_reference(key))).convert("RGB") for key, *_ in CAST]


def save(state: Any, path: Path) -> Path:
    torch.save({"model_state_dict": state, "epoch": 3}, path)
    return path


def test_csd_gives_what_the_network_of_the_checkpoint_gives(
    tower: Tower, pictures: "list[Image]", tmp_path: Path
) -> None:
    from fabula.models.vision.csd import PREPARATION, load_csd

    model = load_csd(Place(), save(tower.state(), tmp_path / "csd.pth"))
    with torch.no_grad():
        raw = tower.forward(torch.from_numpy(PREPARATION.pixels(pictures)))
    wanted = (raw / raw.norm(dim=1, keepdim=True)).numpy()
    found = model.encode(pictures)
    assert found.shape == (3, SIZE)
    assert np.abs(found - wanted).max() < 1e-5
    alone = np.concatenate([model.encode([picture]) for picture in pictures])
    assert np.abs(found - alone).max() <= model.card.tolerance


@pytest.mark.parametrize(
    "change", ["no style", "a layer less", "another tensor", "not tensors", "cut", "none"]
)
def test_csd_when_the_checkpoint_is_another_says_so(tower: Tower, tmp_path: Path, change: str) -> None:
    from fabula.models.vision.csd import load_csd

    state, path = tower.state(), tmp_path / "csd.pth"
    if change == "no style":
        del state["module.last_layer_style"]
    if change == "a layer less":
        del state["module.backbone.transformer.resblocks.1.mlp.c_fc.bias"]
    if change == "another tensor":
        state["module.backbone.transformer.resblocks.0.extra"] = torch.zeros(2)
    save(["no", "tensors"] if change == "not tensors" else state, path)
    if change == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    if change == "none":
        path.unlink()
    with pytest.raises(MissingRequirement, match="CSD-ViT-L"):
        load_csd(Place(), path)

"""DINO, RAFT, LAION's heads and MUSIQ against their libraries and arithmetic by hand, with random weights."""

import hashlib
import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.errors import MissingRequirement
from fabula.models.vision import weights
from fabula.models.vision.facenet_export import write_onnx
from fabula.models.vision.fetching import bring
from fabula.models.vision.networks import HALF, NONE_MEAN, NONE_STD, Preparation
from fabula.models.vision.registry import draw_pair, open_vision
from fabula.models.vision.weights import (
    Place,
    Source,
    fetch_file,
    load_pretrained,
    pinned,
    revision_of,
    stored,
    weights_folder,
)
from fabula.testing.drawn_shots import CAST, draw_reference
from fabula.testing.tiny_vision import tiny_settings

if TYPE_CHECKING:
    from PIL.Image import Image

pytestmark = pytest.mark.slow


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
    from fabula.models.vision import dino, predictors

    for mode, crop, preparation in (("bilinear", 0, dino.PREPARATION), ("bicubic", 224, predictors.L_14)):
        wanted = as_vbench(drawings, mode, crop, preparation.mean, preparation.std)
        assert np.abs(preparation.pixels(drawings) - wanted.numpy()).max() < 1e-6
    assert "whole" in dino.PREPARATION.text() and "centre crop 224" in predictors.L_14.text()


def test_dino_when_pictures_are_square_equals_transformers_with_the_authors_epsilon(tmp_path, drawings):
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


def test_dino_when_shapes_are_mixed_gives_each_picture_its_own_vector(tmp_path, drawings):
    model: Any = open_vision("dino-b-16", Place(), tiny_settings("dino-b-16", tmp_path))
    mixed = [drawings[0], drawings[1].resize((100, 200)), drawings[1]]
    alone = np.concatenate([model.encode([picture]) for picture in mixed])
    assert np.abs(model.encode(mixed) - alone).max() <= model.card.tolerance
    assert alone.shape == (3, 32) and np.allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("size", [(136, 128), (141, 100)], ids=["fits", "odd and small"])
def test_raft_when_sides_do_not_fit_repeats_edges_and_equals_torchvision(tmp_path, drawings, size):
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
def test_laion_when_a_picture_is_rated_equals_the_linear_layer_on_the_unit_vector(tmp_path, drawings, name):
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


def test_musiq_when_a_picture_is_large_is_shown_it_as_vbench_does(tmp_path, drawings):
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


# Preparations: sizes, crops and normalisation, against the steps done by hand.


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


# DINOv2, the aesthetic predictor and Inception through the real classes, with random weights.


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


def test_inception_gives_probabilities_and_the_definitions_differ(tmp_path, pictures):
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


# -- Weights in their folder: fetched over loopback, resumed, pinned, brought from elsewhere

torch = pytest.importorskip("torch", reason="the extra metrics is not installed")


COMMIT = "1" * 40
FILES = {"config.json": b"{}", "model.safetensors": b"tensors" * 1000, "vocab.txt": b"words"}
MODEL = Source("some/model", COMMIT, also=("vocab.txt", "merges.txt"))


@dataclass
class Publisher:
    """A Hub, and a place of files elsewhere, on the loopback interface."""

    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    stops_after: int | None = None
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    publisher: Publisher

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        publisher = self.publisher
        publisher.asked.append((self.command, self.path, self.headers.get("Range", "")))
        name = self.path.rpartition("/")[2]
        content = publisher.files.get(name)
        if content is None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Length", "0")
            if self.path != "/":
                self.send_header("X-Error-Code", "EntryNotFound")
            self.end_headers()
            return
        start = (
            int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if "Range" in self.headers else 0
        )
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if body:
            self.wfile.write(content[start : publisher.stops_after])
            if publisher.stops_after is not None:
                publisher.stops_after = None
                self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    from huggingface_hub import constants

    made = Publisher()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"publisher": made}))
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, made.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", made.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    weights._asked.clear()
    weights._lost.clear()
    yield made
    server.shutdown()
    server.server_close()
    weights._asked.clear()
    weights._lost.clear()


class Kind:
    """A class of transformers that notes where it is loaded from."""

    asked: tuple[str, dict[str, Any]]

    @classmethod
    def from_pretrained(cls, place: str, **how: Any) -> str:
        cls.asked = (place, how)
        return "loaded"


def test_bring_when_the_hub_has_the_model_pins_its_files_and_loads_from_there(publisher, capfd):
    bring(MODEL)
    folder = weights_folder() / "some--model"
    assert stored(MODEL) == folder
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    entries = pinned(MODEL)
    assert set(entries) == set(FILES) and all(entry.checked for entry in entries.values())
    assert entries["config.json"].sha256 == hashlib.sha256(b"{}").hexdigest()
    assert revision_of(MODEL, None) == COMMIT
    before = len(publisher.asked)
    assert load_pretrained(Kind, MODEL) == "loaded" and Kind.asked == (
        str(folder),
        {"local_files_only": True},
    )
    bring(MODEL)
    assert [path for _, path, _ in publisher.asked[before:] if "merges" not in path] == []
    assert capfd.readouterr() == ("", "")


def test_bring_when_a_download_broke_off_goes_on_where_it_was(publisher: Publisher) -> None:
    publisher.files["head.pth"] = content = bytes(range(256)) * 500
    source = Source(
        "example.org/heads", file="head.pth", address=f"{publisher.url}/head.pth", on_request=True
    )
    publisher.stops_after = 70_000
    with pytest.raises(ConnectionError, match="broke off"):
        bring(source)
    with pytest.raises(MissingRequirement, match="nobody fetched them yet"):
        fetch_file(source)
    bring(source)
    assert fetch_file(source).read_bytes() == content
    assert publisher.asked[-1] == ("GET", "/head.pth", "bytes=70000-")
    assert not pinned(source)["head.pth"].checked


def test_file_when_it_changes_after_it_was_pinned_is_refused(publisher: Publisher) -> None:
    publisher.files["head.pth"] = b"first"
    source = Source("example.org/heads", file="head.pth", address=f"{publisher.url}/head.pth")
    bring(source)
    path = fetch_file(source)
    path.write_bytes(b"other")
    with pytest.raises(MissingRequirement, match="another SHA-256"):
        fetch_file(source)


def test_bring_when_the_content_is_not_the_recorded_one_keeps_nothing(publisher: Publisher) -> None:
    publisher.files["head-00000000.pth"] = b"other"
    source = Source("example.org/x", file="head-00000000.pth", address=f"{publisher.url}/head-00000000.pth")
    for wrong in (source, replace(source, sha256="1" * 64)):
        with pytest.raises(ValueError, match=r"has SHA-256 .* instead of (0000|1111)"):
            bring(wrong)
        assert stored(wrong) is None and not pinned(wrong)


def test_bring_when_files_come_from_a_folder_goes_by_what_the_client_noted(tmp_path: Path) -> None:
    place = tmp_path / "brought" / "some--model"
    notes = place / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    bring(MODEL, tmp_path / "brought")
    assert [entry.checked for entry in pinned(MODEL).values()] == [False] * 3
    unsure = revision_of(MODEL, None)
    assert unsure != COMMIT and len(unsure) == 64

    for name, content in FILES.items():
        (notes / f"{name}.metadata").write_text(f"{COMMIT}\n{hashlib.sha256(content).hexdigest()}\n0\n")
        (weights_folder() / "some--model" / name).unlink()
    bring(MODEL, tmp_path / "brought")
    assert revision_of(MODEL, None) == COMMIT
    with pytest.raises(FileNotFoundError, match=r"no some--other/config\.json"):
        bring(replace(MODEL, repo="some/other"), tmp_path / "brought")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the exporter, which has the plainer graph
def test_onnx_when_a_network_takes_any_size_gives_the_same_vectors(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra metrics is not installed")
    layers = (
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
    )
    write_onnx(torch.nn.Sequential(*layers), tmp_path / "made.onnx", (20, 12))
    assert (tmp_path / "made.onnx").is_file()

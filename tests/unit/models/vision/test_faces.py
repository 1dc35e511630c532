"""Faces on graphs that are built here and know where faces are; insightface agrees, where it is there."""

import io
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.errors import ConfigError, MissingRequirement
from fabula.models.vision.detectors import SAM2_CARD, Sam2, fitted, load_grounding_dino
from fabula.models.vision.face_encoders import (
    ARCFACE,
    FFHQ,
    Face,
    Scrfd,
    bgr,
    choose_face,
    load_adaface,
    load_arcface,
    load_facenet,
    load_faces,
    positioned,
    similarity,
)
from fabula.models.vision.registry import open_vision
from fabula.models.vision.store import Box, Encoder, Points, TextEncoder
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import CAST, draw_reference, draw_shot, onstage
from fabula.testing.tiny_vision import (
    FACE_SIDE,
    STRIDE,
    draw_faces,
    encoder_weights,
    tiny_settings,
    write_encoder,
    write_face_detector,
)

if TYPE_CHECKING:
    from PIL.Image import Image

pytest.importorskip("onnxruntime", reason="the extra metrics is not installed")
pytest.importorskip("onnx", reason="the extra metrics is not installed")
pytest.importorskip("cv2", reason="the extra metrics is not installed")


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("faces")
    return {
        "detector": write_face_detector(folder / "detector.onnx"),
        "local": write_encoder(folder / "112.onnx"),
        "wide": write_encoder(folder / "160.onnx", 160),
    }


def box_at(column: int, row: int, scale: float = 1.0) -> tuple[float, ...]:
    half = FACE_SIDE / 2
    edges = (column * STRIDE - half, row * STRIDE - half, column * STRIDE + half, row * STRIDE + half)
    return tuple(edge * scale for edge in edges)


def test_finder_when_faces_are_drawn_finds_them_best_first(weights: dict[str, Path]) -> None:
    finder = load_faces(Place(), weights["detector"])
    found, half_size, none = finder.faces(
        [draw_faces([(4, 5, 180), (12, 9, 240)]), draw_faces([(4, 5, 255)], (320, 320)), draw_faces([])]
    )
    assert [face.box.label for face in found] == ["face", "face"] and none == ()
    for face, (column, row, red) in zip(found, [(12, 9, 240), (4, 5, 180)], strict=True):
        assert edges(face.box) == pytest.approx(box_at(column, row), abs=1e-3)
        assert face.box.score == pytest.approx(red / 255, abs=0.01)
    assert edges(half_size[0].box) == pytest.approx(box_at(4, 5, 0.5), abs=1e-3)


def edges(box: Box) -> tuple[float, ...]:
    return (box.left, box.top, box.right, box.bottom)


def test_finder_when_thresholds_fall_stops_at_the_first_that_finds_a_face(weights: dict[str, Path]) -> None:
    finder = load_faces(Place(), weights["detector"])
    picture = draw_faces([(4, 5, 100), (12, 9, 70), (8, 15, 45)])  # scores 0.39, 0.27, 0.18
    assert [round(box.score, 2) for box in finder.detect([picture])[0]] == [0.39]
    every = load_faces(Place(), weights["detector"], (0.15,))
    assert [round(box.score, 2) for box in every.detect([picture])[0]] == [0.39, 0.27, 0.18]
    assert finder.identity != every.identity


def test_choice_when_several_faces_are_there_is_as_named() -> None:
    points = np.zeros((5, 2), np.float32)
    sure, large = Face(Box(0, 0, 5, 5, 0.9), points), Face(Box(9, 9, 30, 30, 0.6), points)
    assert choose_face([large, sure], "most confident") is sure
    assert choose_face([sure, large], "largest") is large
    assert choose_face([], "largest") is None


def test_similarity_when_points_were_turned_and_scaled_takes_that_back() -> None:
    target = np.array(ARCFACE.points)
    turn = 1.7 * np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    move = similarity(target @ turn.T + [30, -8], target)
    assert move is not None
    assert np.allclose((target @ turn.T + [30, -8]) @ move[:, :2].T + move[:, 2], target)
    assert similarity(np.ones((5, 2)), target) is None


class Graph:
    """A session that gives what a table holds, whatever it is shown, and keeps that."""

    def __init__(self, grids: int, rows: Any) -> None:
        self.outputs = []
        anchors = 2 if grids == 3 else 1
        for width in (1, 4, 10):
            for grid in range(grids):
                self.outputs.append(rows((640 // (8 << grid)) ** 2 * anchors, width).astype(np.float32))

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="pixels", shape=[1, 3, 640, 640])]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name=str(n), shape=rows.shape) for n, rows in enumerate(self.outputs)]

    def run(self, _names: Any, fed: dict[str, Any]) -> list[Any]:
        self.fed = fed["pixels"]
        return self.outputs


def test_scrfd_when_an_anchor_is_sure_reads_its_box_and_points_in_cells() -> None:
    graph = Graph(3, lambda count, width: np.zeros((count, width)))
    row = 2 * (3 * 40 + 5) + 1  # row 3, column 5 of the cells of 16 pixels, second anchor: at x 80, y 48
    graph.outputs[1][row] = 0.75
    graph.outputs[4][row] = [1, 2, 3, 4]
    graph.outputs[7][row] = [0, 0, 1, 0, 0, 1, -1, 0, 0.5, -2]
    boxes, points = Scrfd(graph)(np.full((320, 640, 3), (10, 20, 30), np.uint8), 0.5)
    assert boxes.tolist() == [[80 - 16, 48 - 32, 80 + 48, 48 + 64, 0.75]]
    assert points.tolist() == [[[80, 48], [96, 48], [80, 64], [64, 48], [88, 16]]]
    # RGB, (value - 127.5) / 128; below the picture is nothing
    assert graph.fed[0, :, 100, 9].tolist() == [-0.76171875, -0.83984375, -0.91796875]
    assert graph.fed[0, :, 320, 9].tolist() == [-0.99609375] * 3


@pytest.mark.parametrize("grids", [3, 5])
def test_scrfd_reads_what_insightface_reads(grids: int) -> None:
    library = pytest.importorskip("insightface.model_zoo.scrfd", reason="pip install insightface, to compare")
    rng = np.random.default_rng(3)
    ranges = {1: (0, 0.16), 4: (1, 4), 10: (-2, 2)}
    graph = Graph(grids, lambda count, width: rng.uniform(*ranges[width], (count, width)))
    wrapped = library.SCRFD(session=graph)
    wrapped.prepare(0, input_size=(640, 640), nms_thresh=0.4)
    for size in ((640, 640), (1001, 333), (20, 300), (641, 639)):
        picture = bgr(draw_faces([(7, 7, 250), (3, 9, 90)], size))
        boxes, points = Scrfd(graph)(picture, 0.15)
        seen = graph.fed
        wanted, places = wrapped.detect(picture, max_num=0, det_thresh=0.15)
        assert len(wanted) > 50 and np.array_equal(boxes, wanted) and np.array_equal(points, places)
        assert np.array_equal(seen, graph.fed)


@pytest.mark.parametrize("names", [("Conv_0", "PRelu_1"), ("_minusscalar0", "_mulscalar0")])
def test_arcface_gives_what_insightface_gives(weights: dict[str, Path], tmp_path: Path, names: Any) -> None:
    import onnx

    library = pytest.importorskip("insightface.model_zoo.arcface_onnx", reason="pip install insightface")
    graph = onnx.load(str(weights["local"]))
    for node, name in zip(graph.graph.node, names, strict=False):
        node.name = name
    onnx.save(graph, str(tmp_path / "own.onnx"))
    picture = draw_faces([(7, 8, 250), (15, 3, 120)], (400, 400))
    model = load_arcface(Place(), tmp_path / "own.onnx", weights["detector"])
    (face, *_) = model.finder.faces([picture])[0]
    wanted = library.ArcFaceONNX(str(tmp_path / "own.onnx")).get_feat([positioned(picture, face, ARCFACE)])[0]
    assert np.abs(model.encode([picture])[0] - wanted / np.linalg.norm(wanted)).max() < 1e-6
    assert ("[0, 255]" in model.card.input) == (names[0] == "_minusscalar0")


def test_position_is_that_of_insightface(weights: dict[str, Path]) -> None:
    norm_crop = pytest.importorskip(
        "insightface.utils.face_align", reason="pip install insightface"
    ).norm_crop

    picture = draw_faces([(7, 7, 250), (3, 9, 90)])
    rng = np.random.default_rng(5)
    points = np.array(ARCFACE.points) * 1.3 + rng.normal(0, 4, (5, 2)) + 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it calls what scikit-image deprecates
        wanted = norm_crop(bgr(picture), points.astype(np.float32))
    face = Face(Box(0, 0, 9, 9), points.astype(np.float32))
    made = positioned(picture, face, ARCFACE)
    assert made is not None and np.abs(made.astype(int) - wanted.astype(int)).max() <= 1


def test_position_when_points_lie_in_one_place_gives_nothing() -> None:
    face = Face(Box(0, 0, 9, 9), np.ones((5, 2), np.float32))
    assert positioned(draw_faces([]), face, ARCFACE) is None


def by_hand(pixels: Any, cell: int) -> Any:
    """What the built encoder makes of normalised pixels, shape (3, side, side), by numpy alone."""
    means = pixels.reshape(3, 4, cell, 4, cell).mean(axis=(2, 4))
    row = means.reshape(-1) @ encoder_weights()
    return row / np.linalg.norm(row)


def channels(face: Any, mean: float, std: float) -> Any:
    return ((face.astype(np.float32) - mean) / std).transpose(2, 0, 1)


@pytest.mark.parametrize(
    "name", ["arcface", "adaface paper", "adaface code", "facenet paper", "facenet code"]
)
def test_encoder_sees_exactly_what_its_definition_says(weights: dict[str, Path], name: str) -> None:
    from PIL import Image

    kind, _, definition = name.partition(" ")
    picture = draw_faces([(7, 8, 250), (15, 3, 120)], (400, 400))
    (face, *_) = load_faces(Place(), weights["detector"]).faces([picture])[0]
    straight, small = positioned(picture, face, ARCFACE), positioned(picture, face, FFHQ)
    assert straight is not None and small is not None
    crop = picture.crop(tuple(int(edge) for edge in edges(face.box)))
    square = np.asarray(crop.resize((160, 160), Image.Resampling.BILINEAR))
    sees = {
        "arcface": channels(straight[:, :, ::-1], 127.5, 127.5),
        "adaface paper": channels(straight, 127.5, 127.5),
        "adaface code": channels(small, 127.5, 127.5),
        "facenet paper": channels(square, 127.5, 128),
        "facenet code": channels(small, 0, 255),
    }[name]
    load = {"arcface": load_arcface, "adaface": load_adaface, "facenet": load_facenet}[kind]
    local = weights["wide" if name == "facenet paper" else "local"]
    given: dict[str, Any] = {"definition": definition} if definition else {}
    model = load(Place(), local, weights["detector"], **given)
    assert np.abs(model.encode([picture])[0] - by_hand(sees, sees.shape[1] // 4)).max() < 1e-5
    assert model.card.dimensions == 16 and (definition in model.identity)


def test_encoder_when_the_choice_is_another_takes_another_face(weights: dict[str, Path]) -> None:
    first = load_arcface(Place(), weights["local"], weights["detector"])
    largest = load_arcface(Place(), weights["local"], weights["detector"], choice="largest")
    picture = draw_faces([(0, 7, 250), (12, 9, 200)])  # the surer face is cut off by the edge
    assert np.abs(first.encode([picture]) - largest.encode([picture])).max() > 1e-3
    assert first.identity != largest.identity


def test_encoders_of_one_detector_look_for_faces_once(weights, monkeypatch):
    models = [load(Place(), weights["local"], weights["detector"]) for load in (load_arcface, load_adaface)]
    assert models[0].finder is models[1].finder
    looked = []
    find = models[0].finder._find
    monkeypatch.setattr(models[0].finder, "_find", lambda image: looked.append(1) or find(image))
    picture = draw_faces([(9, 11, 222)])
    for model in models:
        model.encode([picture, picture])
    assert len(looked) == 1


# Detectors of characters and of people, and the segmenter: what is prepared, kept and refused.


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


def test_grounding_dino_gives_what_the_library_makes_of_the_same_pixels(tiny, shot):
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


# -- CLIP through the real class, from a tiny random configuration saved and loaded like the published one

torch = pytest.importorskip("torch", reason="the extra metrics is not installed")
transformers = pytest.importorskip("transformers", reason="the extra metrics is not installed")


@pytest.fixture(scope="module")
def weights_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def load(weights_clip: Path) -> Encoder:
    from fabula.models.vision.clip import load_clip

    return load_clip(Place(), weights_clip)


def test_clip_gives_what_the_library_gives_for_the_same_pixels(weights_clip, pictures):
    from fabula.models.vision.networks import Preparation

    module = transformers.CLIPVisionModelWithProjection.from_pretrained(weights_clip).eval()
    with torch.no_grad():
        raw = module(pixel_values=torch.from_numpy(Preparation(28, 28).pixels(pictures))).image_embeds
    wanted = (raw / raw.norm(dim=1, keepdim=True)).numpy()
    assert np.abs(load(weights_clip).encode(pictures) - wanted).max() < 1e-5


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


# -- The style encoder: a checkpoint with OpenAI's names gives what OpenAI's network would give

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
def pictures_csd() -> "list[Image]":
    from PIL import Image

    return [Image.open(io.BytesIO(draw_reference(key))).convert("RGB") for key, *_ in CAST]


def save(state: Any, path: Path) -> Path:
    torch.save({"model_state_dict": state, "epoch": 3}, path)
    return path


def test_csd_gives_what_the_network_of_the_checkpoint_gives(tower, pictures_csd, tmp_path):
    from fabula.models.vision.csd import PREPARATION, load_csd

    model = load_csd(Place(), save(tower.state(), tmp_path / "csd.pth"))
    with torch.no_grad():
        raw = tower.forward(torch.from_numpy(PREPARATION.pixels(pictures_csd)))
    wanted = (raw / raw.norm(dim=1, keepdim=True)).numpy()
    found = model.encode(pictures_csd)
    assert found.shape == (3, SIZE)
    assert np.abs(found - wanted).max() < 1e-5
    alone = np.concatenate([model.encode([picture]) for picture in pictures_csd])
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

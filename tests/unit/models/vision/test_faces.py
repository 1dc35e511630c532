"""Faces through the real classes of insightface, on graphs that are built here and know where faces are."""

import io
import warnings
from pathlib import Path
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

pytest.importorskip("insightface", reason="the extra metrics is not installed")
pytest.importorskip("onnx", reason="the extra metrics is not installed")
pytest.importorskip("cv2", reason="the extra metrics is not installed")

from fabula.models.vision.face_encoders import load_adaface, load_arcface, load_facenet
from fabula.models.vision.faces import (
    ARCFACE,
    FFHQ,
    Face,
    bgr,
    choose_face,
    load_faces,
    positioned,
    similarity,
)
from fabula.testing.tiny_vision import (
    FACE_SIDE,
    STRIDE,
    draw_faces,
    encoder_weights,
    write_encoder,
    write_face_detector,
)

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


def test_position_is_that_of_insightface(weights: dict[str, Path]) -> None:
    from insightface.utils.face_align import norm_crop

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


def test_encoders_of_one_detector_look_for_faces_once(
    weights: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
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

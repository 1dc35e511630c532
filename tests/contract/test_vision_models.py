"""One suite over every registered model: small random weights, loaded like the published ones."""

import importlib.util
import io
import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.errors import ConfigError, MissingRequirement
from fabula.models.vision import store
from fabula.models.vision.detectors import LAYOUTS
from fabula.models.vision.registry import MODELS, Registered, check_vision, open_vision
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import draw_shot, onstage
from fabula.testing.tiny_vision import draw_faces, tiny_settings

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from PIL.Image import Image

HOME = {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "0"}
Open = Callable[..., store.VisionModel]


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(HOME, YOLO_CONFIG_DIR=str(tmp_path_factory.mktemp("yolo")))
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)  # small work, and other tests run beside it
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: model.name)
def registered(request: pytest.FixtureRequest) -> Registered:
    model: Registered = request.param
    for library in (*model.libraries, *(("onnx",) if "onnxruntime" in model.libraries else ())):
        if importlib.util.find_spec(library) is None:
            extra = "musiq, for noncommercial use," if library == "pyiqa" else "metrics"
            pytest.skip(f"{library} is not installed: the extra {extra} is missing")
    return model


@pytest.fixture(scope="module")
def settings(registered: Registered, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return tiny_settings(registered.name, tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def model(registered: Registered, settings: dict[str, Any]) -> store.VisionModel:
    return open_vision(registered.name, Place(), settings, registered.kind)


@pytest.fixture(scope="module")
def pictures() -> "list[Image]":
    """A shot, faces, a grey picture, one with transparency and a panorama."""
    from PIL import Image

    shot = Image.open(io.BytesIO(draw_shot(onstage(3), 3)))
    face = draw_faces([(3, 8, 200), (12, 10, 250)], (320, 320))
    return [shot, face, shot.convert("L"), draw_faces([(5, 5, 255)]).convert("RGBA"), shot.resize((300, 20))]


@pytest.fixture(scope="module")
def rows(model: store.VisionModel, pictures: "list[Image]") -> Any:
    return rows_of(model, pictures)


def rows_of(model: store.VisionModel, images: "list[Image]") -> Any:
    if isinstance(model, store.Encoder):
        return model.encode(images)
    if isinstance(model, store.Predictor):
        return model.predict(images)
    if isinstance(model, store.Flow):
        pairs = [(image.resize((136, 96)), image.resize((136, 96)).rotate(3)) for image in images]
        return model.flows(pairs).reshape(len(images), -1)
    if isinstance(model, store.Segmenter):
        masks = model.segment(images, [LAYOUTS["character"]] * len(images))
        assert [mask.shape for mask in masks] == [(image.height, image.width) for image in images]
        return np.array([[mask.mean(), mask[: len(mask) // 2].mean()] for mask in masks])
    assert isinstance(model, store.Detector)
    found = model.detect(images)
    assert len(found) == len(images)
    rows = np.full((len(images), 64 * 5), np.nan)
    for row, boxes in zip(rows, found, strict=True):
        numbers = [(box.left, box.top, box.right, box.bottom, box.score) for box in boxes[:64]]
        row[: 5 * len(numbers)] = np.array(numbers).reshape(-1)
    return rows


def test_model_when_batches_differ_gives_the_same_within_its_tolerance(model, pictures, rows):
    assert rows.shape[0] == len(pictures)
    alone = np.concatenate([rows_of(model, [picture]) for picture in pictures])
    turned = rows_of(model, pictures[::-1])[::-1]
    for other in (alone, turned):
        assert (np.isnan(rows) == np.isnan(other)).all()
        assert np.nanmax(np.abs(rows - other), initial=0) <= model.card.tolerance


def test_text_encoder_when_batches_differ_gives_the_same_and_tells_what_it_cut(model, registered, pictures):
    if registered.kind != "text encoder":
        assert not isinstance(model, store.TextEncoder)
        return
    assert isinstance(model, store.TextEncoder)
    texts = ["Mira stands still", "a dry well, daytime", "x", "walks on and on " * 60, "站着"]
    whole = model.encode_texts(texts)
    assert whole.rows.dtype == np.float32 and whole.rows.shape == (5, model.encode(pictures[:1]).shape[1])
    assert np.allclose(np.linalg.norm(whole.rows, axis=1), 1, atol=1e-5)
    assert [cut > 0 for cut in whole.cut] == [False, False, False, True, False]
    turned = model.encode_texts(texts[::-1])
    for place, text in enumerate(texts):
        alone = model.encode_texts([text])
        assert alone.cut[0] == whole.cut[place] == turned.cut[::-1][place]
        for other in (alone.rows[0], turned.rows[::-1][place]):
            assert np.abs(whole.rows[place] - other).max() <= model.card.tolerance


def test_grounder_when_texts_and_pictures_are_batched_finds_the_same_within_its_tolerance(
    model: store.VisionModel, registered: Registered, pictures: "list[Image]"
) -> None:
    if registered.kind != "grounder":
        assert not isinstance(model, store.Grounder)
        return
    assert isinstance(model, store.Grounder)
    some = [pictures[0], pictures[0].rotate(180), pictures[1]]
    texts = [["person", "character", "a person. character"], ["person"], ["character", "person"]]
    whole = model.ground(some, texts, 16)
    assert [list(map(bool, found)) for found in whole] == [[True] * len(asked) for asked in texts]
    alone = [
        [model.ground([image], [[text]])[0][0] for text in asked]
        for image, asked in zip(some, texts, strict=True)
    ]
    turned = model.ground(some[::-1], [asked[::-1] for asked in texts[::-1]], 2)
    for other in (alone, model.ground(some, texts, 1), [found[::-1] for found in turned[::-1]]):
        for boxes, others in zip(chain(*whole), chain(*other), strict=True):
            assert len(boxes) == len(others)
            for box, its in zip(boxes, others, strict=True):
                edges = np.abs(np.array(edges_of(box)) - np.array(edges_of(its)))
                assert edges.max() <= model.card.tolerance
    assert model.ground([], []) == []
    assert model.ground(some[:1], [[]]) == [[]]


def test_grounder_when_one_text_is_asked_finds_what_the_plain_detector_does(settings, registered, pictures):
    if registered.kind != "grounder":
        return
    model = open_vision(registered.name, Place(), {**settings, "prompt": "person"}, "grounder")
    assert isinstance(model, store.Grounder) and isinstance(model, store.Detector)
    found = model.ground(pictures, [["Person."]] * len(pictures), 1)
    plain = [model.detect([picture])[0] for picture in pictures]
    assert [[edges_of(box) for box in boxes] for (boxes,) in found] == [
        [edges_of(box) for box in boxes] for boxes in plain
    ]


def edges_of(box: store.Box) -> tuple[float, ...]:
    return (box.left, box.top, box.right, box.bottom, box.score)


def test_model_when_it_has_a_kind_keeps_its_promises(model, registered, pictures, rows):
    if registered.kind in ("encoder", "text encoder"):
        assert rows.dtype == np.float32 and rows.shape[1] >= 2
        lengths = np.linalg.norm(rows, axis=1)
        assert np.allclose(lengths[~np.isnan(lengths)], 1, atol=1e-5) and not np.isnan(lengths).all()
    elif registered.kind == "flow":
        assert rows.dtype == np.float32 and rows.shape[1] == 2 * 96 * 136 and np.isfinite(rows).all()
    elif registered.kind == "segmenter":
        assert (rows >= 0).all() and (rows <= 1).all() and rows[:, 0].max() > 0
    elif registered.kind == "predictor":
        assert rows.dtype == np.float32 and np.isfinite(rows).all()
    else:
        assert isinstance(model, store.Detector)
        found = model.detect(pictures)
        assert any(found), "something is found somewhere"
        for picture, boxes in zip(pictures, found, strict=True):
            assert [box.score for box in boxes] == sorted((box.score for box in boxes), reverse=True)
            for box in boxes:
                assert box.area > 0 and 0 <= box.score <= 1 and box.label
                assert box == box.within(picture.width, picture.height)


def test_model_when_loaded_again_has_the_same_identity_and_gives_the_same(
    model: store.VisionModel,
    registered: Registered,
    settings: dict[str, Any],
    pictures: "list[Image]",
    rows: Any,
) -> None:
    again = open_vision(registered.name, Place(), {key: as_text(value) for key, value in settings.items()})
    assert again.identity == model.identity
    assert model.card.name in model.identity and len(model.card.revision) >= 12
    assert np.array_equal(rows_of(again, pictures), rows, equal_nan=True)


def as_text(value: Any) -> Any:
    """Settings come from TOML, where a path is a string."""
    return str(value) if isinstance(value, Path) else value


def test_model_when_weights_are_damaged_or_missing_says_which(registered, settings, tmp_path):
    with pytest.raises(MissingRequirement, match="weights of"):
        open_vision(registered.name, Place(), {**settings, "local": tmp_path / "none"})
    damaged = tmp_path / "damaged"
    original = Path(settings["local"])
    if original.is_dir():
        damaged.mkdir()
        for file in original.iterdir():
            content = file.read_bytes()
            (damaged / file.name).write_bytes(content[:100] if file.suffix == ".safetensors" else content)
    else:
        damaged = damaged.with_suffix(original.suffix)
        damaged.write_bytes(original.read_bytes()[:100])
    with pytest.raises(MissingRequirement, match="weights of"):
        open_vision(registered.name, Place(), {**settings, "local": damaged})


def test_model_when_there_is_no_network_says_what_to_fetch(registered, tmp_path, monkeypatch):
    if importlib.util.find_spec("torch"):
        import torch

        monkeypatch.setenv("TORCH_HOME", str(tmp_path))
        monkeypatch.setattr(torch.hub, "_hub_dir", None, raising=False)
    with pytest.raises(MissingRequirement, match=r"fetch .* elsewhere and name it in the settings"):
        open_vision(registered.name, Place())


def test_model_when_the_device_is_not_there_says_so(registered: Registered, settings: dict[str, Any]) -> None:
    if importlib.util.find_spec("torch"):
        import torch

        if torch.cuda.is_available():
            pytest.skip("this machine has the device")
    with pytest.raises(ConfigError, match=r"device: (this machine has no|onnxruntime cannot use) cuda"):
        open_vision(registered.name, Place("cuda"), settings)


def test_check_when_a_setting_is_unknown_names_it(registered: Registered) -> None:
    check_vision(registered.name)
    with pytest.raises(ConfigError, match="lokal"):
        check_vision(registered.name, {"lokal": "x"})

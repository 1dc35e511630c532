"""The store of vectors: each picture once per encoder, bit for bit, within its limit."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabula.errors import ConfigError
from fabula.models.spec import ModelSettings
from fabula.models.vision import needs, registry
from fabula.models.vision import store as stores
from fabula.models.vision.weights import Place, weights_folder
from fabula.schemas.paths import VECTORS, SharedFiles
from fabula.testing import table_detector
from fabula.testing.table_detector import ColourEncoder, ColourPredictor, TableDetector

if TYPE_CHECKING:
    from PIL.Image import Image


class MeanColour:
    """An encoder for tests: the mean colour as a unit vector, and how often it was asked."""

    def __init__(self, revision: str = "1") -> None:
        self.card = stores.Card("mean-colour", "nowhere", revision, "as it is", 3, 0.0, "none")
        self.identity = stores.identity_of(self.card, "float32", "cpu")
        self.seen = 0

    def encode(self, images: "Sequence[Image]") -> stores.Rows:
        self.seen += len(images)
        rows = np.array([np.asarray(image, dtype=np.float32).mean(axis=(0, 1)) for image in images])
        with np.errstate(invalid="ignore"):
            unit: stores.Rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


def pictures(count: int) -> "list[Image]":
    from PIL import Image

    return [Image.new("RGB", (8, 8), (number % 256, 7, 200)) for number in range(count)]


def test_rows_when_asked_again_come_from_the_store_bit_for_bit(tmp_path: Path) -> None:
    model, images = MeanColour(), pictures(40)
    with stores.VectorStore(tmp_path) as store:
        first = store.rows(model, images)
    with stores.VectorStore(tmp_path) as store:
        second = store.rows(MeanColour(), images[::-1])
        assert (store.counts.found, store.counts.made) == (40, 0)
    assert first.shape == (40, 3)
    assert second[::-1].tobytes() == first.tobytes()
    assert model.seen == 40


def test_rows_of_another_revision_are_made_anew() -> None:
    store, images = stores.VectorStore(), pictures(2)
    store.rows(MeanColour(), images)
    other = MeanColour("2")
    store.rows(other, images)
    assert other.seen == 2


def test_rows_without_anything_to_encode_stay_nan() -> None:
    from PIL import Image

    store, black = stores.VectorStore(), Image.new("RGB", (4, 4))
    for _ in range(2):
        assert np.isnan(store.rows(MeanColour(), [black])).all()


def test_store_above_its_limit_lets_the_longest_unused_go() -> None:
    store, images, model = stores.VectorStore(limit=12 * 20), pictures(30), MeanColour()
    store.rows(model, images[:20])
    store.rows(model, images[:5])  # used again
    store.rows(model, images[20:23])
    assert store.size() <= 12 * 20
    store.counts.made = 0
    store.rows(model, images[:5])
    assert store.counts.made == 0
    store.rows(model, images[5:20])
    assert store.counts.made == 5  # 23 rows of 12 bytes, back to nine tenths of 20


def test_vector_key_tells_pixels_size_and_encoder_apart() -> None:
    from PIL import Image

    wide, tall = Image.new("RGB", (8, 2)), Image.new("RGB", (2, 8))
    keys = {stores.vector_key(name, image) for name in ("a", "b") for image in (wide, tall)}
    assert len(keys) == 4
    assert stores.vector_key("a", wide) == stores.vector_key("a", Image.new("L", (8, 2)))


def test_store_when_two_connections_write_keeps_both(tmp_path: Path) -> None:
    with stores.VectorStore(tmp_path) as one, stores.VectorStore(tmp_path) as two:
        one.rows(MeanColour(), pictures(5))
        two.rows(MeanColour(), pictures(8))
        assert two.counts.found == 5
        assert one.size() == 8 * 12


def test_kept_when_groups_recur_makes_each_once_and_tells_their_order_apart() -> None:
    first, second = (stores.vector_key("", image) for image in pictures(2))
    assert (
        len({stores.group_key(name, group) for name in "ab" for group in ([first, second], [second, first])})
        == 4
    )
    made: list[int] = []

    def make(some: Sequence[int]) -> stores.Rows:
        made.extend(some)
        return np.array([[number / 2] for number in some], dtype=np.float32)

    store = stores.VectorStore()
    keys = [stores.group_key("a", [first]), stores.group_key("a", [second]), stores.group_key("a", [first])]
    assert store.kept(keys, [1, 3, 1], make).tolist() == [[0.5], [1.5], [0.5]] and made == [1, 3]
    assert store.kept(keys, [1, 3, 1], make).tolist() == [[0.5], [1.5], [0.5]] and made == [1, 3]


# Vectors that machines share through a folder or any file system of fsspec: encoded once, bit for bit.

KEYS = [bytes([number]) * 32 for number in range(5)]


def rows_at(address: str) -> stores.SharedRows:
    return stores.SharedRows(SharedFiles(address, VECTORS))


def make(things: Sequence[int]) -> stores.Rows:
    return np.array([[thing + 0.1, 1 / 3] for thing in things], dtype=np.float32)


def refuse(_: Sequence[int]) -> stores.Rows:
    raise AssertionError("made again")


@pytest.mark.parametrize("place", ["folder", "file", "memory"])
def test_store_when_another_machine_has_made_the_rows_takes_them_bit_for_bit(place, tmp_path):
    address = {
        "folder": str(tmp_path / "shared"), "file": f"file://{tmp_path}/shared", "memory": "memory://shared",
    }[place]  # fmt: skip
    with stores.VectorStore(tmp_path / "one", shared=rows_at(address)) as first:
        made = first.kept(KEYS, range(5), make)
    with stores.VectorStore(tmp_path / "two", shared=rows_at(address)) as second:
        assert second.kept(KEYS, range(5), refuse).tobytes() == made.tobytes()
        assert second.counts.made == 0
    with stores.VectorStore(tmp_path / "two") as alone:
        assert alone.kept(KEYS, range(5), refuse).tobytes() == made.tobytes(), "kept here since"


def test_store_when_a_shared_row_is_cut_or_changed_makes_it_again(tmp_path: Path) -> None:
    shared = rows_at(str(tmp_path))
    shared.write(dict(zip(KEYS, make(range(5)), strict=True)))
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    files[0].write_bytes(files[0].read_bytes()[:-1])
    files[1].write_bytes(bytes(len(files[1].read_bytes())))
    files[2].write_bytes(b"")
    assert sorted(shared.read(KEYS)) == KEYS[3:]
    with stores.VectorStore(shared=shared) as store:
        store.kept(KEYS, range(5), make)
        assert store.counts.made == 3
    assert sorted(shared.read(KEYS)) == KEYS


# -- The check of models: what it looks over, and how it tells what is missing from what is wrong

TABLE = "fabula.testing.table_detector:"


def statuses(name: str) -> dict[str, str]:
    return {finding.step: finding.status for finding in needs.check_models([name], Place(), {}).findings}


def test_check_when_a_detector_finds_nothing_on_the_drawings_warns() -> None:
    found = statuses(f"{TABLE}load_table_detector")
    assert (found["load"], found["boxes"]) == ("ok", "ok") and found["found"] in ("ok", "warning")


class Long(ColourEncoder):
    """Vectors that are too long."""

    def encode(self, images: "Sequence[Image]") -> np.ndarray:
        return super().encode(images) * 2


class Dependent(ColourEncoder):
    """Vectors that depend on the others of a batch."""

    def encode(self, images: "Sequence[Image]") -> np.ndarray:
        rows = super().encode(images)
        return np.roll(rows, 1, axis=0) if len(images) > 1 else rows


class Wide(TableDetector):
    """Boxes beyond the picture."""

    def detect(self, images: "Sequence[Image]") -> list[tuple[stores.Box, ...]]:
        return [(stores.Box(-5, 0, image.width + 5, 9, 0.5, "x"),) for image in images]


class Odd(ColourPredictor):
    """Shares that do not add to 1."""

    def predict(self, images: "Sequence[Image]") -> np.ndarray:
        return super().predict(images) * 2


@pytest.mark.parametrize(
    ("model", "step"),
    [(Long(), "lengths"), (Dependent(), "batches"), (Wide(), "boxes"), (Odd(classes=True), "range")],
    ids=["length", "batch", "boxes", "range"],
)
def test_check_when_a_model_breaks_a_promise_says_which(model, step, monkeypatch):
    monkeypatch.setattr(table_detector, "load_table_detector", lambda place: model)
    check = needs.check_models([f"{TABLE}load_table_detector"], Place(), {})
    failed = [finding.step for finding in check.findings if finding.status == "failed"]
    assert step in failed and check.has("failed") and not check.as_json()["passed"]


def test_check_when_a_library_is_missing_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    check = needs.check_models(["csd-vit-l", f"{TABLE}load_colour_encoder", "none"], Place(), {})
    first, *_, last = check.findings
    assert (first.status, first.fix) == ("missing", 'pip install "fabula[metrics]"')
    assert last.status == "failed" and "there is no such model" in last.detail
    assert any(line.startswith("ok       fabula.testing") for line in check.lines())


# What models lack, told once for all that want it.


def test_listed_when_things_and_reasons_recur_tells_each_once() -> None:
    lacks = (
        needs.Lack("faces.onnx", "finder", "no network"),
        needs.Lack("torch", "encoder"),
        needs.Lack("faces.onnx", "encoder", "no network"),
        needs.Lack("faces.onnx", "finder", "no network"),
        needs.Lack("body.pt", "finder", "no network"),
    )
    assert (
        needs.listed(lacks)
        == "faces.onnx, for finder, encoder; body.pt, for finder (no network); torch, for encoder"
    )
    assert needs.listed(()) == ""


# What models that look at pictures were measured to take, and what is said where nobody measured.

CPU = needs.Measurement(
    "dinov2-base", "cpu", "float32", 512, 512, 8, 0.5, 1_500_000_000, None, "cores of a test", "random",
    "2026-11-28",
)  # fmt: skip
CARD = replace(CPU, device="cuda", dtype="float16", seconds=0.01, gpu=900_000_000, hardware="a test card")


class Looking(needs.VisionSettings):
    names: tuple[str, ...] = ("dinov2-base",)

    def looking(self) -> tuple[str, ...]:
        return self.names


def record(*measured: needs.Measurement) -> Path:
    path = weights_folder() / needs.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(needs.as_document(measured)))
    return path


def test_plan_when_a_model_was_measured_tells_memory_and_hours() -> None:
    record(CPU, CARD)
    # 0.5 s x 7,200 pictures = 3,600 s = 1 hour
    (line,) = needs.vision_plan([Looking(), ModelSettings()], 7200).lines()
    assert line == (
        "dinov2-base on cpu, float32, 512 x 512: 1.5 GB of memory, 1 core hours for 7200 pictures"
        " (measured on cores of a test, 8 at once)"
    )
    (line,) = needs.vision_plan([Looking(device="cuda", dtype="float16")], 7200).lines()
    assert (
        "1.5 GB of memory, 0.9 GB on the device, 0.02 hours for 7200 pictures (measured on a test card"
        in line
    )
    (line,) = needs.vision_plan([Looking()]).lines()
    assert "0.5 core seconds a picture" in line
    (entry,) = needs.vision_plan([Looking()], 7200).as_json()
    assert entry["measured"][0] == {**asdict(CPU), "hours": 1.0}


def test_measurements_when_made_on_this_machine_go_before_those_of_others() -> None:
    shipped = needs.measurements()
    assert shipped
    mine = replace(shipped[0], seconds=123.0, hardware="mine")
    record(mine)
    now = needs.measurements()
    assert now[0] == mine
    assert len(now) == len(shipped)


def test_measurements_when_the_file_is_damaged_name_it() -> None:
    path = record(CPU)
    path.write_text('[{"model": "x"}]')
    with pytest.raises(ConfigError, match=needs.FILE):
        needs.vision_plan([Looking()])

"""The check of models: what it looks over, and how it tells what is missing from what is wrong."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabula.errors import ConfigError
from fabula.models.spec import ModelSettings
from fabula.models.vision import registry
from fabula.models.vision.checkup import check_models
from fabula.models.vision.measured import (
    FILE,
    Measurement,
    as_document,
    measurements,
    vision_plan,
)
from fabula.models.vision.needs import Lack, VisionSettings, listed
from fabula.models.vision.stored import weights_folder
from fabula.models.vision.types import Box
from fabula.models.vision.weights import Place
from fabula.testing import table_detector
from fabula.testing.table_detector import ColourEncoder, ColourPredictor, TableDetector

if TYPE_CHECKING:
    from PIL.Image import Image

TABLE = "fabula.testing.table_detector:"


def statuses(name: str) -> dict[str, str]:
    return {finding.step: finding.status for finding in check_models([name], Place(), {}).findings}


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

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        return [(Box(-5, 0, image.width + 5, 9, 0.5, "x"),) for image in images]


class Odd(ColourPredictor):
    """Shares that do not add to 1."""

    def predict(self, images: "Sequence[Image]") -> np.ndarray:
        return super().predict(images) * 2


@pytest.mark.parametrize(
    ("model", "step"),
    [(Long(), "lengths"), (Dependent(), "batches"), (Wide(), "boxes"), (Odd(classes=True), "range")],
    ids=["length", "batch", "boxes", "range"],
)
def test_check_when_a_model_breaks_a_promise_says_which(
    model: object, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_detector, "load_table_detector", lambda place: model)
    check = check_models([f"{TABLE}load_table_detector"], Place(), {})
    failed = [finding.step for finding in check.findings if finding.status == "failed"]
    assert step in failed and check.has("failed") and not check.as_json()["passed"]


def test_check_when_a_library_is_missing_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    check = check_models(["csd-vit-l", f"{TABLE}load_colour_encoder", "none"], Place(), {})
    first, *_, last = check.findings
    assert (first.status, first.fix) == ("missing", 'pip install "fabula[metrics]"')
    assert last.status == "failed" and "there is no such model" in last.detail
    assert any(line.startswith("ok       fabula.testing") for line in check.lines())


# What models lack, told once for all that want it.


def test_listed_when_things_and_reasons_recur_tells_each_once() -> None:
    lacks = (
        Lack("faces.onnx", "finder", "no network"),
        Lack("torch", "encoder"),
        Lack("faces.onnx", "encoder", "no network"),
        Lack("faces.onnx", "finder", "no network"),
        Lack("body.pt", "finder", "no network"),
    )
    assert (
        listed(lacks)
        == "faces.onnx, for finder, encoder; body.pt, for finder (no network); torch, for encoder"
    )
    assert listed(()) == ""


# What models that look at pictures were measured to take, and what is said where nobody measured.

CPU = Measurement(
    "dinov2-base", "cpu", "float32", 512, 512, 8, 0.5, 1_500_000_000, None, "cores of a test", "random",
    "2026-11-28",
)  # fmt: skip
CARD = replace(CPU, device="cuda", dtype="float16", seconds=0.01, gpu=900_000_000, hardware="a test card")


class Looking(VisionSettings):
    names: tuple[str, ...] = ("dinov2-base",)

    def looking(self) -> tuple[str, ...]:
        return self.names


def record(*measured: Measurement) -> Path:
    path = weights_folder() / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_document(measured)))
    return path


def test_plan_when_a_model_was_measured_tells_memory_and_hours() -> None:
    record(CPU, CARD)
    # 0.5 s x 7,200 pictures = 3,600 s = 1 hour
    (line,) = vision_plan([Looking(), ModelSettings()], 7200).lines()
    assert line == (
        "dinov2-base on cpu, float32, 512 x 512: 1.5 GB of memory, 1 core hours for 7200 pictures"
        " (measured on cores of a test, 8 at once)"
    )
    (line,) = vision_plan([Looking(device="cuda", dtype="float16")], 7200).lines()
    assert (
        "1.5 GB of memory, 0.9 GB on the device, 0.02 hours for 7200 pictures (measured on a test card"
        in line
    )
    (line,) = vision_plan([Looking()]).lines()
    assert "0.5 core seconds a picture" in line
    (entry,) = vision_plan([Looking()], 7200).as_json()
    assert entry["measured"][0] == {**asdict(CPU), "hours": 1.0}


def test_measurements_when_made_on_this_machine_go_before_those_of_others() -> None:
    shipped = measurements()
    assert shipped
    mine = replace(shipped[0], seconds=123.0, hardware="mine")
    record(mine)
    now = measurements()
    assert now[0] == mine
    assert len(now) == len(shipped)


def test_measurements_when_the_file_is_damaged_name_it() -> None:
    path = record(CPU)
    path.write_text('[{"model": "x"}]')
    with pytest.raises(ConfigError, match=FILE):
        vision_plan([Looking()])

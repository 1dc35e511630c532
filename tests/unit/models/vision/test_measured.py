"""What models that look at pictures were measured to take, and what is said where nobody measured."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.models.spec import ModelSettings
from fabula.models.vision.measured import (
    FILE,
    Measurement,
    as_document,
    measurements,
    read_measurements,
    vision_plan,
)
from fabula.models.vision.needs import VisionSettings
from fabula.models.vision.registry import MODELS
from fabula.models.vision.stored import weights_folder

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


def test_plan_when_nobody_measured_says_unknown() -> None:
    record(CPU)
    lines = list(vision_plan([Looking(names=("dinov2-base", "own:model"), dtype="bfloat16")], 10).lines())
    assert lines == [
        f"{name} on cpu, bfloat16: memory and time are unknown, nobody measured them"
        for name in ("dinov2-base", "own:model")
    ]


def test_plan_when_nobody_looks_is_empty() -> None:
    assert list(vision_plan([ModelSettings()]).lines()) == []


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


def test_measurements_when_shipped_are_of_models_that_there_are() -> None:
    names = {model.name for model in MODELS}
    for each in measurements():
        assert each.model in names
        assert each.seconds > 0
        assert each.ram > 10**8
        assert (each.gpu is None) == (each.device == "cpu")
    assert read_measurements(json.dumps(as_document(measurements()))) == sorted(
        measurements(), key=lambda each: [str(value) for value in asdict(each).values()]
    )

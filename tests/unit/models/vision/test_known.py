"""Values that models gave for three pictures: recorded, and compared later."""

import json
from pathlib import Path

import pytest

from fabula.models.vision import known
from fabula.models.vision.checkup import check_models
from fabula.models.vision.fetching import fetch, survey
from fabula.models.vision.known import values_of
from fabula.models.vision.registry import MODELS, open_vision
from fabula.models.vision.stored import weights_folder
from fabula.models.vision.weights import Place

NAME = "fabula.testing.table_detector:load_colour_encoder"


def found(*, record: bool = False) -> tuple[str, str]:
    """Status and words of the comparison."""
    checked = check_models([NAME], Place(), {}, known=True, record=record)
    return next((item.status, item.detail) for item in checked.findings if item.step == "known")


def test_known_when_values_are_recorded_compares_and_names_what_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found()[0] == "warning" and "not recorded" in found()[1]
    assert found(record=True) == ("ok", "as recorded: they differ by at most 0.0e+00")
    file = weights_folder() / known.FILE
    entry = json.loads(file.read_text())[NAME]
    assert set(entry["values"]) == {"picture 1", "picture 2", "picture 3"}

    moved = {**entry, "libraries": {"numpy": "1.0"}}
    moved["values"] = {
        **entry["values"],
        "picture 2": [value + 0.1 for value in entry["values"]["picture 2"]],
    }
    file.write_text(json.dumps({NAME: moved}))
    status, words = found()
    assert status == "failed" and "by up to" in words and "numpy 1.0, now" in words

    file.write_text(
        json.dumps({NAME: {**entry, "identity": "colours@other/float32/cpu", "weights": "other"}})
    )
    assert found()[0] == "failed" and "other weights than recorded: other, now" in found()[1]


def test_known_when_nothing_is_recorded_for_everybody_lists_every_model() -> None:
    table = json.loads(Path(known.__file__).with_name(known.FILE).read_text())
    assert set(table) == {model.name for model in MODELS}


def test_values_when_a_face_encoder_is_given_needs_no_detected_face(tmp_path: Path) -> None:
    for library in ("insightface", "onnx", "cv2"):
        pytest.importorskip(library, reason="the extra metrics is not installed")
    from fabula.testing.tiny_vision import tiny_settings

    model = open_vision("arcface-r100", Place(), tiny_settings("arcface-r100", tmp_path))
    values = values_of(model)
    assert len(values) == 3 and all(len(row) == 8 for row in values.values())
    assert values["picture 1"] != values["picture 2"]


def test_check_when_weights_came_from_a_folder_says_that_they_are_ready_and_sound(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra metrics is not installed")
    from fabula.testing.tiny_vision import tiny_settings

    made = Path(tiny_settings("dinov2-base", tmp_path / "made")["local"])
    made.rename(tmp_path / "facebook--dinov2-base")
    brought = fetch(survey(["dinov2-base"]), tmp_path)
    assert not brought.lacking and survey(["dinov2-base"]).rows[0].state == "here"
    assert any("(pinned here, not recorded before)" in line for line in brought.lines())

    def steps() -> dict[str, tuple[str, str]]:
        checked = check_models(["dinov2-base"], Place(), {}, known=True, record=True)
        return {item.step: (item.status, item.detail) for item in checked.findings}

    sound = steps()
    assert sound["files"][0] == sound["load"][0] == "ok" and "2 files" in sound["files"][1]
    assert sound["known"][1].startswith("as recorded")
    file = weights_folder() / "facebook--dinov2-base" / "config.json"
    file.write_text(file.read_text() + "\n")
    status, detail = steps()["files"]
    assert status == "failed" and "another SHA-256 than when it was fetched" in detail

"""What finding people needs is looked up before any work, and listed at once."""

from pathlib import Path
from typing import Any

import pytest

from fabula.builders.entities.needs import check_people
from fabula.engine.config import RunConfig, resolve_config
from fabula.errors import InputError, MissingRequirement
from fabula.testing.drawn_detections import write_detections
from fabula.testing.people_pipeline import PIPELINE

ROW = {"video": "film", "frame": 1, "box": [0, 0, 9, 9], "score": 1.0}


def config(*sets: str) -> RunConfig:
    return resolve_config(PIPELINE, None, list(sets))


@pytest.mark.slow
def test_needs_when_neither_weights_nor_file_are_there_lists_all_of_them(needs_installed: Any) -> None:
    needs_installed("torch", "ultralytics", "insightface", "onnxruntime", "transformers")
    with pytest.raises(MissingRequirement) as raised:
        check_people(config())
    found = raised.value.found
    for name in ("people-yolo11n", "faces-scrfd-10g", "arcface-r100", "dinov2-l-14"):
        assert f"for {name}" in found
    assert "yolo11n.pt of Ultralytics/YOLO11" in found
    assert "--detections" in raised.value.fix


@pytest.mark.slow
def test_needs_when_named_files_are_not_there_names_them(needs_installed: Any, tmp_path: Path) -> None:
    needs_installed("torch", "ultralytics")
    gone = tmp_path / "gone.pt"
    options = f'detect_people.options={{"people-yolo11n" = {{ local = "{gone}" }}}}'
    with pytest.raises(MissingRequirement, match=r"no .*gone\.pt"):
        check_people(config(options))


def test_needs_when_a_file_has_vectors_are_nothing_else(tmp_path: Path) -> None:
    path = write_detections(tmp_path / "d.jsonl", [{**ROW, "body_embedding": [1, 0]}])
    check_people(config(f"detect_people.detections='{path}'"))
    check_people(config(f"detect_people.detections='{path}'"), frozenset({"film"}))
    with pytest.raises(InputError, match="rows of 'film'"):
        check_people(config(f"detect_people.detections='{path}'"), frozenset({"flim"}))


def test_needs_when_a_file_has_no_vectors_are_the_encoders(tmp_path: Path) -> None:
    path = write_detections(tmp_path / "d.jsonl", [ROW])
    with pytest.raises(MissingRequirement) as raised:
        check_people(config(f"detect_people.detections='{path}'"))
    assert "people-yolo11n" not in raised.value.found

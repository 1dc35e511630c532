"""Models are found by name, their settings are checked against their own loaders."""

import sys
from pathlib import Path

import pytest

from fabula.errors import ConfigError, MissingRequirement
from fabula.models.vision.registry import MODELS, check_vision, names, open_vision
from fabula.models.vision.types import Detector
from fabula.models.vision.weights import Place
from fabula.testing import table_detector
from fabula.testing.table_detector import TableDetector

TABLE = "fabula.testing.table_detector:load_table_detector"


def test_open_when_a_loader_is_named_by_its_place_gives_its_model() -> None:
    model = open_vision(TABLE, Place(), kind="detector")
    assert isinstance(model, TableDetector) and isinstance(model, Detector)


def test_open_when_the_model_is_of_another_kind_says_which() -> None:
    with pytest.raises(ConfigError, match="the kind predictor is needed here, and this is: detector"):
        open_vision(TABLE, Place(), kind="predictor")


def test_open_when_a_library_prints_keeps_standard_output_clean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loader(place: Place) -> TableDetector:
        sys.stdout.write("Downloading\n")
        return TableDetector()

    monkeypatch.setattr(table_detector, "load_table_detector", loader)
    open_vision(TABLE, Place())
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Downloading\n")


@pytest.mark.parametrize(
    "name", ["clip", "fabula.testing.table_detector:none", "no_such_module:load", ":x", ""]
)
def test_open_when_nobody_has_the_name_lists_those_there_are(name: str) -> None:
    with pytest.raises(ConfigError, match="clip-vit-l-14"):
        open_vision(name, Place())


def test_check_when_a_setting_is_wrong_names_it_and_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"lokal: .*the settings are: none"):
        check_vision(TABLE, {"lokal": tmp_path})


def test_check_when_a_library_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from fabula.models.vision import registry

    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    for model in MODELS:
        if model.libraries:
            with pytest.raises(MissingRequirement, match=r"fabula\[metrics\]"):
                check_vision(model.name)


def test_plug_in_when_installed_adds_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plug_in-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[fabula.vision_models]\nmy-boxes = {TABLE}\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert names()[-1] == "my-boxes"
    assert isinstance(open_vision("my-boxes", Place()), TableDetector)

"""A drawn set, outputs of two methods, and an evaluation of them with models that know the drawings."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.status import RunReport
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions
from fabula.releases.shots.tree import read_shot_set
from fabula.studies.copy_paste import write_copy_paste
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.table_detector import SETTINGS

CREATED = "2026-01-01T00:00:00Z"
LOOKED_AT = "cids,copy-paste,occm,csd,aesthetic,inception"


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every test here gets a copy of: the set, and the outputs of two methods."""
    folder = tmp_path_factory.mktemp("drawn")
    shot_set = draw_shot_set(folder / "data", 3)
    outputs = draw_shot_outputs(folder / "model-x", 3)
    (outputs / "02/shots/shot_03.png").unlink()
    write_copy_paste(read_shot_set(shot_set)[0], folder / "copy-paste")
    return folder


@pytest.fixture
def shot_set(drawn: Path, tmp_path: Path) -> Path:
    """Three stories of five shots with three characters."""
    return shutil.copytree(drawn / "data", tmp_path / "data")


@pytest.fixture
def model_x(drawn: Path, tmp_path: Path) -> Path:
    """Outputs that follow the script; the third shot of the second story is missing."""
    return shutil.copytree(drawn / "model-x", tmp_path / "model-x")


@pytest.fixture
def copies(drawn: Path, tmp_path: Path) -> Path:
    """Outputs of the copy-paste baseline."""
    return shutil.copytree(drawn / "copy-paste", tmp_path / "copy-paste")


@pytest.fixture
def evaluate(shot_set: Path, tmp_path: Path) -> Callable[..., RunReport]:
    """Evaluate outputs into the folder ``run``, or another."""

    def run(
        *outputs: Path,
        out: str = "run",
        metrics: str = LOOKED_AT,
        settings: tuple[str, ...] = (),
        **more: Any,
    ) -> RunReport:
        options = ImageOptions(
            metrics=(metrics,), settings=(*SETTINGS, *settings), device="cpu",
            **{"workers": 0, "created_at": CREATED, **more},
        )  # fmt: skip
        return EVALUATING.evaluate(shot_set, outputs, tmp_path / out, options)

    return run

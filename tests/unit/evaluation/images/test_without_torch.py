"""Judged alignment where torch cannot be imported: needed only where single characters are cut out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabula.evaluation.shots.requests import LOOKING, ImageOptions, images_request
from fabula.testing.alignment_model import AlignmentModel
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.model_server import ModelServer
from fabula.testing.table_detector import SETTINGS

FAILURES = ("ImportError", "OSError")


def evaluated(
    folder: Path, server: ModelServer, error: str, dimensions: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process whose torch raises an error when it is imported."""
    fake = folder / "fake" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text(f"raise {error}('libtorch.so: broken')\n", "utf-8")
    command = (
        "evaluate", "images", "--release", draw_shot_set(folder / "data", 1),
        "--outputs", draw_shot_outputs(folder / "model-x", 1), "--metrics", "alignment",
        "--judge", f"{server.openai_url}#tested", "--out", folder / "run", "--workers", 0,
        "--set", f"judge_alignment.dimensions={json.dumps(dimensions)}",
    )  # fmt: skip
    # Before the installed library: the path that the environment names comes first.
    env = {**os.environ, "PYTHONPATH": str(fake.parent)}
    return subprocess.run(
        [sys.executable, "-m", "fabula.cli.main", *map(str, command)],
        check=False, cwd=folder, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("error", FAILURES)
def test_alignment_when_no_dimension_needs_a_detector_needs_no_torch(error: str, tmp_path: Path) -> None:
    with ModelServer(AlignmentModel()) as server:
        done = evaluated(tmp_path, server, error, ["scene", "shot", "interaction"])
        assert done.returncode == 0, done.stderr
        assert server.count > 0


def test_alignment_when_a_dimension_needs_a_detector_says_that_torch_is_missing(tmp_path: Path) -> None:
    with ModelServer(AlignmentModel()) as server:
        done = evaluated(tmp_path, server, "OSError", ["scene", "action"])
        assert (done.returncode, server.count) == (3, 0), done.stderr
        assert "torch" in done.stderr and "fabula[metrics]" in done.stderr


def test_device_when_each_stage_is_told_its_own_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> None:
        raise AssertionError("torch was asked which devices there are")

    monkeypatch.setattr("fabula.models.vision.weights.available", asked)
    settings = (*SETTINGS, *(f"{stage}.device=cpu" for stage in LOOKING))
    request = images_request(
        draw_shot_set(tmp_path / "data", 1), [draw_shot_outputs(tmp_path / "model-x", 1)], tmp_path / "run",
        ImageOptions(metrics=("cids",), settings=settings),
    )  # fmt: skip
    assert {getattr(request.config.stages[stage], "device", None) for stage in LOOKING} == {"cpu"}

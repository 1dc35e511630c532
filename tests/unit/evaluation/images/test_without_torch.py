"""Judged alignment where torch cannot be imported: needed only where single characters are cut out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabula.testing.alignment_model import AlignmentModel
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.model_server import ModelServer

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

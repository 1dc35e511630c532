"""The commands of episodes: build, status, show, validate."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.drawn_episode import write_episode

Fabula = Callable[..., subprocess.CompletedProcess[str]]
pytest.importorskip("av")
SETS = ("--set", "detect_shots.method=histogram", "--set", "filter_shots.copies=false", "--workers", "0")


def test_commands_when_run_one_after_the_other_make_an_episode(
    fabula_command: Fabula, tmp_path: Path
) -> None:
    shots = ["AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1"]
    video, detections = write_episode(tmp_path, shots)
    run = tmp_path / "run"
    build = ("build", "entities", str(video), "--detections", str(detections), *SETS, "--out", str(run))
    done = fabula_command(*build)
    assert done.returncode == 0, done.stderr
    assert f"episodes: {run / 'data'}" in done.stdout
    assert "Window selection (shots): 10 -> 10, 100%" in done.stdout
    done = fabula_command(*build, "--json")
    assert json.loads(done.stdout)["totals"]["made"] == 1
    status = json.loads(fabula_command("run", "status", str(run), "--json").stdout)
    assert status["totals"]["made"] == 1 and status["stages"][-1]["name"] == "assemble_episodes"
    shown = fabula_command("run", "show", str(run), "film__i0_j9__T12")
    assert shown.returncode == 0 and "Person A" in shown.stdout
    found = json.loads(fabula_command("validate", str(run), "--json").stdout)
    assert found["kind"] == "entities" and found["ok"]


def test_build_when_options_are_wrong_says_so(fabula_command: Fabula, tmp_path: Path) -> None:
    video, detections = write_episode(tmp_path, ["A1"])
    out = ("--out", str(tmp_path / "run"))
    done = fabula_command("build", "entities", str(tmp_path / "none"), "--detections", str(detections), *out)
    assert done.returncode == 1 and "none" in done.stderr
    done = fabula_command("build", "entities", str(video), "--detections", str(tmp_path / "no.jsonl"), *out)
    assert done.returncode == 2 and "--detections: there is no file" in done.stderr
    done = fabula_command("build", "entities", str(video), "--detections", str(detections), *SETS)
    assert done.returncode == 2 and "--out" in done.stderr
    done = fabula_command("build", "entities", str(video), "--detections", str(detections), *SETS, *out)
    assert done.returncode == 5
    assert "1 kept shots in a row, and the smallest tier takes 10" in done.stdout
    assert "Window selection (shots): 1 -> 0, 0%" in done.stdout
    for command in ("validate", "stats"):
        done = fabula_command(command, str(tmp_path / "run"))
        assert done.returncode == 2
        assert "this run has made no episodes" in done.stderr

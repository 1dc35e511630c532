"""Killing the builder at any moment and starting it again gives the records of an undisturbed run."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.testing.endurance import rounds

KILLS = 6
CREATED = "2026-01-01T00:00:00Z"
FILES = ("records.jsonl", "assignments.jsonl", "balance.json", "run.json")
PROGRAM = """
import sys
from pathlib import Path
from fabula.builders.katha.building import build_katha
from fabula.builders.katha.building import BuildOptions
from fabula.engine.progress import JsonReporter
stories, records, out, created_at = sys.argv[1:]
options = BuildOptions(records=Path(records), created_at=created_at, workers=2)
build_katha(stories, out, options, reporter=JsonReporter())
"""


def kill_after(command: list[str], events: int) -> tuple[int, str | None]:
    """Run a command, kill it and its workers after so many events; return exit code and last stage."""
    stage = None
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stderr is not None
    with child.stderr:
        for number, line in enumerate(child.stderr):
            stage = json.loads(line).get("stage", stage) if line.startswith("{") else stage
            if number >= events:
                break
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        return child.wait(), stage


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(42, 42 + rounds(10)))
def test_build_when_killed_at_random_points_writes_the_bytes_of_an_undisturbed_run(
    katha, tmp_path, seed: int
) -> None:
    stories, records = katha.samples / "stories.jsonl", katha.samples / "gold.jsonl"
    whole = tmp_path / "whole"
    build_katha(stories, whole, BuildOptions(records=records, created_at=CREATED, workers=0))

    def check(out: Path) -> None:
        for name in FILES:
            assert (out / name).read_bytes() == (whole / name).read_bytes(), name
        found, expected = (json.loads((run / "report.json").read_text("utf-8")) for run in (out, whole))
        assert found["totals"] == expected["totals"]
        assert (found["outputs"], found["manifest_sha256"]) == (
            expected["outputs"],
            expected["manifest_sha256"],
        )

    choices = random.Random(seed)
    seen: list[str | None] = []
    runs = 0
    while len(seen) < KILLS:
        out = tmp_path / f"run{runs}"
        command = [sys.executable, "-c", PROGRAM, str(stories), str(records), str(out), CREATED]
        code, stage = kill_after(command, choices.randint(8, 45))
        assert code in (0, -signal.SIGKILL)
        if code == 0:  # done before the kill came
            check(out)
            runs += 1
        else:
            seen.append(stage)
    build_katha(stories, out, BuildOptions(records=records, created_at=CREATED, workers=0))
    check(out)
    assert len({*seen} - {None}) >= 3, seen

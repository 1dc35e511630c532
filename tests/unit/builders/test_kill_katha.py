"""Killing the builder at any moment and starting it again gives the records of an undisturbed run."""

import json
import random
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.testing.endurance import rounds
from fabula.testing.killing import kill_after

KILLS = 6
CREATED = "2026-01-01T00:00:00Z"
FILES = ("records.jsonl", "assignments.jsonl", "balance.json", "run.json")


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(42, 42 + rounds(10)))
def test_build_when_killed_at_random_points_writes_the_bytes_of_an_undisturbed_run(
    katha, starter: Any, tmp_path, seed: int
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
        options = ("--records", records, "--out", out, "--created-at", CREATED, "--workers", 2, "--json")
        start = partial(starter.start, ("build", "katha", stories, *options))
        code, told = kill_after(start, choices.randint(8, 45))
        assert code in (0, -signal.SIGKILL)
        if code == 0:  # done before the kill came
            check(out)
            runs += 1
        else:
            seen.append(next((event["stage"] for event in reversed(told) if event.get("stage")), None))
    build_katha(stories, out, BuildOptions(records=records, created_at=CREATED, workers=0))
    check(out)
    assert len({*seen} - {None}) >= 3, seen

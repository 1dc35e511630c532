"""Killing the builder at any moment and starting it again gives the records of an undisturbed run."""

import json
import random
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.hooks import SilentReporter
from fabula.errors import Interrupted, RunError
from fabula.kinds.verbs import continue_run
from fabula.testing.endurance import rounds
from fabula.testing.killing import kill_after

KILLS = 6
CREATED = "2026-01-01T00:00:00Z"
FILES = ("records.jsonl", "assignments.jsonl", "balance.json", "run.json")


@pytest.mark.slow
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


# An extension that is stopped or killed at any stage comes to the same when it is given again.

EXTENDED, ADDED = "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z"
NOW = ExtendOptions(created_at=ADDED, workers=0)
AGAIN = ExtendOptions(created_at="2027-01-01T00:00:00Z", workers=0)


class Stops(SilentReporter):
    """Stops the run when a stage begins."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def emit(self, event) -> None:
        if event.kind == "stage" and event.stage == self._stage:
            raise Interrupted("stopped")


@pytest.fixture(scope="module")
def folder(katha, tmp_path_factory) -> Path:
    """Holds ``run``, a run of three stories, ``new.jsonl`` with two more, and ``done``, the run with both."""
    folder = tmp_path_factory.mktemp("killed")
    lines = (katha.samples / "stories.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "stories.jsonl").write_bytes(b"".join(lines[:3]))
    (folder / "new.jsonl").write_bytes(b"".join(lines[3:5]))
    build_katha(folder / "stories.jsonl", folder / "run", BuildOptions(created_at=EXTENDED, workers=0))
    shutil.copytree(folder / "run", folder / "done")
    extend_katha(folder / "done", folder / "new.jsonl", NOW)
    return folder


@pytest.fixture
def run(folder, tmp_path) -> Path:
    return Path(shutil.copytree(folder / "run", tmp_path / "run"))


def outputs(run: Path) -> dict[str, bytes]:
    names = ("records.jsonl", "assignments.jsonl", "balance.json")
    return {name: (run / name).read_bytes() for name in names}


@pytest.mark.parametrize("stage", ["load_stories", "sign_stories", "analyze_story", "assign_splits"])
def test_extend_when_stopped_and_given_again_comes_to_the_same(folder, run, stage) -> None:
    before = outputs(run)
    with pytest.raises(Interrupted):
        extend_katha(run, folder / "new.jsonl", NOW, reporter=Stops(stage))
    assert outputs(run) == before
    report = extend_katha(run, folder / "new.jsonl", AGAIN)
    assert (len(report.added), report.kept, report.added_at) == (2, 3, ADDED)
    assert outputs(run) == outputs(folder / "done")


def test_retry_when_an_extension_was_stopped_finishes_it(folder, run) -> None:
    with pytest.raises(Interrupted):
        extend_katha(run, folder / "new.jsonl", NOW, reporter=Stops("draft_scenes"))
    assert continue_run(run, workers=0).totals["made"] == 5
    assert outputs(run) == outputs(folder / "done")
    sources = json.loads((run / "run.json").read_bytes())["sources"]
    assert [source["added_at"] for source in sources] == [None, ADDED]


def test_extend_when_stopped_and_the_records_were_changed_since_is_refused(folder, run) -> None:
    with pytest.raises(Interrupted):
        extend_katha(run, folder / "new.jsonl", NOW, reporter=Stops("draft_scenes"))
    with (run / "records.jsonl").open("ab") as file:
        file.write(b"\n")
    for change in (lambda: None, (run / "records.jsonl").unlink):
        change()
        with pytest.raises(RunError, match="not as the run left them"):
            extend_katha(run, folder / "new.jsonl", NOW)

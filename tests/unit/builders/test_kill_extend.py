"""An extension that is stopped or killed at any stage comes to the same when it is given again."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.progress import SilentReporter
from fabula.errors import Interrupted, RunError
from fabula.kinds.verbs import continue_run

CREATED, ADDED = "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z"
NOW = ExtendOptions(created_at=ADDED, workers=0)
AGAIN = ExtendOptions(created_at="2027-01-01T00:00:00Z", workers=0)
KILLED = """
import os, signal, sys
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.progress import SilentReporter

class Killer(SilentReporter):
    def emit(self, event):
        if event.kind == "stage" and event.stage == "assemble_records":
            os.kill(os.getpid(), signal.SIGKILL)

extend_katha(sys.argv[1], sys.argv[2], ExtendOptions(created_at=sys.argv[3], workers=0), reporter=Killer())
"""


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
    build_katha(folder / "stories.jsonl", folder / "run", BuildOptions(created_at=CREATED, workers=0))
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


def test_extend_when_killed_and_given_again_comes_to_the_same(folder, run, starter) -> None:
    before = outputs(run)
    assert starter.run_code(KILLED, run, folder / "new.jsonl", ADDED).returncode == -9
    assert outputs(run) == before
    with pytest.raises(RunError, match="run retry"):
        extend_katha(run, folder / "stories.jsonl", NOW)
    extend_katha(run, folder / "new.jsonl", AGAIN)
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

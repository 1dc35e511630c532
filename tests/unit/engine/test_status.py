"""run status and run show: what is there, what is stale, and why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine.edits import append_edits
from fabula.engine.pipeline import Pipeline
from fabula.engine.status import Status, run_status, show_item
from fabula.errors import RunError
from fabula.schemas.values import Edit
from fabula.testing.toy_pipeline import toy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def reasons(status: Status) -> dict[str, dict[str, int]]:
    return {stage.name: dict(stage.reasons) for stage in status.stages if stage.reasons}


def stamps(folder: Path) -> dict[str, int]:
    """When each file was written; SQLite's own helper files, which every reader needs, do not count."""
    files = (path for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm")))
    return {path.name: path.stat().st_mtime_ns for path in files}


def test_run_status_when_all_is_made_says_so_and_writes_nothing(run: Callable, folder: Path) -> None:
    run()
    before = stamps(folder)
    status = run_status(folder, toy(), explain=True)
    assert status.totals == {"made": 4, "rejected": 0, "failed": 0, "pending": 0, "stale": 0}
    assert [stage.made for stage in status.stages] == [4] * 6
    assert reasons(status) == {}
    assert "nothing would run again" in status.lines()
    assert "nothing would run again" not in run_status(folder, toy()).lines()
    assert status.holder is None
    assert stamps(folder) == before


def test_run_status_when_version_is_raised_explains(run: Callable, folder: Path) -> None:
    run()
    status = run_status(folder, toy("WORK_V2"), explain=True)
    assert reasons(status)["work"] == {"stage version 1 -> 2": 4}
    assert reasons(status)["count"] == {"waits for work": 4}
    assert status.totals["stale"] == 4
    assert any("4 stage version 1 -> 2" in line for line in status.lines())
    assert not any("version" in line for line in run_status(folder, toy("WORK_V2")).lines())


def test_run_status_when_setting_changed_explains(run: Callable, folder: Path) -> None:
    run()
    run(sets=["work.ignored=1", "run.seed=7"], stages=("read_lines",))
    assert reasons(run_status(folder, toy(), explain=True))["work"] == {
        "setting ignored changed": 4,
        "seed 42 -> 7": 4,
    }


def test_run_status_when_library_changed_explains(
    run: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = toy("WORK_WITH_LIBRARY")
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.0.31")
    run(pipeline=pipeline)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.0.32")
    assert reasons(run_status(folder, pipeline, explain=True))["work"] == {
        "library filelock 1.0.31 -> 1.0.32": 4
    }
    assert reasons(run_status(folder, toy(), explain=True))["work"] == {
        "library filelock 1.0.31 -> not used": 4
    }


def test_run_status_when_input_changed_explains(run: Callable, folder: Path, lines: Path) -> None:
    run()
    lines.write_text(lines.read_text().replace("b bee", "b bear") + "e elk\n")
    run(stages=("read_lines",))
    status = run_status(folder, toy(), explain=True)
    assert reasons(status)["work"] == {"input words changed": 1, "new": 1}
    assert (status.stages[1].made, status.stages[1].stale, status.stages[1].pending) == (3, 1, 1)
    run(stages=("work",))
    status = run_status(folder, toy(), explain=True)
    assert reasons(status)["count"] == {"items changed": 5, "input text changed": 5}
    assert reasons(status)["number"] == {"waits for count": 5}


def test_run_status_when_sources_changed_goes_on_with_the_last_run(
    run: Callable, folder: Path, lines: Path
) -> None:
    run()
    lines.write_text(lines.read_text() + "e elk\n")
    status = run_status(folder, toy(), explain=True)
    assert reasons(status) == {"read_lines": {"input sources changed": 4}}
    assert status.stages[1].made == 4
    assert any("read_lines would run again (input sources changed)" in line for line in status.lines())


def test_run_status_when_partly_done_counts_what_waits(run: Callable, folder: Path) -> None:
    run(limit=1)
    status = run_status(folder, toy(), explain=True)
    assert [stage.made for stage in status.stages] == [4, 1, 1, 1, 1, 1]
    assert [stage.pending for stage in status.stages] == [0, 3, 3, 3, 3, 3]
    assert reasons(status)["work"] == {"new": 3}


@pytest.mark.parametrize("look", [run_status, lambda folder, pipeline: show_item(folder, pipeline, "a")])
def test_looking_when_folder_is_no_such_run_is_refused(run: Callable, tmp_path: Path, look: Callable) -> None:
    with pytest.raises(RunError, match=r"run\.json"):
        look(tmp_path, toy())
    run()
    with pytest.raises(RunError, match="a run of kind toy, not"):
        look(tmp_path / "run", Pipeline("other", toy().stages, toy().finish))
    (tmp_path / "run" / "journal.sqlite").unlink()
    with pytest.raises(RunError, match="no journal"):
        look(tmp_path / "run", toy())


# -- one item


def test_show_item_when_made_shows_what_each_stage_read_and_wrote(run: Callable, folder: Path) -> None:
    run()
    append_edits(folder, lambda: (Edit(id="a", path="$.text", old="ant!", new="ape", who="ana", why="test"),))
    append_edits(folder, lambda: (Edit(id="b", path="$.text", old="bee!", new="bat", who="ana", why="test"),))
    view = show_item(folder, toy(), "a")
    assert [(stage.name, stage.status) for stage in view.stages][1:3] == [("work", "made"), ("count", "made")]
    assert view.stages[1].reads == {"words": ["ant"]}
    assert view.stages[1].writes == {"text": "ant!"}
    assert view.stages[5].reads == {"text": "ant!", "count": 1, "number": 0, "short": "a"}
    assert [edit["new"] for edit in view.edits] == ["ape"]
    assert view.field("short") == "a"
    assert 'edit by ana at $.text: "ape" (test)' in view.lines()
    with pytest.raises(KeyError):
        view.field("nope")


def test_show_item_when_stale_shows_the_last_result_and_why(run: Callable, folder: Path) -> None:
    run()
    view = show_item(folder, toy("WORK_V2"), "a")
    assert (view.stages[1].status, view.stages[1].reason) == ("stale", "stage version 1 -> 2")
    assert view.field("text") == "ant!"


def test_show_item_when_unknown_offers_close_ids(run: Callable, folder: Path, lines: Path) -> None:
    lines.write_text("kb25k_0001 word\nkb25k_0002 word\n")
    run()
    with pytest.raises(RunError, match="use an id such as kb25k_000"):
        show_item(folder, toy(), "kb25k_001")

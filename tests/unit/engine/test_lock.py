"""One writer per run folder, and the second is told who the first is."""

import errno
import os
import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from fabula.engine.lock import HOLDER, hold, holder
from fabula.engine.status import run_status
from fabula.errors import RunBusy, TargetError
from fabula.testing.toy_pipeline import toy


def test_hold_when_held_says_who_holds_it(tmp_path: Path) -> None:
    with hold(tmp_path):
        note = holder(tmp_path)
        assert note is not None
        assert (note["pid"], note["host"]) == (os.getpid(), platform.node())
        who = f"process {os.getpid()} on {platform.node()}"
        with pytest.raises(RunBusy, match=f"{who} has been working on this run since 2"):  # noqa: SIM117
            with hold(tmp_path):
                raise AssertionError("held twice")
    assert holder(tmp_path) is None
    with hold(tmp_path):
        pass


def test_hold_when_holder_was_killed_takes_over(tmp_path: Path) -> None:
    with hold(tmp_path):
        left = (tmp_path / HOLDER).read_bytes()
    (tmp_path / HOLDER).write_bytes(left.replace(str(os.getpid()).encode(), b"99999999"))
    assert holder(tmp_path) is None
    with hold(tmp_path):
        assert holder(tmp_path) is not None


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"pid": "x"}'])
def test_hold_when_note_is_torn_still_says_busy(tmp_path: Path, note: bytes) -> None:
    with hold(tmp_path):
        (tmp_path / HOLDER).write_bytes(note)
        with pytest.raises(RunBusy, match="a process on an unknown host"), hold(tmp_path):
            raise AssertionError("held twice")


def test_hold_when_folder_is_a_file_is_a_target_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TargetError), hold(tmp_path / "file"):
        raise AssertionError("held nothing")


@pytest.mark.waits
def test_execute_when_another_process_works_is_told_and_status_still_answers(
    process: Callable, run: Callable, lines: Path, tmp_path: Path
) -> None:
    lines.write_text("".join(f"i{number} sleep:0.05\n" for number in range(400)))
    child = process(tmp_path / "run", lines, 1)
    for line in child.stderr:
        if '"progress"' in line:
            break
    with pytest.raises(RunBusy, match=f"process {child.pid} on"):
        run()
    status = run_status(tmp_path / "run", toy(), explain=True)
    assert status.holder is not None
    assert status.holder["pid"] == child.pid
    work = status.stages[1]
    assert 0 < work.made < 400
    assert work.made + work.pending == 400
    assert work.reasons == {"new": work.pending}
    assert f"process {child.pid}" in status.lines()[-1]


def test_hold_when_the_medium_cannot_be_written_lets_those_through_who_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def acquire(_: FileLock) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with hold(tmp_path, to_read=True):
        pass
    with pytest.raises(TargetError, match="Read-only file system"), hold(tmp_path):
        pass

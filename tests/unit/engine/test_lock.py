"""One writer per run folder, and the second is told who the first is."""

import errno
import os
import platform
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from fabula.engine.lock import HOLDER, Stopper, hold, holder, keep_private, stop_on_signals
from fabula.engine.status import run_status
from fabula.errors import RunBusy, TargetError
from fabula.testing import toy_pipeline
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


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_hold_when_the_folder_cannot_be_written_lets_those_through_who_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def acquire(_: FileLock) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with hold(tmp_path, to_read=True):
        pass
    with pytest.raises(TargetError, match=os.strerror(number)), hold(tmp_path):
        pass


# Stopping on request, without processes.


def test_stopper_when_a_signal_comes_tells_only_when_asked_and_only_once() -> None:
    told: list[str] = []
    stopper = Stopper(lambda: told.append("stopping"))
    with stop_on_signals(stopper):
        assert not stopper()
        os.kill(os.getpid(), signal.SIGINT)
        assert told == [], "a handler must not write: it may have interrupted a write"
        assert stopper()
        assert stopper()
    assert told == ["stopping"]


def test_stopper_when_a_second_signal_comes_stops_at_once() -> None:
    stopper = Stopper()
    with stop_on_signals(stopper), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)


def test_stopper_when_hangups_were_ignored_before_hears_none_and_leaves_them_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stopper = Stopper()
        with stop_on_signals(stopper):
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stopper()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


# Files for their owner's eyes only, whatever the umask says and whatever was there before.


def rights(folder: Path) -> dict[str, int]:
    """Path -> its rights, of a folder and all that is in it."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777
        for path in (folder, *folder.rglob("*"))
    }


def exposed(folder: Path) -> dict[str, int]:
    return {path: mode for path, mode in rights(folder).items() if mode not in (0o600, 0o700)}


@pytest.fixture(params=[0o000, 0o022, 0o027])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_run_when_its_kind_is_private_is_for_its_owner_only(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_pipeline, "Pipeline", PRIVATE)
    run()
    assert exposed(tmp_path / "run") == {}


def PRIVATE(*parts: object) -> object:  # noqa: N802 - stands for a class
    return replace(REAL(*parts), private=True)  # type: ignore[arg-type]


REAL = toy_pipeline.Pipeline


@pytest.mark.usefixtures("umask")
def test_run_when_its_sources_are_the_owners_only_is_so_too_and_older_files_become_so(
    run: Callable, tmp_path: Path, lines: Path
) -> None:
    run()
    assert exposed(tmp_path / "run")
    lines.chmod(0o600)
    run()
    assert exposed(tmp_path / "run") == {}


def test_keep_private_when_a_link_leads_elsewhere_leaves_that_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "elsewhere").chmod(0o644)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    keep_private(folder)
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o644

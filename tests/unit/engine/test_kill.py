"""Killing and stopping a run at any moment: nothing is lost or left behind, the result is the same."""

import fcntl
import json
import os
import pty
import random
import re
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fabula.errors import ExitCode
from fabula.testing.endurance import rounds

pytestmark = pytest.mark.slow

KILLS = max(5, rounds(20))
FILES = ("lines.jsonl", "run.json")
Process = Callable[..., subprocess.Popen[str]]


def wait_gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return those that are still there after a while."""
    _, alive = psutil.wait_procs(processes, timeout=15)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def content(folder: Path) -> list[object]:
    report = json.loads((folder / "report.json").read_text())
    for stage in report["stages"]:
        del stage["ran"], stage["reused"]
    return [report, *((folder / name).read_bytes() for name in FILES)]


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(42, 42 + rounds(10)))
def test_run_when_killed_at_random_points_ends_as_if_undisturbed(
    process: Process, run: Callable, descendants: Callable, lines: Path, tmp_path: Path, seed: int
) -> None:
    words = ("cat", "sleep:0.002 dog", "reject", "eel", "fish")
    lines.write_text("".join(f"i{number:03} {words[number % 5]}\n" for number in range(120)))
    run(folder=tmp_path / "undisturbed")
    expected = content(tmp_path / "undisturbed")
    choices = random.Random(seed)
    kills = runs = 0
    left: list[psutil.Process] = []
    folder = tmp_path / "run0"
    while kills < KILLS:
        child = process(folder, lines, 2)
        events = choices.randint(0, 30)
        for number, _ in enumerate(child.stderr):
            if number >= events:
                break
        time.sleep(choices.random() * (0.3 if events == 0 else 0.02))
        left.extend(descendants(child.pid) if child.poll() is None else [])
        child.send_signal(signal.SIGKILL)
        if child.wait() == -signal.SIGKILL:
            kills += 1
        if child.returncode == 0:
            assert content(folder) == expected
            runs += 1
            folder = tmp_path / f"run{runs}"
    run(folder=folder)
    assert content(folder) == expected
    assert len(left) > KILLS / 4  # else the kills came before there were workers
    assert wait_gone(left) == []
    names = {path.name for path in folder.iterdir()}
    assert names == {"journal.sqlite", "lines.jsonl", "report.json", "run.json", "run.lock"}


@pytest.mark.waits
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_when_told_to_stop_drains_and_can_be_continued(
    process: Process, run: Callable, descendants: Callable, lines: Path, tmp_path: Path, number: int
) -> None:
    lines.write_text("".join(f"i{number:03} sleep:0.02 w\n" for number in range(100)))
    child = process(tmp_path / "run", lines, 2)
    told: list[dict[str, object]] = []
    workers: list[psutil.Process] = []
    for line in child.stderr:
        if not line.startswith("{"):
            continue
        told.append(json.loads(line))
        if told[-1]["event"] == "progress" and not workers:
            workers = descendants(child.pid)
            # As a terminal does it: the whole process group gets the signal, workers included.
            for one in [psutil.Process(child.pid), *(workers if number != signal.SIGTERM else [])]:
                one.send_signal(number)
    assert child.wait() == ExitCode.INTERRUPTED
    assert workers
    assert wait_gone(workers) == []
    done = [event["done"] for event in told if event["event"] == "progress" and event["stage"] == "work"][-1]
    assert isinstance(done, int)
    assert 0 < done < 100
    assert "stopping" in [event["event"] for event in told]
    report = run()
    work = report.stages[1]
    assert (work.reused, work.ran, work.failed) == (done, 100 - done, 0)


@pytest.mark.waits
def test_run_when_started_with_hangups_ignored_hears_none(
    process: Process, descendants: Callable, lines: Path, tmp_path: Path
) -> None:
    lines.write_text("".join(f"i{number:03} sleep:0.02 w\n" for number in range(50)))

    def as_nohup_does() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    child = process(tmp_path / "run", lines, 2, preexec_fn=as_nohup_does)
    for line in child.stderr:
        if '"progress"' in line:
            for one in [psutil.Process(child.pid), *descendants(child.pid)]:
                one.send_signal(signal.SIGHUP)
    assert child.wait() == 0


@pytest.mark.waits
@pytest.mark.parametrize("reporter", ["JsonReporter", "choose_reporter"])
def test_run_when_its_terminal_is_closed_drains_and_can_be_continued(
    process: Process, run: Callable, lines: Path, tmp_path: Path, reporter: str
) -> None:
    lines.write_text("".join(f"i{number:03} sleep:0.1 w\n" for number in range(100)))
    ours, theirs = pty.openpty()

    def take_the_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = process(
        tmp_path / "run", lines, 2, reporter=reporter, preexec_fn=take_the_terminal,
        stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while not re.search(rb"work[^\r\n]*?[1-9]\d* of 100|done\":[1-9]\d*,.*\"work\"", seen):
        seen += os.read(ours, 1024)
    os.close(ours)
    assert child.wait() == ExitCode.INTERRUPTED
    work = run(2).stages[1]
    assert work.reused + work.ran == 100
    assert work.failed == 0
    assert work.reused


@pytest.mark.waits
def test_run_when_killed_while_a_worker_hangs_leaves_no_worker(
    process: Process, descendants: Callable, lines: Path, tmp_path: Path
) -> None:
    lines.write_text("".join(f"i{number} {'hang' if number > 3 else 'w'}\n" for number in range(8)))
    child = process(tmp_path / "run", lines, 2)
    for line in child.stderr:
        if '"progress"' in line:
            break
    workers = descendants(child.pid)
    child.kill()
    child.wait()
    assert workers
    assert wait_gone(workers) == []

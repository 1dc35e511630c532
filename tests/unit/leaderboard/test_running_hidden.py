"""Running a submitted command: that it ends when we are asked to stop, with all that it started."""

import os
import signal
import time
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.leaderboard.scoring_hidden import run_generator


def task(folder: Path, *command: str) -> Any:
    (folder / "plans").mkdir()
    (folder / "plans" / "plans.jsonl").write_text("")  # written already, so that no release is read
    return SimpleNamespace(
        work=folder, outputs=folder / "outputs", command=command, submission=SimpleNamespace(name="model-x")
    )


def test_command_when_we_are_asked_to_stop_ends_with_what_it_started(tmp_path: Path) -> None:
    shell = "sleep 60 & echo $! > started.part; mv started.part started; wait"
    started = tmp_path / "work" / "started"

    def stop_when_started() -> None:
        while not started.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    Timer(0.0, stop_when_started).start()
    with pytest.raises(KeyboardInterrupt):
        run_generator(task(tmp_path, "sh", "-c", shell))
    stat = Path(f"/proc/{started.read_text().strip()}/stat")
    for _ in range(100):  # what was killed ends when it next gets the processor
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("what the command started is still at work")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("sh", "-c", "exit 3"), "ended with 3"),
        (("no-such-program",), "cannot be started"),
        (("sh\0",), "null byte"),
    ],
)
def test_command_when_it_fails_or_cannot_be_started_is_told(
    command: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        run_generator(task(tmp_path, *command))

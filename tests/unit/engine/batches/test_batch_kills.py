"""A process killed at any point of a batch's life: no request in two batches, the bytes of single calls."""

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.batches.books import Batching, batches_in
from fabula.engine.calls import answered
from fabula.engine.execute import Options, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.testing.endurance import rounds
from fabula.testing.model_server import Asked, Fate, ModelServer
from fabula.testing.toy_models import model_request, reply_to

pytestmark = pytest.mark.slow

PROGRAM = """
import os, sys
from pathlib import Path
from fabula.engine.batches.books import Batching
from fabula.engine.execute import Options, execute
from fabula.engine import journal as module
from fabula.errors import FabulaError
from fabula.testing.toy_models import model_request
folder, source, model, address, kill_at = sys.argv[1:6]
commits, plain = [0], module.Journal._note_committed
def commit(self, statements):
    commits[0] += 1
    plain(self, statements)
    if commits[0] >= int(kill_at) > 0:
        os.kill(os.getpid(), 9)
module.Journal._note_committed = commit
batching = Batching(on=True, first_look=0.001, longest_look=0.004)
options = Options(workers=0, batching=batching)
settings = {"base_url": address, "batch_requests": 5}
request = model_request(Path(folder), (Path(source), model), options, settings=settings)
try:
    execute(request)
except FabulaError as error:
    print(error, file=sys.stderr)
    raise SystemExit(int(error.exit_code))
"""
POINTS = 200
PROVIDERS = ("openai", "google", "anthropic")
LINES = "".join(f"i{number} word ask:{1 + number % 2}\n" for number in range(8))
"""Eight items, four of them with a second question: 12 questions in two waves, at most five in a batch."""


class Build:
    """A server and the command that asks it."""

    def __init__(self, folder: Path, provider: str, starter: Any) -> None:
        self.folder, self.provider, self.starter = folder, provider, starter
        self.source = folder / "lines.txt"
        self.source.write_text(LINES)
        self.kill_at_request = 0
        self.child: Any = None
        self._requests = 0
        self._lock = threading.Lock()
        self.server = ModelServer(reply_to, faults=self._seen, fates=Fate(looks=1))

    def _seen(self, asked: Asked) -> None:
        """Kill the command when it has made so many requests, before the last of them is answered."""
        if asked.protocol != "batches":
            return
        with self._lock:
            self._requests += 1
            if self._requests == self.kill_at_request and self.child is not None:
                self.child.send_signal(signal.SIGKILL)
                self.child.wait()

    @property
    def _address(self) -> str:
        return self.server.openai_url if self.provider == "openai" else self.server.url

    def killed(self, *, commit: int = 0, request: int = 0) -> int:
        """Execute in a process of its own, killed at a commit or at a request; return its exit code."""
        given = (self.folder / "run", self.source, f"{self.provider}:toy", self._address, commit)
        with self._lock:
            self._requests, self.kill_at_request = 0, request
            self.child = self.starter.start(given, code=PROGRAM)
        return int(self.child.wait())

    def run(self, name: str = "run", *, batched: bool = True) -> None:
        """Execute here, to the end."""
        self.kill_at_request = 0
        batching = Batching(on=batched, first_look=0.001, longest_look=0.004)
        settings = {"base_url": self._address, "batch_requests": 5}
        source = (self.source, f"{self.provider}:toy")
        options = Options(workers=0, batching=batching)
        execute(model_request(self.folder / name, source, options, settings=settings))

    def check(self) -> None:
        """Check that no request is in two batches, and that the files are those of single calls."""
        lines = (self.folder / "run" / "lines.jsonl").read_bytes()
        bodies = [str(line.body) for made in self.server.batches for line in made.lines]
        assert len(bodies) == len(set(bodies)), "a request was in two batches"
        paid = [entry.asked.key for entry in self.server.log if entry.asked.protocol != "batches"]
        assert len(paid) == len(set(paid)) == 12, "each question was answered once"
        assert len(list(answered(self.folder / "run" / JOURNAL))) == 12
        for batch in batches_in(self.folder / "run" / JOURNAL):
            assert batch.state in ("done", "unsent") and batch.open == 0, batch
        self.run("single", batched=False)
        assert (self.folder / "single" / "lines.jsonl").read_bytes() == lines


def spread(number: int, most: int) -> int:
    """Return one of so many points, so that a tenth of the rounds goes through all of them evenly."""
    return 1 + (number * 7) % most


@pytest.mark.endurance
@pytest.mark.waits
@pytest.mark.parametrize("point", range(rounds(POINTS)))
def test_run_when_killed_at_any_commit_or_request_sends_nothing_twice_and_has_the_same_bytes(
    tmp_path: Path, starter: Any, point: int
) -> None:
    build = Build(tmp_path, PROVIDERS[point % 3], starter)
    nth = point // 6
    with build.server:
        at_request = point // 3 % 2 == 1
        moment = {"request": spread(nth, 25)} if at_request else {"commit": spread(nth, 50)}
        assert build.killed(**moment) in (0, -signal.SIGKILL)
        build.run()
        build.check()
    assert build.server.rejected == ()


@pytest.mark.waits
def test_run_when_killed_again_and_again_comes_to_its_end(tmp_path: Path, starter: Any) -> None:
    build = Build(tmp_path, "openai", starter)
    with build.server:
        ends = [build.killed(commit=commit) for commit in (12, 4, 5, 6, 8)]
        assert set(ends) == {-signal.SIGKILL}
        build.run()
        build.check()

"""Helpers for tests of the engine: toy runs in this process, and in processes that can be killed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fabula.engine.execute import Options, RunRequest
from fabula.engine.hooks import Event
from fabula.engine.journal import encode
from fabula.engine.pool import Job, Task
from fabula.engine.stage import Made
from fabula.engine.status import RunReport
from fabula.testing.model_server import Asked, Fault, ModelServer
from fabula.testing.toy_models import model_request, reply_to
from fabula.testing.toy_pipeline import run_toy

Toy = Callable[..., RunReport]
PROGRAM = """
import sys
from pathlib import Path
from fabula.engine.execute import Options
from fabula.api.calling import choose_reporter
from fabula.engine.hooks import JsonReporter
from fabula.errors import FabulaError
from fabula.testing.toy_pipeline import run_toy
folder, source, workers = sys.argv[1:4]
try:
    options = Options(workers=int(workers))
    run_toy(Path(folder), Path(source), options, sets=sys.argv[4:], reporter=%s())
except FabulaError as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    raise SystemExit(int(error.exit_code))
"""


@pytest.fixture(autouse=True)
def fixed_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A source of four items."""
    path = tmp_path / "lines.txt"
    path.write_text("c cat\na ant\nb bee\nd dog here\n")
    return path


@pytest.fixture
def run(tmp_path: Path, lines: Path) -> Toy:
    """Run the toy pipeline on ``lines`` in ``tmp_path/run``, in this process unless workers are given."""

    def start(workers: int = 0, *, folder: Path | None = None, **given: Any) -> RunReport:
        names = ("limit", "items", "stages", "retry_failed", "item_timeout")
        options = Options(workers=workers, **{name: given.pop(name) for name in names if name in given})
        return run_toy(folder or tmp_path / "run", lines, options, **given)

    return start


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that answers the questions of toy runs."""
    with ModelServer(reply_to) as running:
        yield running


@pytest.fixture
def asks(tmp_path: Path, server: ModelServer) -> Callable[..., RunRequest]:
    """Make the request for a run on some lines; the model is at the server."""

    def make(text: str = "a cat\nb bee\nc cow\n", folder: str | Path = "run", **given: Any) -> RunRequest:
        source = tmp_path / "lines.txt"
        source.write_text(text)
        return model_request(tmp_path / folder, (source, f"{server.openai_url}#toy"), **given)

    return make


@pytest.fixture
def process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the toy pipeline in a process of its own; JSON events and errors come on its standard error."""
    started: list[subprocess.Popen[str]] = []

    def start(
        folder: Path, source: Path, workers: int = 2, *sets: str, reporter: str = "JsonReporter", **given: Any
    ) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM % reporter, str(folder), str(source), str(workers), *sets]
        given = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True, **given}
        child = subprocess.Popen(command, **given)
        started.append(child)
        return child

    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
        child.wait()
        if child.stderr:
            child.stderr.close()


class Listener:
    """Remembers events; may do something at one of them."""

    def __init__(self, kind: str = "", stage: str = "", action: Callable[[], None] = lambda: None) -> None:
        self.events: list[Event] = []
        self._at, self._action = (kind, stage), action

    def emit(self, event: Event) -> None:
        self.events.append(event)
        if (event.kind, event.stage) == self._at:
            self._action()

    def close(self) -> None:
        self.events.append(Event("closed"))


def lines_of(request: RunRequest) -> dict[str, Any]:
    """The output of a run: id -> the rest of its line."""
    rows = [json.loads(line) for line in (request.folder / "lines.jsonl").read_text().splitlines()]
    return {row.pop("id"): row for row in rows}


def striking(fault: Fault, *items: str, attempts: int = 10**9) -> Callable[[Asked], Fault | None]:
    """A fault for the questions of some items, in their first attempts."""

    def strike(asked: Asked) -> Fault | None:
        named = asked.text.split(":")[0] in items
        return fault if named and asked.attempt <= attempts else None

    return strike


def task(name: str, *words: str) -> Task:
    """An item of the stage ``work``."""
    blob = encode(Made({"words": list(words or ("word",))})).blob
    assert blob is not None
    return Task(name, name, ((blob, ("words",)),))


def outcomes(pool: Any, tasks: list[Task], job: Job) -> dict[str, tuple[str, str | None]]:
    """Item -> how a pool ended with it."""
    return {
        task.item: (encoded.status, encoded.code)
        for group in pool.run(job, tasks, lambda: False)
        for task, encoded in group
    }


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def ran(report: RunReport) -> dict[str, int]:
    """Stage -> how many results were computed, of stages that computed any."""
    return {stage.name: stage.ran for stage in report.stages if stage.ran}


@pytest.fixture(name="ran")
def ran_fixture() -> Callable[[RunReport], dict[str, int]]:
    return ran


@pytest.fixture(name="descendants")
def descendants_fixture() -> Callable[[int], list[psutil.Process]]:
    return descendants

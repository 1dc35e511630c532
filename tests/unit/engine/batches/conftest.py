"""A server with batches of the three services, and runs of a small pipeline that asks it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.batches.books import Batching, BatchStatus, batches_in, counts_of
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.status import RunReport, read_report
from fabula.errors import BelowThreshold, FabulaError
from fabula.testing.model_server import ModelServer
from fabula.testing.toy_models import model_request, reply_to

KEY = "planted-key-0123456789abcdef0123456789"
PROVIDERS = ("openai", "google", "anthropic")
LINES = "".join(f"i{number} word ask:{1 + number % 3}\n" for number in range(9))
"""Nine items with one, two and three questions: 18 in all, in three waves of 9, 6 and 3."""
QUESTIONS = 18


@dataclass
class Scene:
    """A server, and runs that ask it."""

    provider: str
    server: ModelServer
    folder: Path
    batching: Batching = field(
        default_factory=lambda: Batching(on=True, first_look=0.001, longest_look=0.004)
    )

    @property
    def address(self) -> str:
        return self.server.openai_url if self.provider == "openai" else self.server.url

    def request(self, name: str = "run", text: str = LINES, **given: Any) -> RunRequest:
        """Return the request of a run in batches; ``given`` are options, ``settings`` and ``sets``."""
        source = self.folder / "lines.txt"
        source.write_text(text)
        settings = {"base_url": self.address, **given.pop("settings", {})}
        sets = given.pop("sets", ())
        options = Options(**{"workers": 0, "batching": self.batching, **given})
        model = f"{self.provider}:toy"
        return model_request(self.folder / name, (source, model), options, settings=settings, sets=sets)

    def run(self, name: str = "run", **given: Any) -> RunReport:
        """Execute; too few items that were made are no error here."""
        try:
            return execute(self.request(name, **given))
        except BelowThreshold:
            return read_report(self.folder / name)

    def singly(self, name: str = "single", **given: Any) -> RunReport:
        """Execute without batches."""
        return self.run(name, **{**given, "batching": Batching()})

    def failure(self, name: str = "run", **given: Any) -> FabulaError:
        """Execute, and return what it raises."""
        with pytest.raises(FabulaError) as raised:
            execute(self.request(name, **given))
        return raised.value

    def lines(self, name: str = "run") -> bytes:
        """Return the output of a run."""
        return (self.folder / name / "lines.jsonl").read_bytes()

    def batches(self, name: str = "run") -> tuple[BatchStatus, ...]:
        """Return the batches in a run's journal."""
        return batches_in(self.folder / name / JOURNAL)

    def steps(self) -> Counter[str]:
        """Return how often each thing was done with batches."""
        return Counter(entry.asked.step for entry in self.server.log if entry.asked.protocol == "batches")

    def answered(self) -> Counter[str]:
        """Return how often each question was answered, and so paid for, in batches or singly."""
        return Counter(
            entry.asked.key
            for entry in self.server.log
            if entry.asked.protocol != "batches" and entry.status == 200
        )

    def in_batches(self) -> Counter[str]:
        """Return in how many batches that the service has each request is, by its body."""
        return Counter(str(line.body) for made in self.server.batches for line in made.lines)

    def check_books(self, name: str = "run") -> Mapping[str, int]:
        """Check that every request of a run in batches is answered, failed or open; return how many are."""
        for batch in self.batches(name):
            assert batch.requests == batch.answered + batch.failed + batch.open
            if batch.state in ("done", "gone", "unsent"):
                assert batch.open == 0
        return counts_of(self.batches(name))


Stage = Callable[..., Scene]


@pytest.fixture(autouse=True)
def fixed_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Start a server for a provider; ``batching`` is what differs in how batches are used."""
    servers: list[ModelServer] = []

    def start(provider: str, handler: Any = reply_to, batching: Any = None, **given: Any) -> Scene:
        server = ModelServer(handler, **given)
        server.__enter__()
        servers.append(server)
        scene = Scene(provider, server, tmp_path)
        scene.batching = replace(scene.batching, **(batching or {}))
        return scene

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)

"""Runs that ask a model when something goes wrong around it: stops, a failing journal, odd stages."""

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from fabula.engine import lock
from fabula.engine.calls import Call, Calls, Sending, model_uses
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal
from fabula.engine.progress import Event
from fabula.errors import FabulaError, Interrupted, TargetError
from fabula.models.chat import ChatRequest, Message, Reply
from fabula.testing.model_server import Asked, Fault, ModelServer, RateLimited
from fabula.testing.toy_models import model_request, reply_to

Asks = Callable[..., RunRequest]
MANY = "".join(f"i{n} cat\n" for n in range(60))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(reply_to) as running:
        yield running


@pytest.fixture
def asks(tmp_path: Path, server: ModelServer) -> Asks:
    def make(text: str = MANY, **given: Any) -> RunRequest:
        source = tmp_path / "lines.txt"
        source.write_text(text)
        return model_request(tmp_path / "run", (source, f"{server.openai_url}#toy"), **given)

    return make


def ended_with(request: RunRequest) -> FabulaError | None:
    """Execute in a thread; return what it raised. It must not take as long as a pause of a service."""
    raised: list[FabulaError | None] = []

    def run() -> None:
        try:
            execute(request)
        except FabulaError as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive(), "it waits for something that nobody needs any more"
    return raised[0]


class OnProgress:
    """A reporter that does something at the first progress of the stage that asks."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do

    def emit(self, event: Event) -> None:
        if event.kind == "progress" and event.stage == "answer":
            self._do()

    def close(self) -> None:
        pass


# -- stopping


@pytest.mark.waits
@pytest.mark.parametrize(
    "settings",
    [{"concurrency": 4}, {"requests_per_minute": 2.0}, {"concurrency": 4, "tokens_per_minute": 50.0}],
    ids=["pause", "requests", "tokens"],
)
def test_stop_when_calls_wait_for_the_service_does_not_wait_with_them(
    asks: Asks, server: ModelServer, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    def pause_after_two(asked: Asked) -> Fault | None:
        return RateLimited(retry_after=100.0) if server.count > 2 else None

    if "requests_per_minute" not in settings:
        server.faults = pause_after_two
    stopped = threading.Event()
    monkeypatch.setattr(lock.Stopper, "__call__", lambda self: stopped.is_set())
    threading.Thread(target=lambda: (server.wait_for(1), stopped.set()), daemon=True).start()
    assert isinstance(ended_with(asks(settings=settings)), Interrupted)


def test_second_stop_when_replies_are_being_written_keeps_them_and_goes_on_later(
    asks: Asks, server: ModelServer
) -> None:
    request = asks(settings={"concurrency": 8})
    locked: list[sqlite3.Connection] = []

    def interrupt() -> None:
        connection = sqlite3.connect(request.folder / JOURNAL, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN IMMEDIATE")
        locked.append(connection)
        threading.Timer(0.3, lambda: (connection.execute("ROLLBACK"), connection.close())).start()
        raise KeyboardInterrupt

    server.latency = 0.02
    with pytest.raises(Interrupted):
        execute(request, OnProgress(interrupt))
    assert locked
    with closing(sqlite3.connect(request.folder / JOURNAL)) as journal:
        (kept,) = journal.execute("SELECT count(*) FROM calls").fetchone()
        (lost,) = journal.execute("SELECT count(*) FROM sent").fetchone()
    asked = server.count
    assert kept + lost >= asked, "every call that was sent is on the books"
    assert execute(request).totals["made"] == 60
    assert server.count == asked + 60 - kept


# -- the books


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns at every opportunity."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_books_when_a_reply_is_kept_never_lack_the_call_in_between(tmp_path: Path) -> None:
    count = 300
    with Journal.open(tmp_path) as journal, closing(Calls(journal)) as calls:
        requests = [ChatRequest("toy", (Message("user", (str(n),)),)) for n in range(count)]
        sent = [calls.send(Sending(request.model, request.key(), 0, "answer", 1.0)) for request in requests]
        journal.flush()
        seen: set[int] = set()
        done = threading.Event()

        def watch() -> None:
            sql = "SELECT (SELECT count(*) FROM sent) + (SELECT count(*) FROM calls)"
            with closing(sqlite3.connect(journal.path)) as reader:
                while not done.is_set():
                    seen.add(reader.execute(sql).fetchone()[0])

        watcher = threading.Thread(target=watch)
        watcher.start()
        for request, number in zip(requests, sent, strict=True):
            call = Call(request.key(), 0, "answer", "toy", request.canonical(), Reply("ok", "x"), 0.5, 1)
            calls.put(call, number, lambda _: None)
        journal.flush()
        done.set()
        watcher.join()
    assert seen == {count}


def test_books_when_a_process_dies_with_calls_in_flight_show_them_before_it_goes_on(
    tmp_path: Path,
) -> None:
    with Journal.open(tmp_path) as journal, closing(Calls(journal)) as calls:
        request = ChatRequest("toy", (Message("user", ("hello",)),))
        calls.send(Sending(request.model, request.key(), 0, "answer", 1.5))
    (use,) = model_uses(tmp_path / JOURNAL)
    assert (use.uncertain, use.uncertain_cost) == (1, 1.5)


# -- a journal that fails


def test_run_when_the_journal_fails_in_the_middle_ends_with_what_is_wrong(
    asks: Asks, server: ModelServer
) -> None:
    request = asks(settings={"concurrency": 8}, options=Options(workers=0, max_cost=1.0))
    server.latency = 0.02

    def spoil() -> None:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(request.folder / JOURNAL)) as other:
            other.execute("CREATE TRIGGER no BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'no'); END")

    with pytest.raises(TargetError, match="journal"):
        execute(request, OnProgress(spoil))
    with closing(sqlite3.connect(request.folder / JOURNAL)) as other:
        other.execute("DROP TRIGGER no")
    assert execute(request).totals["made"] == 60


# -- stages


def test_books_when_the_cost_is_limited_hold_a_call_before_it_is_sent(
    tmp_path: Path, asks: Asks, server: ModelServer
) -> None:
    path, noted = tmp_path / "run" / JOURNAL, []

    def look(asked: Asked) -> dict[str, str]:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            noted.append(connection.execute("SELECT count(*) FROM sent").fetchone()[0])
        return reply_to(asked)

    server.handler = look
    execute(asks("a cat\nb bee\n", options=Options(workers=0, max_cost=1.0), settings={"concurrency": 1}))
    assert len(noted) == 2 and all(noted)
    (use,) = model_uses(path)
    assert (use.calls, use.uncertain) == (2, 0), "nothing is left on the books"

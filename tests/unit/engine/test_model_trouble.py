"""Runs that ask a model when something goes wrong around it: stops, a failing journal, odd stages."""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fabula.engine import lock
from fabula.engine.calls import Call, Calls, Sending, model_uses
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal
from fabula.engine.pipeline import Pipeline
from fabula.engine.progress import Event
from fabula.engine.stage import Item, Made, Outcome, Tools
from fabula.errors import BudgetStop, FabulaError, Interrupted, ModelUnavailable, TargetError
from fabula.models.chat import ChatRequest, Message, Reply
from fabula.testing.model_server import Asked, Fault, ModelServer, RateLimited, Unauthorized
from fabula.testing.toy_models import ANSWER, answer, model_request, reply_to

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


@pytest.fixture
def with_stage(monkeypatch: pytest.MonkeyPatch) -> Callable[[RunRequest, Any], RunRequest]:
    """Put another coroutine in the place of the stage that asks."""

    def change(request: RunRequest, run: Any) -> RunRequest:
        module = ModuleType("odd_stages")
        module.STAGE = SimpleNamespace(SPEC=ANSWER.SPEC, run=run)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "odd_stages", module)
        first, _, last = request.pipeline.stages
        stages = (first, "odd_stages:STAGE", last)
        return replace(request, pipeline=Pipeline("toy-models", stages, request.pipeline.finish))

    return change


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


@pytest.mark.waits
def test_stop_when_the_key_is_refused_does_not_wait_for_calls_that_wait(
    asks: Asks, server: ModelServer
) -> None:
    server.faults = Unauthorized()
    request = asks(settings={"concurrency": 8, "requests_per_minute": 2.0})
    assert isinstance(ended_with(request), ModelUnavailable)
    assert server.count == 1


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


async def stubborn(item: Item, tools: Tools) -> Outcome:
    """A stage that makes something up where it gets no answer, whatever the reason."""
    try:
        return await answer(item, tools)
    except Exception:  # noqa: BLE001 - what a stage must not do
        return Made({"text": "made up", "notes": []})


def test_run_when_a_stage_swallows_the_stop_keeps_nothing_that_it_made_up(
    asks: Asks, with_stage: Callable[..., RunRequest]
) -> None:
    request = with_stage(asks(options=Options(workers=0, max_cost=0.0)), stubborn)
    with pytest.raises(BudgetStop):
        execute(request)
    report = execute(replace(request, options=Options(workers=0)))
    assert report.totals["made"] == 60
    assert "made up" not in (request.folder / "lines.jsonl").read_text()


async def cancelled(item: Item, tools: Tools) -> Outcome:
    if item.id == "i3":
        raise asyncio.CancelledError
    return await answer(item, tools)


def test_run_when_a_stage_cancels_itself_fails_that_item(
    asks: Asks, with_stage: Callable[..., RunRequest]
) -> None:
    report = execute(with_stage(asks(), cancelled))
    assert [(item.id, item.code) for item in report.items] == [("i3", "exception")]


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

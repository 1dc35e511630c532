"""Runs that ask a model when something goes wrong around it: stops, a failing journal, odd stages."""

import json
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.drafting import without_models
from fabula.engine import lock
from fabula.engine.asker import FACT, model_error
from fabula.engine.calls import Call, Calls, Sending, answered, model_uses
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal
from fabula.engine.manifest import read_manifest
from fabula.engine.status import RunReport, show_item
from fabula.errors import BelowThreshold, ConfigError, FabulaError, Interrupted, TargetError
from fabula.models.chat import CallFault, ChatRequest, Message, Reply
from fabula.models.spec import ANSWERED, ATTEMPT
from fabula.testing.endurance import rounds
from fabula.testing.model_server import (
    Asked,
    ContentFilter,
    EmptyChoices,
    EmptyText,
    Fault,
    MalformedJson,
    ModelServer,
    Prose,
    RateLimited,
    Refused,
    SafetyBlock,
    TruncatedJson,
)
from fabula.testing.toy_models import model_request, reply_to, toy_models
from fabula.tests.unit.engine.conftest import Listener, lines_of

MANY = "".join(f"i{n} cat\n" for n in range(60))


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


# -- stopping


@pytest.mark.waits
@pytest.mark.parametrize(
    "settings",
    [{"concurrency": 4}, {"requests_per_minute": 2.0}, {"concurrency": 4, "tokens_per_minute": 50.0}],
    ids=["pause", "requests", "tokens"],
)
def test_stop_when_calls_wait_for_the_service_does_not_wait_with_them(asks, server, monkeypatch, settings):
    def pause_after_two(asked: Asked) -> Fault | None:
        return RateLimited(retry_after=100.0) if server.count > 2 else None

    if "requests_per_minute" not in settings:
        server.faults = pause_after_two
    stopped = threading.Event()
    monkeypatch.setattr(lock.Stopper, "__call__", lambda self: stopped.is_set())
    threading.Thread(target=lambda: (server.wait_for(1), stopped.set()), daemon=True).start()
    assert isinstance(ended_with(asks(MANY, settings=settings)), Interrupted)


def test_second_stop_when_replies_are_being_written_keeps_them_and_goes_on_later(asks, server):
    request = asks(MANY, settings={"concurrency": 8})
    locked: list[sqlite3.Connection] = []

    def interrupt() -> None:
        connection = sqlite3.connect(request.folder / JOURNAL, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN IMMEDIATE")
        locked.append(connection)
        threading.Timer(0.3, lambda: (connection.execute("ROLLBACK"), connection.close())).start()
        raise KeyboardInterrupt

    server.latency = 0.02
    with pytest.raises(Interrupted):
        execute(request, Listener("progress", "answer", interrupt))
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


def test_books_when_a_process_dies_with_calls_in_flight_show_them_before_it_goes_on(tmp_path):
    with Journal.open(tmp_path) as journal, closing(Calls(journal)) as calls:
        request = ChatRequest("toy", (Message("user", ("hello",)),))
        calls.send(Sending(request.model, request.key(), 0, "answer", 1.5))
    (use,) = model_uses(tmp_path / JOURNAL)
    assert (use.uncertain, use.uncertain_cost) == (1, 1.5)


# -- a journal that fails


def test_run_when_the_journal_fails_in_the_middle_ends_with_what_is_wrong(asks, server):
    request = asks(MANY, settings={"concurrency": 8}, options=Options(workers=0, max_cost=1.0))
    server.latency = 0.02

    def spoil() -> None:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(request.folder / JOURNAL)) as other:
            other.execute("CREATE TRIGGER no BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'no'); END")

    with pytest.raises(TargetError, match="journal"):
        execute(request, Listener("progress", "answer", spoil))
    with closing(sqlite3.connect(request.folder / JOURNAL)) as other:
        other.execute("DROP TRIGGER no")
    assert execute(request).totals["made"] == 60


def test_books_when_the_cost_is_limited_hold_a_call_before_it_is_sent(tmp_path, asks, server):
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


# -- Asking once more: exactly the questions to which no reply could be used, once in a retry, also killed

LINES = "a cat\nb bee\nc cow\nd dog\n"
SPOILT = ("b", "d")
FAULTS: dict[str, Any] = {
    "refused": Refused(), "blocked": SafetyBlock(), "filtered": ContentFilter(), "empty": EmptyText(),
    "no choice": EmptyChoices(), "cut off": TruncatedJson(), "no JSON": Prose("I cannot say."),
    "wrong shape": {"text": 7}, "says what cannot be": {"text": "???"},
    "broken JSON": MalformedJson("wrong_type"),
}  # fmt: skip


def item_of(asked: Asked) -> str:
    return str(asked.messages[0].parts[0]).partition(":")[0]


class Spoiler:
    """Answers the questions about some items with a fault, as long as it is on."""

    def __init__(self, fault: Fault | dict[str, Any], items: tuple[str, ...] = SPOILT) -> None:
        self.fault, self.items, self.on = fault, items, True
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Any:
        item = item_of(asked)
        with self._lock:
            self.asked.append(item)
        return self.fault if self.on and item in self.items else reply_to(asked)

    def since(self, count: int) -> list[str]:
        return sorted(self.asked[count:])


Serve = Callable[..., tuple[Spoiler, RunRequest]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server that spoils the replies about some items; return it with the request for a run."""
    servers: list[ModelServer] = []

    def start(fault: Any, items: tuple[str, ...] = SPOILT, text: str = LINES, **given: Any) -> Any:
        spoiler = Spoiler(fault, items)
        server = ModelServer(spoiler)
        server.__enter__()
        servers.append(server)
        source = tmp_path / "lines.txt"
        source.write_text(text)
        return spoiler, model_request(tmp_path / "run", (source, f"{server.openai_url}#toy"), **given)

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def retrying(request: RunRequest, **more: Any) -> RunRequest:
    return replace(request, options=replace(request.options, retry_failed=True, **more))


def run(request: RunRequest) -> RunReport | None:
    try:
        return execute(request)
    except BelowThreshold:
        return None


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_retry_when_replies_were_of_no_use_asks_exactly_those_once_more(serve: Serve, fault: Any) -> None:
    spoiler, request = serve(fault)
    run(request)
    first = len(spoiler.asked)
    assert run(request) is None and len(spoiler.asked) == first, "the same command asks nothing"
    planned = plan_calls(retrying(request), without_models(request.config)).calls
    again = retrying(request)
    assert run(again) is None
    assert set(spoiler.since(first)) == set(SPOILT), "asked again, and spoilt again"
    assert planned == len(SPOILT)
    second = len(spoiler.asked)
    spoiler.on = False
    report = execute(again)
    assert spoiler.since(second) == sorted(SPOILT)
    assert report.totals["made"] == 4
    before = len(spoiler.asked)
    execute(again)
    execute(request)
    assert len(spoiler.asked) == before, "everything is answered"


def test_retry_when_it_succeeds_says_the_attempt_and_keeps_the_replies_of_before(serve: Serve) -> None:
    spoiler, request = serve(Refused())
    run(request)
    spoiler.on = False
    execute(retrying(request))
    assert lines_of(request)["b"]["notes"] == [ANSWERED, "attempt_2"]
    assert lines_of(request)["a"]["notes"] == [ANSWERED]
    stages = show_item(request.folder, toy_models(), "b").stages
    (answer,) = [view for view in stages if view.name == "answer"]
    assert [call["sample"] for call in answer.calls] == [0, ATTEMPT]
    assert [call["reply"]["outcome"] for call in answer.calls] == ["refused", "ok"]
    assert read_manifest(request.folder).run.attempts == 2


def test_retry_when_one_question_of_an_item_failed_asks_that_one(serve: Serve) -> None:
    spoiler, request = serve(EmptyText(), ("nobody",), "a cat ask:3\nb bee\n")
    spoil = {"a: cat ask:3 (2)"}

    def handler(asked: Asked) -> Any:
        spoiler.asked.append(asked.text)
        return EmptyText() if asked.text in spoil else reply_to(asked)

    spoiler.__class__ = type("Handler", (Spoiler,), {"__call__": lambda _, asked: handler(asked)})
    run(request)
    assert len(spoiler.asked) == 3, "the third question of a was not reached"
    spoil.clear()
    assert plan_calls(retrying(request), without_models(request.config)).calls == 1
    execute(retrying(request))
    assert spoiler.asked[3:] == ["a: cat ask:3 (2)", "a: cat ask:3 (3)"]


def test_retry_when_a_repair_had_failed_starts_with_the_question_and_repairs_anew(serve: Serve) -> None:
    spoiler, request = serve({"text": "???"}, ("b",))
    run(request)
    first = len(spoiler.asked)
    assert spoiler.asked.count("b") == 2, "the question, and one repair"
    run(retrying(request))
    assert spoiler.since(first) == ["b", "b"]
    samples = sorted((call.sample, call.request) for call in answered(request.folder / JOURNAL))
    assert [sample for sample, _ in samples] == [0] * 5 + [ATTEMPT] * 2


@pytest.mark.parametrize("attempts", [2, 3])
def test_run_when_its_settings_allow_attempts_asks_as_often(serve: Serve, attempts: int) -> None:
    spoiler, request = serve(Refused(), sets=[f"run.attempts={attempts}"])
    run(request)
    assert len(spoiler.asked) == 2 + 2 * attempts
    run(retrying(request))
    assert len(spoiler.asked) == 4 + 2 * attempts
    assert read_manifest(request.folder).run.attempts == attempts + 1


def test_retry_when_a_hundred_attempts_were_made_refuses(serve: Serve) -> None:
    _, request = serve(Refused())
    run(request)
    with Journal.open(request.folder) as journal:
        journal.note(FACT, 100)
    with pytest.raises(ConfigError, match="100 attempts were made already"):
        execute(retrying(request))


# -- Runs in processes of their own share the limits of a key, as the service counts it; kills included

PER_SECOND = 20
PROGRAM_SHARED_LIMIT_RUNS = """
import sys
from pathlib import Path
from fabula.engine.execute import Options, execute
from fabula.testing.toy_models import model_request
folder, source, model, minute, share = sys.argv[1:6]
options = Options(workers=0, limit_share=float(share))
limits = {"requests_per_minute": float(minute), "concurrency": 8}
execute(model_request(Path(folder), (Path(source), model), options, settings=limits))
"""


@pytest.fixture
def start(starter: Any) -> Callable[..., Any]:
    """Start a run in a process of its own."""

    def start_run(folder: Path, source: Path, server: ModelServer, share: float = 1.0) -> Any:
        given = (folder, source, f"{server.openai_url}#toy", 60 * PER_SECOND, share)
        return starter.start(given, code=PROGRAM_SHARED_LIMIT_RUNS)

    return start_run


def written(folder: Path, items: int) -> Path:
    source = folder / f"{items}.txt"
    source.write_text("".join(f"{folder.name}{number:04} cat {number}\n" for number in range(items)))
    return source


def rate_of(server: ModelServer) -> float:
    """Requests a second as the server counts them, from the first to the last; 1.5 s are left out for how
    much later than others one may have come in."""
    times = [exchange.asked.at for exchange in server.log]
    return (len(times) - 1) / (times[-1] - times[0] + 1.5)


def test_runs_when_two_go_on_at_once_never_exceed_the_limit_that_they_share(tmp_path, start):
    source = written(tmp_path, 40)  # each with the limit to itself, they would take 2 s: 79 / 3.5 is over it
    with ModelServer(reply_to) as server:
        runs = [start(tmp_path / name, source, server) for name in ("a", "b")]
        assert [run.wait() for run in runs] == [0, 0]
        assert server.count == 80
        assert rate_of(server) <= PER_SECOND
    assert (tmp_path / "a" / "lines.jsonl").read_bytes() == (tmp_path / "b" / "lines.jsonl").read_bytes()


def test_run_when_it_has_a_share_keeps_to_that_and_says_nothing_of_it_in_its_manifest(tmp_path, start):
    source = written(tmp_path, 24)  # with the whole limit, it would take 1.2 s: 23 / 2.7 is over its share
    with ModelServer(reply_to) as server:
        assert start(tmp_path / "a", source, server, share=0.25).wait() == 0
        assert rate_of(server) <= PER_SECOND / 4
    assert "limit_share" not in json.loads((tmp_path / "a" / "run.json").read_text())["models"]


@pytest.mark.waits
@pytest.mark.endurance
def test_runs_when_they_are_killed_go_on_within_the_limit(tmp_path: Path, start: Callable[..., Any]) -> None:
    kills, choices, source = rounds(60), random.Random(7), written(tmp_path, 25)
    with ModelServer(reply_to) as server:
        runs = {name: start(tmp_path / name, source, server) for name in ("a0", "b0")}
        done = 0
        while done < kills:
            seen = server.count
            server.wait_for(seen + choices.randint(1, 12), timeout=5)
            time.sleep(choices.random() * 0.05)
            name = choices.choice(list(runs))
            run = runs.pop(name)
            run.send_signal(signal.SIGKILL)
            killed = run.wait() == -signal.SIGKILL
            done += killed
            following = name if killed else f"{name[0]}{int(name[1:]) + 1}"
            runs[following] = start(tmp_path / following, source, server)
        assert [run.wait() for run in runs.values()] == [0, 0]
        assert rate_of(server) <= PER_SECOND
    first, second = ((tmp_path / name / "lines.jsonl").read_bytes() for name in runs)
    assert first == second


@pytest.mark.parametrize("kind", ["timeout", "connection", "server_error"])
def test_error_of_a_model_that_is_slow_or_silent_names_the_three_settings_that_say_how_long(kind):
    said = str(model_error("vllm:org/name", CallFault(kind, "no answer")))
    assert 'raise call_timeout and patience, or lower concurrency, under [models."vllm:org/name"]' in said
    assert "call_timeout" not in str(model_error("vllm:org/name", CallFault("no_quota", "none")))

"""Asking once more: exactly the questions to which no reply could be used, once in a retry, also killed."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.asker import FACT
from fabula.engine.calls import answered, model_uses
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal
from fabula.engine.manifest import read_manifest
from fabula.engine.status import RunReport, show_item
from fabula.errors import BelowThreshold, ConfigError
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
    Refused,
    SafetyBlock,
    TruncatedJson,
)
from fabula.testing.toy_models import model_request, reply_to, toy_models

LINES = "a cat\nb bee\nc cow\nd dog\n"
SPOILT = ("b", "d")
FAULTS: dict[str, Any] = {
    "refused": Refused(),
    "blocked": SafetyBlock(),
    "filtered": ContentFilter(),
    "empty": EmptyText(),
    "no choice": EmptyChoices(),
    "cut off": TruncatedJson(),
    "no JSON": Prose("I cannot say."),
    "wrong shape": {"text": 7},
    "says what cannot be": {"text": "???"},
    "broken JSON": MalformedJson("wrong_type"),
}


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


def lines_of(request: RunRequest) -> dict[str, Any]:
    rows = [json.loads(line) for line in (request.folder / "lines.jsonl").read_text().splitlines()]
    return {row.pop("id"): row for row in rows}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_retry_when_replies_were_of_no_use_asks_exactly_those_once_more(serve: Serve, fault: Any) -> None:
    spoiler, request = serve(fault)
    run(request)
    first = len(spoiler.asked)
    assert run(request) is None and len(spoiler.asked) == first, "the same command asks nothing"
    planned = plan_calls(retrying(request), without(request)).calls
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


def without(request: RunRequest) -> Any:
    stages = {
        name: settings.model_copy(update={"model": None}) if name == "answer" else settings
        for name, settings in request.config.stages.items()
    }
    return replace(request.config, stages=stages, models={})


def test_retry_when_it_succeeds_says_the_attempt_and_keeps_the_replies_of_before(serve: Serve) -> None:
    spoiler, request = serve(Refused())
    run(request)
    spoiler.on = False
    execute(retrying(request))
    assert lines_of(request)["b"]["notes"] == [ANSWERED, "attempt_2"]
    assert lines_of(request)["a"]["notes"] == [ANSWERED]
    (answer,) = [
        view for view in show_item(request.folder, toy_models(), "b").stages if view.name == "answer"
    ]
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
    assert plan_calls(retrying(request), without(request)).calls == 1
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


PROGRAM = """
import os, sys, threading
from pathlib import Path
from dataclasses import replace
from fabula.engine.execute import Options, execute
from fabula.engine import journal as module
from fabula.errors import FabulaError
from fabula.testing.toy_models import model_request
folder, source, model, kill_at = sys.argv[1:5]
commits, plain = [0], module.Journal._note_committed
def commit(self, statements):
    commits[0] += 1
    plain(self, statements)
    if commits[0] >= int(kill_at) > 0:
        os.kill(os.getpid(), 9)
module.Journal._note_committed = commit
request = model_request(Path(folder), (Path(source), model), Options(workers=0, retry_failed=True))
try:
    execute(request)
except FabulaError as error:
    raise SystemExit(int(error.exit_code))
"""


@pytest.mark.endurance
@pytest.mark.waits
@pytest.mark.parametrize("point", range(rounds(20)))
def test_retry_when_killed_anywhere_asks_nothing_twice_that_was_answered(
    tmp_path: Path, starter: Any, point: int
) -> None:
    names = [f"i{number}" for number in range(12)]
    spoilt = tuple(names[::2])
    spoiler = Spoiler(Refused(), spoilt)
    source = tmp_path / "lines.txt"
    source.write_text("".join(f"{name} word\n" for name in names))
    with ModelServer(spoiler) as server:
        model = f"{server.openai_url}#toy"
        request = model_request(tmp_path / "run", (source, model))
        run(request)
        first = len(spoiler.asked)
        given = (request.folder, source, model)
        killed = starter.run_code(PROGRAM, *given, 1 + point).returncode
        starter.run_code(PROGRAM, *given, 0)
        lost = sum(use.uncertain for use in model_uses(request.folder / JOURNAL))
        asked = spoiler.since(first)
    assert set(asked) == set(spoilt)
    attempts = [call for call in answered(request.folder / JOURNAL) if call.sample >= ATTEMPT]
    # After a kill behind the last commit, the retry is over and the second command makes another one.
    whole = {call.sample // ATTEMPT for call in attempts}
    assert len(attempts) == len(spoilt) * len(whole)
    assert len(asked) <= len(attempts) + lost, (killed, asked)

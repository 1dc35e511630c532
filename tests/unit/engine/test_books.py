"""The books of calls: what was sent stands there and nothing else, whatever is killed; sums are exact."""

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.calls import answered, model_uses
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.status import NAME as REPORT
from fabula.errors import BudgetStop
from fabula.testing.endurance import rounds
from fabula.testing.model_server import (
    Asked,
    Dropped,
    Fault,
    FaultPlan,
    ModelServer,
    RateLimited,
    ServerError,
    Slow,
)
from fabula.testing.toy_models import model_request, reply_to

Asks = Callable[..., RunRequest]
CONCURRENCY = 8
PROGRAM = """
import sys
from pathlib import Path
from fabula.engine.execute import Options, execute
from fabula.testing.toy_models import model_request
folder, lines, model, limit = sys.argv[1:]
options = Options(workers=0, max_cost=float(limit) if limit else None)
settings = {"concurrency": 8, "attempts": 20}
execute(model_request(Path(folder), (Path(lines), model), options, settings=settings))
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(reply_to) as running:
        yield running


@pytest.fixture
def asks(tmp_path: Path, server: ModelServer) -> Asks:
    def make(text: str, name: str = "run", **given: Any) -> RunRequest:
        source = tmp_path / "lines.txt"
        source.write_text(text)
        return model_request(tmp_path / name, (source, f"{server.openai_url}#toy"), **given)

    return make


def rows(folder: Path) -> tuple[int, int]:
    """Requests that were answered, and those without a reply, in the journal of a run."""
    path = folder / JOURNAL
    if not path.exists():
        return 0, 0
    with closing(sqlite3.connect(path)) as journal:
        if not journal.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sent'").fetchone()[0]:
            return 0, 0
        sql = "SELECT (SELECT coalesce(sum(attempts), 0) FROM calls), (SELECT count(*) FROM sent)"
        answered, unanswered = journal.execute(sql).fetchone()
    return answered, unanswered


def dawdling(choices: random.Random) -> Callable[[Asked], Fault | None]:
    """Every reply takes another time, so that none comes in the order of the requests."""
    return lambda _: Slow(choices.uniform(0.0, 0.03))


# -- what is sent, and what waits


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("limit", ["", "1000"], ids=["free", "limited"])
def test_books_when_a_run_is_killed_hold_what_was_sent_and_at_most_the_open_slots_more(
    tmp_path: Path, server: ModelServer, starter: Any, limit: str
) -> None:
    lines, folder, choices = tmp_path / "lines.txt", tmp_path / "run", random.Random(5)
    count = 40 * rounds(30)
    lines.write_text("".join(f"i{number} cat\n" for number in range(count)))
    server.faults = dawdling(choices)
    kills = 0
    while kills < rounds(30):
        wanted = server.count + choices.randint(1, 40)
        child = starter.start((folder, lines, f"{server.openai_url}#toy", limit), code=PROGRAM)
        while child.poll() is None and server.count < wanted:
            server.wait_for(min(server.count + 1, wanted), timeout=0.2)
        child.kill()
        kills += child.wait() != 0
        answered, unanswered = rows(folder)
        assert answered + unanswered >= server.count, "what was sent stands on the books"
        assert answered + unanswered <= server.count + kills * CONCURRENCY, "what waited does not"
    server.faults = None
    request = model_request(folder, (lines, f"{server.openai_url}#toy"), settings={"concurrency": 8})
    assert execute(request).totals["made"] == count
    (use,) = model_uses(folder / JOURNAL)
    assert use.calls == count, "nothing is asked twice that was answered"
    assert server.count <= use.attempts + use.uncertain <= server.count + kills * CONCURRENCY


@pytest.mark.parametrize("limit", [None, 1000.0], ids=["free", "limited"])
@pytest.mark.parametrize("slots", [1, 3])
def test_books_when_calls_wait_for_a_slot_do_not_hold_them(
    asks: Asks, server: ModelServer, limit: float | None, slots: int
) -> None:
    open_rows: list[int] = []
    path = asks("a cat\n").folder / JOURNAL

    def look(asked: Asked) -> dict[str, Any]:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as journal:
            sql = "SELECT count(*) FROM sent WHERE request NOT IN (SELECT request FROM calls)"
            open_rows.append(journal.execute(sql).fetchone()[0])
        return reply_to(asked)

    server.handler = look
    text = "".join(f"i{number} cat\n" for number in range(30))
    options = Options(workers=0, max_cost=limit)
    execute(asks(text, settings={"concurrency": slots}, options=options))
    assert len(open_rows) == 30
    assert min(open_rows) >= 1, "it is on disk before it is sent"
    # Replies that are about to be written stand there beside those that have a slot.
    assert max(open_rows) <= 2 * slots


def test_books_when_a_call_waits_for_the_end_of_a_pause_do_not_hold_it_twice(
    asks: Asks, server: ModelServer
) -> None:
    server.faults = lambda asked: RateLimited(retry_after=0.05) if asked.attempt == 1 else None
    (use,) = execute(asks("a cat\nb bee\n", settings={"concurrency": 2, "attempts": 9})).models
    assert (use.calls, use.attempts, use.uncertain) == (2, server.count, 0)


# -- sums


@pytest.mark.slow
@pytest.mark.endurance
def test_report_when_replies_come_in_another_order_has_the_same_bytes(
    asks: Asks, server: ModelServer
) -> None:
    choices = random.Random(11)
    text = "".join(f"i{n} {' '.join(['cat'] * choices.randint(1, 90))} ask:2\n" for n in range(60))
    prices = {"input": 0.1, "output": 0.7}  # no sum of these is exact in binary
    reports = set()
    for number in range(1 + rounds(20)):
        server.faults = dawdling(choices)
        request = asks(text, name=f"run{number}", settings={"concurrency": 16, "prices": prices})
        execute(request)
        reports.add((request.folder / REPORT).read_bytes())
    assert len(reports) == 1


def test_budget_when_the_limit_is_met_exactly_lets_the_call_through(asks: Asks, server: ModelServer) -> None:
    text = "".join(f"i{number} cat\n" for number in range(40))
    prices = {"input": 0.1, "output": 0.7}
    (use,) = execute(asks(text, name="calm", settings={"prices": prices})).models
    request = asks(text, settings={"prices": prices, "concurrency": 1})
    limited = replace(request, options=Options(workers=0, max_cost=use.cost * 20))
    assert execute(limited).models[0].cost == use.cost
    assert server.count == 80


# Many questions at once: each is answered once and paid for once, and the limit of cost holds.

ITEMS = rounds(10_000, share=30)
FAULTS = {RateLimited(retry_after=0.01): 0.01, ServerError(503): 0.01, Dropped(): 0.01}


@pytest.mark.slow
@pytest.mark.endurance
@pytest.mark.waits
def test_run_when_many_questions_are_open_at_once_loses_none_and_keeps_the_limit(tmp_path: Path) -> None:
    source = tmp_path / "lines.txt"
    order = random.Random(42).sample(range(ITEMS), ITEMS)
    source.write_text("".join(f"i{number:05} word{number}\n" for number in order))
    with ModelServer(reply_to, latency=0.005, faults=FaultPlan(seed=42, rates=FAULTS)) as server:
        request = model_request(
            tmp_path / "run",
            (source, f"{server.openai_url}#toy"),
            settings={"concurrency": 128, "attempts": 20},
        )
        stops = 0
        limit = 0.0006
        while True:
            try:
                report = execute(replace(request, options=Options(workers=0, max_cost=limit)))
                break
            except BudgetStop:
                assert sum(use.cost for use in model_uses(request.folder / JOURNAL)) <= limit
                stops, limit = stops + 1, limit * 4
        assert stops > 0
        replies = [exchange for exchange in server.log if not exchange.faults]
    assert report.totals["made"] == ITEMS
    made = [json.loads(line) for line in (request.folder / "lines.jsonl").read_text("utf-8").splitlines()]
    assert len({row["id"] for row in made}) == ITEMS
    assert len(list(answered(request.folder / JOURNAL))) == ITEMS
    assert max(Counter(exchange.asked.key for exchange in replies).values()) == 1, "nothing is paid twice"

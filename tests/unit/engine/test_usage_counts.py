"""Runs whose service counts badly: the limit holds, one wrong count stops nothing, and the report says so."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fabula.engine import journal_file
from fabula.engine.calls import answered, model_uses
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.report import read_report
from fabula.errors import BudgetStop
from fabula.models.chat import ChatRequest
from fabula.models.options import ModelOptions
from fabula.models.prices import most_tokens
from fabula.testing.model_server import Answer, Asked, Fault, ModelServer, OddUsage
from fabula.testing.toy_models import PRICES, model_request, reply_to

Asks = Callable[..., RunRequest]
LIMIT = 0.05
ODD = [
    OddUsage("output", missing=True), OddUsage("output", "300"), OddUsage("output", float("nan")),
    OddUsage("output", -1), OddUsage("output", True), OddUsage("output", 0.5), OddUsage("input", None),
    OddUsage("input", "7"), OddUsage(missing=True),
]  # fmt: skip


def wordy(asked: Asked) -> Answer:
    """An answer of 60 tokens at least: more than nothing, as a limit that is not kept would show."""
    return Answer(json.dumps({"text": reply_to(asked)["text"] + " and so on" * 24}))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(wordy) as running:
        yield running


@pytest.fixture
def asks(tmp_path: Path, server: ModelServer) -> Asks:
    def make(text: str, **given: Any) -> RunRequest:
        source = tmp_path / "lines.txt"
        source.write_text(text)
        return model_request(tmp_path / "run", (source, f"{server.openai_url}#toy"), **given)

    return make


def many(count: int) -> str:
    return "".join(f"i{number} cat\n" for number in range(count))


def charged(server: ModelServer) -> float:
    """What the service charges for all that it answered, in USD."""
    total = 0.0
    for exchange in server.log:
        assert exchange.answer is not None
        used = exchange.answer.counts(exchange.asked)
        total += (used["input_tokens"] * PRICES["input"] + used["output_tokens"] * PRICES["output"]) / 1e6
    return total


def striking(fault: Fault, *items: str) -> Callable[[Asked], Fault | None]:
    return lambda asked: fault if asked.text.split(":")[0] in items else None


# -- the limit


@pytest.mark.parametrize("fault", ODD, ids=repr)
def test_limit_when_the_usage_cannot_be_read_is_never_exceeded(
    asks: Asks, server: ModelServer, fault: OddUsage
) -> None:
    server.faults = fault
    request = asks(many(200), settings={"concurrency": 16}, options=Options(workers=0, max_cost=LIMIT))
    with pytest.raises(BudgetStop):
        execute(request)
    (use,) = model_uses(request.folder / JOURNAL)
    assert 0 < use.calls == server.count == use.unread
    assert charged(server) <= use.cost <= LIMIT
    with pytest.raises(BudgetStop):
        execute(request)
    assert server.count == use.calls, "the same limit allows nothing more"


def test_limit_when_one_reply_claims_a_billion_tokens_is_not_used_up_by_it(
    asks: Asks, server: ModelServer
) -> None:
    server.faults = striking(OddUsage("output", 10**9), "i3")
    request = asks(many(20), options=Options(workers=0, max_cost=LIMIT))
    report = execute(request)
    assert report.totals["made"] == 20
    (use,) = report.models
    assert (use.overclaimed, use.unread) == (1, 0)
    assert charged(server) < use.cost < LIMIT
    assert read_report(request.folder) == report
    told = "\n".join(report.lines())
    assert "1 reply claims more tokens than the request can have used: booked at the most" in told
    claims = [call.reply for call in answered(request.folder / JOURNAL) if call.reply.claimed is not None]
    (reply,) = claims
    assert reply.claimed is not None and reply.claimed.output_tokens == 10**9
    assert reply.usage is not None and reply.usage.output_tokens == 100, "max_tokens"


def test_report_when_counts_could_not_be_read_says_how_many(asks: Asks, server: ModelServer) -> None:
    server.faults = striking(OddUsage("output", "many"), "i1", "i2")
    request = asks(many(5))
    report = execute(request)
    assert report.models[0].unread == 2
    (line,) = [line for line in report.lines() if "count of tokens" in line]
    assert "2 replies give no count of tokens that can be read: booked at the most" in line
    assert read_report(request.folder) == report


def test_limit_when_earlier_calls_had_neither_price_nor_count_takes_them_at_their_bound(
    asks: Asks, server: ModelServer
) -> None:
    server.faults = OddUsage(missing=True)
    (use,) = execute(asks(many(20), settings={"prices": None})).models
    assert (use.unpriced, use.unread) == (20, 20)
    request = asks(many(20), options=Options(workers=0, max_cost=LIMIT))
    calls = list(answered(request.folder / JOURNAL))
    most = most_tokens(ChatRequest.from_canonical(calls[0].asked), ModelOptions())
    bound = (most.input * PRICES["input"] + most.output * PRICES["output"]) / 1e6
    with pytest.raises(BudgetStop):
        execute(asks(many(40), options=Options(workers=0, max_cost=LIMIT)))
    assert server.count - 20 == int((LIMIT - 20 * bound) / bound)


# -- journals of earlier versions


def test_run_when_an_earlier_version_wrote_its_journal_is_read_and_goes_on(
    asks: Asks, server: ModelServer
) -> None:
    server.faults = striking(OddUsage(missing=True), "i1")
    request = asks(many(4))
    before = execute(request).models
    as_format_3(request.folder / JOURNAL)
    assert model_uses(request.folder / JOURNAL) == before
    assert execute(request).models == before
    assert server.count == 4
    assert execute(asks(many(6))).models[0].calls == 6
    assert server.count == 6
    with closing(sqlite3.connect(request.folder / JOURNAL)) as journal:
        assert journal.execute("SELECT value FROM meta WHERE name = 'format'").fetchone() == (
            str(journal_file.FORMAT),
        )


def as_format_3(path: Path) -> None:
    """Make a journal what the first version wrote: no batches, nor prompts and tokens kept of calls."""
    with closing(sqlite3.connect(path)) as journal, journal:
        for column in ("prompt", "cached_tokens", "written_tokens"):
            journal.execute(f"ALTER TABLE calls DROP COLUMN {column}")
        for table in ("batches", "batch_requests", "batch_pictures"):
            journal.execute(f"DROP TABLE {table}")
        journal.execute("UPDATE meta SET value = '3' WHERE name = 'format'")


# -- settings that change the price

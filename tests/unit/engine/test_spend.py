"""What runs cost: by stage, model, prompt and item, limits of stages, and the forecast."""

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.calls import model_uses
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import Options, RunRequest, execute, last_stage_costs
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal
from fabula.engine.progress import Event
from fabula.engine.running import Forecast, Forecasting
from fabula.engine.spend import BY, run_spend
from fabula.errors import BudgetStop, ConfigError
from fabula.models.chat import Usage
from fabula.testing.model_server import Answer, Asked, Dropped, ModelServer
from fabula.testing.toy_models import AnswerSettings, model_request, reply_to

Asks = Callable[..., RunRequest]
PROMPT = "toy@1#000000000000"


def counted(asked: Asked) -> Answer:
    """100 tokens in, of which 40 were kept and 10 are kept now, and 10 out: 100 + 100 millionths of a USD."""
    return Answer(json.dumps(reply_to(asked)), Usage(100, 10, cached_tokens=40, cache_write_tokens=10))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(counted) as running:
        yield running


@pytest.fixture
def asks(tmp_path: Path, server: ModelServer) -> Asks:
    def make(text: str = "a cat ask:3\nb bee\nc same\nd same\n", **given: Any) -> RunRequest:
        source = tmp_path / "lines.txt"
        source.write_text(text)
        return model_request(tmp_path / "run", (source, f"{server.openai_url}#toy"), **given)

    return make


def test_spend_when_shown_by_anything_adds_up_to_what_the_run_has_cost(asks: Asks) -> None:
    request = asks()
    execute(request)
    used = math.fsum(use.cost for use in model_uses(request.folder / JOURNAL))
    assert used == pytest.approx(5 * 200e-6)  # three of a, one of b, one that c and d share
    for by in BY:
        assert run_spend(request.folder, by).spent == pytest.approx(used)
    (line,) = run_spend(request.folder, "prompt").rows
    assert (line.name, line.calls) == (PROMPT, 5)
    assert (line.input_tokens, line.cached_tokens, line.written_tokens, line.output_tokens) == (
        500,
        200,
        50,
        50,
    )
    items = {line.name: line.calls for line in run_spend(request.folder, "item").rows}
    assert items in ({"a": 3, "b": 1, "c": 1}, {"a": 3, "b": 1, "d": 1})
    assert run_spend(request.folder, "story").rows[0].name == "a"
    assert run_spend(request.folder).rows[0].name == "answer"


def test_spend_when_a_request_was_lost_counts_it_at_its_most(asks: Asks, server: ModelServer) -> None:
    request = asks("a cat\n")
    server.faults = [Dropped()]
    execute(request)
    rows = {line.name: line for line in run_spend(request.folder, "item").rows}
    assert rows["a"].lost == 0
    assert (rows["without a reply"].calls, rows["without a reply"].lost) == (0, 1)
    (stage,) = run_spend(request.folder).rows
    assert stage.lost == 1
    assert stage.most == pytest.approx(rows["a"].cost + rows["without a reply"].lost_cost)


def test_spend_when_an_older_version_wrote_the_journal_says_what_it_did_not_record(asks: Asks) -> None:
    request = asks()
    execute(request)
    with closing(sqlite3.connect(request.folder / JOURNAL)) as connection, connection:
        for column in ("prompt", "cached_tokens", "written_tokens"):
            connection.execute(f"ALTER TABLE calls DROP COLUMN {column}")
        connection.execute("ALTER TABLE batch_requests DROP COLUMN prompt")
        connection.execute("UPDATE meta SET value = '4' WHERE name = 'format'")
    before = run_spend(request.folder, "prompt")
    assert [(line.name, line.calls, line.cached_tokens) for line in before.rows] == [("not recorded", 5, 0)]
    with Journal.open(request.folder):
        pass
    assert run_spend(request.folder, "prompt") == before
    execute(asks("a cat ask:3\nb bee\nc same\nd same\ne eel\n"))
    names = {line.name: line.calls for line in run_spend(request.folder, "prompt").rows}
    assert names == {"not recorded": 5, PROMPT: 1}


def test_plan_when_prompts_were_kept_counts_on_the_same_share(asks: Asks, server: ModelServer) -> None:
    prices = {"input": 1.0, "output": 10.0, "cached_input": 0.1, "cache_write": 1.25}
    execute(asks("a cat\n", settings={"prices": prices}))
    (known,) = model_uses(asks().folder / JOURNAL)
    # 100 in, of which 40 at 0.1 and 10 at 1.25, and 10 out at 10: 50 + 4 + 12.5 + 100 millionths
    assert known.cost == pytest.approx(166.5e-6)
    more = asks("a cat\nb cat\n", settings={"prices": prices})
    (plan,) = plan_calls(
        more, replace(more.config, stages=more.config.stages | {"answer": AnswerSettings()})
    ).stages
    assert (plan.calls, plan.calibrated) == (1, True)
    # of the input a half costs 1, 40 in 100 cost 0.1 and 10 in 100 cost 1.25: 0.665 a token
    assert plan.cost == pytest.approx((0.665 * plan.input_tokens + 10 * plan.output_tokens) / 1e6, rel=0.02)


def test_stage_when_it_has_a_limit_stops_there_and_goes_on_when_it_is_raised(
    asks: Asks, server: ModelServer
) -> None:
    text = "".join(f"i{number:02} cat\n" for number in range(20))
    most = Options(workers=0, max_cost=5.0, stage_costs={"answer": 0.004})
    with pytest.raises(BudgetStop, match=r"limit of answer: .* of 0.004 USD .*\n.*--max-cost answer=USD"):
        execute(asks(text, options=most, settings={"concurrency": 2}))
    request = asks(text, options=Options(workers=0, stage_costs={"answer": 1.0}))
    assert last_stage_costs(request.folder) == {"answer": 0.004}
    assert 0 < run_spend(request.folder).spent <= 0.004
    asked = server.count
    report = execute(request)
    assert report.totals["made"] == 20
    assert server.count == 20 > asked
    assert last_stage_costs(request.folder) == {"answer": 1.0}


def test_limit_when_the_run_has_less_than_the_stage_names_the_run(asks: Asks) -> None:
    limits = Options(workers=0, max_cost=0.0001, stage_costs={"answer": 5.0})
    with pytest.raises(BudgetStop, match=r"at the cost limit: .*\n  fix: raise --max-cost and"):
        execute(asks(options=limits))


def test_limit_when_its_stage_is_unknown_or_the_price_is_names_it(asks: Asks) -> None:
    with pytest.raises(ConfigError, match="--max-cost anwser"):
        execute(asks(options=Options(workers=0, stage_costs={"anwser": 1.0})))
    with pytest.raises(ConfigError, match="0 or more"):
        execute(asks(options=Options(workers=0, stage_costs={"answer": -1.0})))
    with pytest.raises(ConfigError, match="price of this model is not known"):
        execute(asks(options=Options(workers=0, stage_costs={"answer": 1.0}), settings={"prices": None}))


def test_forecast_when_a_stage_costs_more_than_planned_raises_what_is_to_come() -> None:
    forecast = Forecast({"draft": 2.0, "check": 1.0, "judge": 3.0})
    # 10 of 40 items of draft cost 1 USD: 4 at its end, twice the plan; so check and judge are expected at 8.
    assert forecast.expect("draft", 0.0, 4.0) == {"expected": 12.0, "factor": 2.0}
    # draft cost 4 in the end; check is on its way to 2 more: 6 of the 3 planned, so judge at 6.
    assert forecast.expect("check", 4.0, 6.0) == {"expected": 12.0, "factor": 2.0}
    # judge is cheaper than planned: nothing is left to come, so only its own pace counts.
    assert forecast.expect("judge", 6.0, 7.0) == {"expected": 7.0, "factor": pytest.approx(7 / 6, abs=1e-4)}
    assert forecast.expect("unplanned", 7.0, 8.0) is None


def test_run_when_it_has_a_plan_tells_what_it_expects(asks: Asks) -> None:
    told: list[Event] = []

    class Told:
        def emit(self, event: Event) -> None:
            told.append(event)

        def close(self) -> None:
            return None

    request = asks("".join(f"i{number} cat\n" for number in range(8)))
    reporter = Forecasting(Told())
    reporter.emit(Event("plan", data={"calls": 8, "cost": 1.0, "stages": {"answer": 1.0}}))
    execute(request, reporter)
    last = [event for event in told if event.kind == "progress" and event.stage == "answer"][-1].data
    assert last["expected"] == last["projected"] == last["spent"] == pytest.approx(8 * 200e-6)

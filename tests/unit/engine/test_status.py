"""run status and run show: what is there, what is stale, and why."""

import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.engine import journal_file
from fabula.engine.calls import answered, model_uses
from fabula.engine.edits import append_edits
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import Options, RunRequest, execute, last_stage_costs
from fabula.engine.hooks import Event
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.pipeline import Pipeline
from fabula.engine.running import Forecast, Forecasting
from fabula.engine.status import BY, Line, Spend, Status, read_report, run_spend, run_status, show_item
from fabula.errors import BudgetStop, ConfigError, RunError
from fabula.models.chat import ChatRequest, Usage
from fabula.models.options import ModelOptions
from fabula.models.prices import most_tokens
from fabula.schemas.values import Edit
from fabula.testing.model_server import Answer, Asked, Dropped, ModelServer, OddUsage
from fabula.testing.toy_models import PRICES, AnswerSettings, reply_to
from fabula.testing.toy_pipeline import toy
from fabula.tests.unit.engine.conftest import Listener, striking


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def stamps(folder: Path) -> dict[str, int]:
    """When each file was written; SQLite's own helper files, which every reader needs, do not count."""
    files = (path for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm")))
    return {path.name: path.stat().st_mtime_ns for path in files}


def test_run_status_when_all_is_made_says_so_and_writes_nothing(run: Callable, folder: Path) -> None:
    run()
    before = stamps(folder)
    status = run_status(folder, toy(), explain=True)
    assert status.totals == {"made": 4, "rejected": 0, "failed": 0, "pending": 0, "stale": 0}
    assert [stage.made for stage in status.stages] == [4] * 6
    assert "nothing would run again" in status.lines()
    assert "nothing would run again" not in run_status(folder, toy()).lines()
    assert status.holder is None
    assert stamps(folder) == before


def told(status: Status) -> str:
    return "\n".join(status.lines())


def of_library(name: str) -> Callable[..., Pipeline]:
    def change(run: Callable, _: Path, patch: pytest.MonkeyPatch) -> Pipeline:
        for version in ("1.0.31", "1.0.32"):
            patch.setattr("importlib.metadata.version", lambda _, version=version: version)
            _ = version == "1.0.31" and run(pipeline=toy("WORK_WITH_LIBRARY"))
        return toy(name)

    return change


def of_sources(old: str, *stages: str) -> Callable[..., None]:
    """Change a line of the source and add one; run some stages since."""

    def change(run: Callable, lines: Path, _: pytest.MonkeyPatch) -> None:
        run()
        lines.write_text(lines.read_text().replace(old, "b bear") + "e elk\n")
        for stage in stages:
            run(stages=(stage,))

    return change


CHANGES: dict[str, Callable[[Callable, Path, pytest.MonkeyPatch], Pipeline | None]] = {
    "a version": lambda run, *_: run() and toy("WORK_V2"),
    "settings": lambda run, *_: run() and run(
        sets=["work.ignored=1", "run.seed=7"], stages=("read_lines",)) and None,
    "a library": of_library("WORK_WITH_LIBRARY"), "a library that is not used any more": of_library("WORK"),
    "a source": of_sources("no line"), "a line": of_sources("b bee", "read_lines"),
    "a line, and its stage has run": of_sources("b bee", "read_lines", "work"),
    "most is not run yet": lambda run, *_: run(limit=1) and None,
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_run_status_when_something_changed_says_what_would_run_again_and_why(
    run, folder, lines, monkeypatch, difference, snapshot, case
):
    run(folder=folder.with_name("whole"))
    whole = run_status(folder.with_name("whole"), toy(), explain=True)
    pipeline = CHANGES[case](run, lines, monkeypatch) or toy()
    status = run_status(folder, pipeline, explain=True)
    assert difference(told(whole), told(status)) == snapshot
    reasons = [f"{count} {reason}" for stage in status.stages for reason, count in stage.reasons.items()]
    assert not any(reason in told(run_status(folder, pipeline)) for reason in reasons)


@pytest.mark.parametrize("look", [run_status, lambda folder, pipeline: show_item(folder, pipeline, "a")])
def test_looking_when_folder_is_no_such_run_is_refused(run: Callable, tmp_path: Path, look: Callable) -> None:
    with pytest.raises(RunError, match=r"run\.json"):
        look(tmp_path, toy())
    run()
    with pytest.raises(RunError, match="a run of kind toy, not"):
        look(tmp_path / "run", Pipeline("other", toy().stages, toy().finish))
    (tmp_path / "run" / "journal.sqlite").unlink()
    with pytest.raises(RunError, match="no journal"):
        look(tmp_path / "run", toy())


# -- one item


def test_show_item_when_made_shows_what_each_stage_read_and_wrote(run: Callable, folder: Path) -> None:
    run()
    append_edits(folder, lambda: (Edit(id="a", path="$.text", old="ant!", new="ape", who="ana", why="test"),))
    append_edits(folder, lambda: (Edit(id="b", path="$.text", old="bee!", new="bat", who="ana", why="test"),))
    view = show_item(folder, toy(), "a")
    assert [(stage.name, stage.status) for stage in view.stages][1:3] == [("work", "made"), ("count", "made")]
    assert view.stages[1].reads == {"words": ["ant"]}
    assert view.stages[1].writes == {"text": "ant!"}
    assert view.stages[5].reads == {"text": "ant!", "count": 1, "number": 0, "short": "a"}
    assert [edit["new"] for edit in view.edits] == ["ape"]
    assert view.field("short") == "a"
    assert 'edit by ana at $.text: "ape" (test)' in view.lines()
    with pytest.raises(KeyError):
        view.field("nope")


def test_spend_when_no_price_is_known_says_unknown_and_not_nothing() -> None:
    free, unpriced = Line("free", 3), Line("unpriced", calls=2, unpriced=2)
    assert [line.split()[5] for line in Spend("stage", (unpriced,)).lines()[1:3]] == ["unknown", "unknown"]
    assert [line.split()[5] for line in Spend("stage", (free,)).lines()[1:3]] == ["0.0000", "0.0000"]
    both = Spend("stage", (replace(unpriced, calls=3, cost=0.25), unpriced)).lines()
    assert [line.split()[5] for line in both[1:4]] == ["0.2500", "unknown", "0.2500"]
    assert both[4] == "4 calls are not in it, as their price is not known"


def test_show_item_when_stale_shows_the_last_result_and_why(run: Callable, folder: Path) -> None:
    run()
    view = show_item(folder, toy("WORK_V2"), "a")
    assert (view.stages[1].status, view.stages[1].reason) == ("stale", "stage version 1 -> 2")
    assert view.field("text") == "ant!"


def test_show_item_when_unknown_offers_close_ids(run: Callable, folder: Path, lines: Path) -> None:
    lines.write_text("kb25k_0001 word\nkb25k_0002 word\n")
    run()
    with pytest.raises(RunError, match="use an id such as kb25k_000"):
        show_item(folder, toy(), "kb25k_001")
    with pytest.raises(
        RunError, match=r"such as kb25k_0001.* if another version made the run, give its command again"
    ):
        show_item(folder, toy(), "nobody")


# -- What runs cost: by stage, model, prompt and item, limits of stages, and the forecast

Asks = Callable[..., RunRequest]
PROMPT = "toy@1#000000000000"


def counted(asked: Asked) -> Answer:
    """100 tokens in, of which 40 were kept and 10 are kept now, and 10 out: 100 + 100 millionths of a USD."""
    return Answer(json.dumps(reply_to(asked)), Usage(100, 10, cached_tokens=40, cache_write_tokens=10))


@pytest.fixture
def server(server: ModelServer) -> ModelServer:
    server.handler = counted
    return server


FOUR = "a cat ask:3\nb bee\nc same\nd same\n"


def test_spend_when_shown_by_anything_adds_up_to_what_the_run_has_cost(asks: Asks) -> None:
    request = asks(FOUR)
    execute(request)
    used = math.fsum(use.cost for use in model_uses(request.folder / JOURNAL))
    assert used == pytest.approx(5 * 200e-6)  # three of a, one of b, one that c and d share
    for by in BY:
        assert run_spend(request.folder, by).spent == pytest.approx(used)
    (line,) = run_spend(request.folder, "prompt").rows
    assert (line.name, line.calls) == (PROMPT, 5)
    tokens = (line.input_tokens, line.cached_tokens, line.written_tokens, line.output_tokens)
    assert tokens == (500, 200, 50, 50)
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


def test_plan_when_prompts_were_kept_counts_on_the_same_share(asks: Asks, server: ModelServer) -> None:
    prices = {"input": 1.0, "output": 10.0, "cached_input": 0.1, "cache_write": 1.25}
    execute(asks("a cat\n", settings={"prices": prices}))
    (known,) = model_uses(asks().folder / JOURNAL)
    # 100 in, of which 40 at 0.1 and 10 at 1.25, and 10 out at 10: 50 + 4 + 12.5 + 100 millionths
    assert known.cost == pytest.approx(166.5e-6)
    more = asks("a cat\nb cat\n", settings={"prices": prices})
    stages = more.config.stages | {"answer": AnswerSettings()}
    (plan,) = plan_calls(more, replace(more.config, stages=stages)).stages
    assert (plan.calls, plan.calibrated) == (1, True)
    # of the input a half costs 1, 40 in 100 cost 0.1 and 10 in 100 cost 1.25: 0.665 a token
    assert plan.cost == pytest.approx((0.665 * plan.input_tokens + 10 * plan.output_tokens) / 1e6, rel=0.02)


def test_stage_when_it_has_a_limit_stops_there_and_goes_on_when_it_is_raised(asks, server):
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
    assert forecast.expect("draft", 0.0, 1.0, 4.0) == {"expected": 12.0, "factor": 2.0}
    forecast.expect("draft", 0.0, 4.0, 4.0)
    # draft cost 4 in the end; check is on its way to 2 more: 6 of the 3 planned, so judge at 6.
    assert forecast.expect("check", 4.0, 4.5, 6.0) == {"expected": 12.0, "factor": 2.0}
    forecast.expect("check", 4.0, 6.0, 6.0)
    # judge is cheaper than planned: nothing is left to come, so only its own pace counts.
    found = forecast.expect("judge", 6.0, 6.1, 7.0)
    assert found == {"expected": 7.0, "factor": pytest.approx(7 / 6, abs=1e-4)}
    assert forecast.expect("unplanned", 7.0, 7.0, 8.0) is None


def test_forecast_when_stages_overlap_adds_what_is_left_of_each() -> None:
    forecast = Forecast({"draft": 4.0, "check": 2.0})
    assert forecast.expect("draft", 0.0, 1.0, 4.0) == {"expected": 6.0, "factor": 1.0}
    # Since then check has spent 0.5 beside the 1.0 of draft, and will have spent 2.0: 3.0 are left of draft,
    # 1.5 of check.
    assert forecast.expect("check", 1.0, 1.5, 3.0) == {"expected": 6.0, "factor": 1.0}


def test_run_when_it_has_a_plan_tells_what_it_expects(asks: Asks) -> None:
    request, listener = asks(many(8)), Listener()
    reporter = Forecasting(listener)
    reporter.emit(Event("plan", data={"calls": 8, "cost": 1.0, "stages": {"answer": 1.0}}))
    execute(request, reporter)
    last = [event for event in listener.events if event.kind == "progress" and event.stage == "answer"][
        -1
    ].data
    assert last["expected"] == last["projected"] == last["spent"] == pytest.approx(8 * 200e-6)


# Runs whose service counts badly: the limit holds, one wrong count stops nothing, and the report says so.

LIMIT = 0.05
ODD = [
    OddUsage("output", missing=True), OddUsage("output", "300"), OddUsage("output", float("nan")),
    OddUsage("output", -1), OddUsage("output", True), OddUsage("output", 0.5), OddUsage("input", None),
    OddUsage("input", "7"), OddUsage(missing=True),
]  # fmt: skip


@pytest.fixture
def wordy_server(server: ModelServer) -> ModelServer:
    """It answers with 60 tokens at least: more than nothing, as a limit that is not kept would show."""
    server.handler = lambda asked: Answer(json.dumps({"text": reply_to(asked)["text"] + " and so on" * 24}))
    return server


def many(count: int) -> str:
    return "".join(f"i{number} cat\n" for number in range(count))


def charged(wordy_server: ModelServer) -> float:
    """What the service charges for all that it answered, in USD."""
    total = 0.0
    for exchange in wordy_server.log:
        assert exchange.answer is not None
        used = exchange.answer.counts(exchange.asked)
        total += (used["input_tokens"] * PRICES["input"] + used["output_tokens"] * PRICES["output"]) / 1e6
    return total


# -- the limit


@pytest.mark.parametrize("fault", ODD, ids=repr)
def test_limit_when_the_usage_cannot_be_read_is_never_exceeded(asks, wordy_server, fault):
    wordy_server.faults = fault
    request = asks(many(200), settings={"concurrency": 16}, options=Options(workers=0, max_cost=LIMIT))
    with pytest.raises(BudgetStop):
        execute(request)
    (use,) = model_uses(request.folder / JOURNAL)
    assert 0 < use.calls == wordy_server.count == use.unread
    assert charged(wordy_server) <= use.cost <= LIMIT
    with pytest.raises(BudgetStop):
        execute(request)
    assert wordy_server.count == use.calls, "the same limit allows nothing more"


def test_limit_when_one_reply_claims_a_billion_tokens_is_not_used_up_by_it(asks, wordy_server):
    wordy_server.faults = striking(OddUsage("output", 10**9), "i3")
    request = asks(many(20), options=Options(workers=0, max_cost=LIMIT))
    report = execute(request)
    assert report.totals["made"] == 20
    (use,) = report.models
    assert (use.overclaimed, use.unread) == (1, 0)
    assert charged(wordy_server) < use.cost < LIMIT
    assert read_report(request.folder) == report
    told = "\n".join(report.lines())
    assert "1 reply claims more tokens than the request can have used: booked at the most" in told
    claims = [call.reply for call in answered(request.folder / JOURNAL) if call.reply.claimed is not None]
    (reply,) = claims
    assert reply.claimed is not None and reply.claimed.output_tokens == 10**9
    assert reply.usage is not None and reply.usage.output_tokens == 100, "max_tokens"


def test_report_when_counts_could_not_be_read_says_how_many(asks, wordy_server):
    wordy_server.faults = striking(OddUsage("output", "many"), "i1", "i2")
    request = asks(many(5))
    report = execute(request)
    assert report.models[0].unread == 2
    (line,) = [line for line in report.lines() if "count of tokens" in line]
    assert "2 replies give no count of tokens that can be read: booked at the most" in line
    assert read_report(request.folder) == report


def test_limit_when_earlier_calls_had_neither_price_nor_count_takes_them_at_their_bound(
    asks: Asks, wordy_server: ModelServer
) -> None:
    wordy_server.faults = OddUsage(missing=True)
    (use,) = execute(asks(many(20), settings={"prices": None})).models
    assert (use.unpriced, use.unread) == (20, 20)
    request = asks(many(20), options=Options(workers=0, max_cost=LIMIT))
    calls = list(answered(request.folder / JOURNAL))
    most = most_tokens(ChatRequest.from_canonical(calls[0].asked), ModelOptions())
    bound = (most.input * PRICES["input"] + most.output * PRICES["output"]) / 1e6
    with pytest.raises(BudgetStop):
        execute(asks(many(40), options=Options(workers=0, max_cost=LIMIT)))
    assert wordy_server.count - 20 == int((LIMIT - 20 * bound) / bound)


# -- journals of earlier versions


def test_run_when_an_earlier_version_wrote_its_journal_is_read_and_goes_on(asks, wordy_server):
    wordy_server.faults = striking(OddUsage(missing=True), "i1")
    request = asks(many(4))
    before = execute(request).models
    as_format_3(request.folder / JOURNAL)
    assert model_uses(request.folder / JOURNAL) == before
    assert execute(request).models == before
    assert wordy_server.count == 4
    assert execute(asks(many(6))).models[0].calls == 6
    assert wordy_server.count == 6
    with closing(sqlite3.connect(request.folder / JOURNAL)) as journal:
        (format_,) = journal.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    assert format_ == str(journal_file.FORMAT)


def as_format_3(path: Path) -> None:
    """Make a journal what the first version wrote: no batches, nor prompts and tokens kept of calls."""
    with closing(sqlite3.connect(path)) as journal, journal:
        for column in ("prompt", "cached_tokens", "written_tokens"):
            journal.execute(f"ALTER TABLE calls DROP COLUMN {column}")
        for table in ("batches", "batch_requests", "batch_pictures"):
            journal.execute(f"DROP TABLE {table}")
        journal.execute("UPDATE meta SET value = '3' WHERE name = 'format'")

"""Runs that ask a model, through the real SDK: nothing asked twice, every failure named, the budget held."""

import asyncio
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from fabula.builders.drafting import without_models
from fabula.engine import runner
from fabula.engine.calls import model_uses
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal, decisions
from fabula.engine.manifest import read_manifest
from fabula.engine.status import RunReport, StageView, run_status, show_item
from fabula.errors import BudgetStop, ConfigError, MissingRequirement, RunError
from fabula.models.spec import ANSWERED
from fabula.testing.model_server import (
    Asked,
    Dropped,
    EmptyChoices,
    EmptyText,
    Fault,
    MalformedJson,
    ModelServer,
    Prose,
    Refused,
    ServerError,
    TooLong,
    TruncatedJson,
)
from fabula.testing.toy_models import PRICES, model_request, reply_to, toy_models
from fabula.tests.unit.engine.conftest import Listener, lines_of, striking

Asks = Callable[..., RunRequest]


def view_of(request: RunRequest, item: str) -> StageView:
    stages = show_item(request.folder, toy_models(), item).stages
    return next(view for view in stages if view.name == "answer")


def failures(report: RunReport) -> dict[str, str | None]:
    return {item.id: item.code for item in report.items}


def test_run_when_a_model_answers_makes_the_items_and_keeps_the_calls(asks, server):
    request = asks()
    report = execute(request)
    assert report.totals["made"] == 3
    assert lines_of(request)["a"]["text"] == "answer to a: cat"
    (use,) = report.models
    assert (use.stage, use.calls, use.attempts, use.uncertain, use.unpriced) == ("answer", 3, 3, 0, 0)
    spent = (use.input_tokens * PRICES["input"] + use.output_tokens * PRICES["output"]) / 1e6
    assert use.cost == pytest.approx(spent)
    assert server.count == 3
    (call,) = view_of(request, "a").calls
    assert call["asked"]["messages"][0]["parts"] == [{"text": "a: cat"}]
    assert json.loads(call["reply"]["text"]) == {"text": "answer to a: cat"}


def test_run_when_a_model_setting_changes_answers_runs_again_and_says_why(asks, server):
    execute(asks())
    execute(asks(settings={"extra": {"top_p": 0.5}}))
    assert server.count == 6
    assert server.log[-1].asked.body["top_p"] == 0.5
    execute(asks(settings={"extra": {"top_p": 0.5}, "concurrency": 2}))
    assert server.count == 6


@pytest.mark.parametrize("fault", [MalformedJson(kind="unclosed"), Prose()], ids=repr)
def test_run_when_a_reply_is_malformed_sends_one_repair_that_quotes_the_problem(asks, server, fault):
    server.faults = lambda asked: fault if len(asked.messages) == 1 else None
    request = asks("a cat\n")
    execute(request)
    assert lines_of(request)["a"]["notes"] == [ANSWERED, "asked_again"]
    first, second = server.log
    assert [message.role for message in second.asked.messages] == ["user", "assistant", "user"]
    assert second.asked.messages[0] == first.asked.messages[0]
    assert "JSON" in str(second.asked.messages[2].parts[0])


def test_run_when_the_content_cannot_be_right_sends_one_repair_with_what_the_reader_said(asks, server):
    server.handler = lambda asked: {"text": "wrong"} if len(asked.messages) == 1 else {"text": "a it is"}
    request = asks("a cat\n")
    execute(request)
    assert lines_of(request)["a"]["text"] == "a it is"
    assert "the text must hold a" in str(server.log[1].asked.messages[2].parts[0])


def test_run_when_also_the_repair_is_malformed_fails_with_the_raw_reply_and_is_asked_again_on_request(
    asks: Asks, server: ModelServer
) -> None:
    server.handler = lambda asked: "no JSON at all" if asked.text.startswith("a") else reply_to(asked)
    request = asks(sets=["run.threshold=0"])
    assert failures(execute(request)) == {"a": "malformed"}
    assert server.count == 4
    view = view_of(request, "a")
    assert view.evidence == "no JSON at all"
    assert len(view.calls) == 2
    execute(request)
    assert server.count == 4, "what was paid for is read again, not asked again"
    execute(replace(request, options=Options(workers=0, retry_failed=True)))
    assert server.count == 6, "once more, as that is what was asked for"


def test_run_status_when_replies_were_of_no_use_counts_what_they_were_by_prompt(asks, server):
    text = {"c": "no JSON", "d": {"text": "says nothing of the item"}, "f": '{"text": "' + "f 1 and 2 " * 40}
    faults = {"a": EmptyText(), "b": TruncatedJson(), "e": Refused(), "f": TruncatedJson()}
    server.handler = lambda asked: text.get(asked.text[0]) or reply_to(asked)
    server.faults = lambda asked: faults.get(asked.text[0])
    request = asks("".join(f"{name} cat\n" for name in "abcdefg"), sets=["run.threshold=0"])
    report = execute(request)
    assert report.totals == {"made": 1, "rejected": 0, "failed": 6, "pending": 0}
    said = {  # c and d are asked a second time each
        "empty": 1, "cut off": 1, "endless": 1, "refused": 1, "out of form": 2,
        "in form and without sense": 2,
    }  # fmt: skip
    status = run_status(request.folder, request.pipeline)
    (replies,) = status.replies
    assert (replies.prompt, replies.replies, replies.unusable) == ("toy@1#000000000000", 9, said)
    assert any(line.startswith("toy@1: 8 of 9 replies of http") for line in status.lines())
    server.handler, server.faults = reply_to, None
    execute(replace(request, options=Options(workers=0, retry_failed=True)))
    (replies,) = run_status(request.folder, request.pipeline).replies
    assert (replies.replies, replies.unusable) == (15, said), "what came stays counted"


def test_run_when_json_has_to_be_mended_says_so(asks: Asks, server: ModelServer) -> None:
    server.handler = lambda _: "{'text': 'a single quotes',}"
    request = asks("a cat\n")
    execute(request)
    assert lines_of(request)["a"]["notes"] == [ANSWERED, "json_repaired"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Refused(), "refused"), (TruncatedJson(), "truncated"), (EmptyChoices(), "empty"),
        (TooLong(), "too_long"), (Dropped(), "unavailable"), (ServerError(500), "unavailable"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_run_when_one_item_fails_names_the_failure_and_makes_the_others(asks, server, fault, code):
    server.faults = striking(fault, "b")
    report = execute(asks(settings={"attempts": 1}, sets=["run.threshold=0.5"]))
    assert failures(report) == {"b": code}
    assert report.totals["made"] == 2


def test_run_when_the_key_is_missing_says_which_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a cat\n")
    request = model_request(tmp_path / "run", (tmp_path / "lines.txt", "openai:gpt-4.1-mini"))
    with pytest.raises(MissingRequirement, match="OPENAI_API_KEY"):
        execute(request)


def test_run_when_input_is_longer_than_the_stage_allows_fails_without_sending(asks, server):
    sets = ["answer.max_input_tokens=1000", "run.threshold=0"]
    report = execute(asks(f"a {'cat ' * 30_000}\nb bee\n", sets=sets))
    assert failures(report) == {"a": "too_long"}
    assert server.count == 1


# -- money


@pytest.mark.slow
def test_run_when_the_budget_ends_with_64_calls_in_flight_never_exceeds_it_and_resumes(
    asks, server, tmp_path
):
    server.latency = 0.02
    text = "".join(f"i{n} cat\n" for n in range(400))
    settings = {"concurrency": 64}
    whole = execute(asks(text, folder="calm", settings=settings)).models[0].cost
    server_count = server.count
    limit = whole / 3
    request = asks(text, settings=settings, options=Options(workers=0, max_cost=limit))
    with pytest.raises(BudgetStop, match="max-cost"):
        execute(request)
    (use,) = model_uses(request.folder / JOURNAL)
    assert 0 < use.cost <= limit
    asked = server.count - server_count
    assert use.calls == asked, "every call that was sent is on the books"
    assert use.cost > limit - 0.02, "and the limit was made use of"
    with pytest.raises(BudgetStop):
        execute(request)
    assert server.count - server_count == asked, "the same limit allows nothing more"
    report = execute(replace(request, options=Options(workers=0, max_cost=whole * 2)))
    assert report.totals["made"] == 400
    assert server.count - server_count == 400
    assert report.models[0].cost == pytest.approx(whole)


def test_run_when_the_budget_is_zero_asks_nothing(asks: Asks, server: ModelServer) -> None:
    with pytest.raises(BudgetStop):
        execute(asks(options=Options(workers=0, max_cost=0.0)))
    assert server.count == 0


def test_run_when_the_price_is_unknown_refuses_a_limit_and_counts_the_calls_without(asks, server):
    unknown = {"settings": {"prices": None}}
    with pytest.raises(ConfigError, match="price"):
        execute(asks(options=Options(workers=0, max_cost=1.0), **unknown))
    assert server.count == 0
    (use,) = execute(asks(**unknown)).models
    assert (use.cost, use.unpriced) == (0.0, 3)
    assert "price not known" in use.line()


def test_run_when_a_request_may_have_been_charged_counts_it_at_its_bound(asks, server):
    server.faults = striking(Dropped(), "b", attempts=1)
    report = execute(asks(settings={"attempts": 3}))
    (use,) = report.models
    assert (use.calls, use.attempts, use.uncertain) == (3, 4, 1)
    assert use.uncertain_cost > 0


def test_plan_when_nothing_is_answered_names_calls_and_cost_and_asks_nothing(asks, server):
    request = asks("a cat\nb bee ask:3\nc same\nd same\n", options=Options(workers=0))
    plan = plan_calls(request, without_models(request.config))
    (stage,) = plan.stages
    assert (stage.stage, stage.calls, plan.calls) == ("answer", 3, 3)
    assert plan.cost is not None and stage.highest is not None and 0 < plan.cost < stage.highest
    assert server.count == 0
    assert not request.folder.exists()
    assert "3 calls" in "\n".join(plan.lines())


def test_plan_when_some_are_answered_counts_the_others_and_goes_by_experience(asks, server):
    text = "".join(f"i{n} cat\n" for n in range(10))
    execute(asks(text, options=Options(workers=0, limit=4)))
    request = asks(text)
    plan = plan_calls(request, without_models(request.config))
    (stage,) = plan.stages
    assert stage.calls == 6
    assert stage.calibrated
    before = server.count
    spent = plan.spent
    report = execute(request)
    assert server.count - before == 6
    assert report.models[0].cost - spent == pytest.approx(plan.cost, rel=0.1)


def test_run_when_another_run_is_reused_takes_its_replies_for_nothing(tmp_path, asks, server):
    execute(asks())
    request = asks("a cat\nb bee\nd dog\n", folder=tmp_path / "second")
    options = Options(workers=0, reuse=(tmp_path / "run",), max_cost=1.0)
    (use,) = execute(replace(request, options=options)).models
    assert server.count == 4
    assert (use.calls, use.taken_over, use.attempts) == (1, 2, 1)
    assert use.cost == pytest.approx((use.input_tokens + 10 * use.output_tokens) / 1e6)
    (call,) = view_of(request, "a").calls
    assert json.loads(call["reply"]["text"]) == {"text": "answer to a: cat"}
    execute(request)
    assert server.count == 4


def test_run_when_nothing_was_made_in_what_is_to_be_reused_asks_nobody(tmp_path, asks, server):
    (tmp_path / "silent").mkdir()
    with Journal.open(tmp_path / "silent"):
        pass
    with pytest.raises(RunError, match="silent: nothing was made in this run"):
        execute(asks(options=Options(workers=0, reuse=(tmp_path / "silent",))))
    assert server.count == 0


def test_budget_when_earlier_calls_had_no_price_counts_them_at_the_one_given_since(asks, server):
    text = "".join(f"i{n} cat\n" for n in range(100))
    (use,) = execute(asks(text, settings={"prices": None})).models
    earlier = (use.input_tokens + 10 * use.output_tokens) / 1e6
    with pytest.raises(BudgetStop):  # one more call alone would fit
        execute(asks(f"{text}d dog\n", options=Options(workers=0, max_cost=earlier)))
    assert server.count == 100
    execute(asks(f"{text}d dog\n", options=Options(workers=0, max_cost=earlier + 0.01)))
    assert server.count == 101


# -- items that run ahead of each other through stages in a row


TWICE = ("read_lines", "answer", "rephrase", "count_words")


@pytest.fixture
def twice(tmp_path: Path, server: ModelServer) -> Asks:
    """Make the request for a run with two stages in a row that ask."""

    def make(text: str, folder: str = "run", **given: Any) -> RunRequest:
        source, model = tmp_path / "lines.txt", f"{server.openai_url}#toy"
        source.write_text(text)
        sets = [f"rephrase.model={model}", "run.threshold=0.1"]
        return model_request(
            tmp_path / folder, (source, model), sets=sets, answer_stage="ANSWER REPHRASE", **given
        )

    return make


def kept(request: RunRequest) -> tuple[set[object], bytes, list[object]]:
    """What a run holds: its results, its output and what its report says of stages and items."""
    with Journal.open(request.folder, writable=False) as journal:
        heads = [head for stage in TWICE for head in journal.heads(stage)]
    report = json.loads((request.folder / "report.json").read_text())
    results = {(head.key, head.item, head.status, head.code, *sorted(head.outputs.items())) for head in heads}
    return results, (request.folder / "lines.jsonl").read_bytes(), [report["items"], report["totals"]]


def test_run_when_stages_that_ask_follow_each_other_lets_no_item_wait_for_a_slow_one(twice, server):
    asked: list[str] = []

    async def answer(question: Asked) -> dict[str, Any]:
        asked.append(question.text[:7])
        if question.text.startswith("a: "):
            async with asyncio.timeout(60):
                while "b again" not in asked:
                    await asyncio.sleep(0.01)
        return reply_to(question)

    server.handler = answer
    report = execute(twice("a cat\nb bee\n"))
    assert asked.index("b again") < asked.index("a again") == 3
    assert [stage.ran for stage in report.stages] == [2, 2, 2, 2]


def test_run_when_items_run_ahead_holds_what_one_stage_by_stage_holds(
    twice: Asks, server: ModelServer
) -> None:
    # b is refused by the first stage and so never gets to the second; d fails in the second.
    server.faults = lambda asked: Refused() if asked.text.startswith(("b: ", "d again")) else None
    text = "a cat\nb bee\nc cow\nd dog\ne eel\n"
    report = execute(twice(text))
    assert server.count == 5 + 4
    for stage in TWICE:
        options = Options(workers=0, stages=TWICE[: TWICE.index(stage) + 1])
        execute(twice(text, folder="steps", options=options))
    assert server.count == 2 * (5 + 4)
    execute(steps := twice(text, folder="steps"))
    assert kept(steps) == kept(twice(text))
    assert [(stage.made, stage.failed, stage.ran) for stage in report.stages] == [
        (5, 0, 5), (4, 1, 5), (3, 1, 4), (3, 0, 3)
    ]  # fmt: skip
    assert [stage.ran for stage in execute(twice(text)).stages] == [0, 0, 0, 0]
    others = Options(workers=0, reuse=(steps.folder,))
    taken = execute(third := twice(text, folder="third", options=others))
    assert kept(third) == kept(steps)
    assert [(stage.reused, stage.ran) for stage in taken.stages[1:3]] == [(4, 1), (3, 1)]
    assert server.count == 2 * (5 + 4), "also the replies of those that failed are taken over"


def test_run_when_answers_are_slow_tells_how_many_are_under_way(twice, server, monkeypatch):
    monkeypatch.setattr(runner, "STILL", 0.0)
    listener = Listener()
    waiting = {"done": 0, "total": 2, "under_way": 2}

    def progress(stage: str) -> list[dict[str, Any]]:
        told = [event for event in listener.events if (event.kind, event.stage) == ("progress", stage)]
        return [dict(event.data) for event in told]

    async def answer(question: Asked) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while not any(data.items() >= waiting.items() for data in progress("answer")):
                await asyncio.sleep(0.01)
        return reply_to(question)

    server.handler = answer
    execute(twice("a cat\nb bee\n"), listener)
    (first, *_) = (data for data in progress("answer") if data.items() >= waiting.items())
    assert first.keys() - waiting.keys() == {"longest"} and 0 <= first["longest"] < 60
    last = progress("rephrase")[-1]
    assert (last["done"], last["total"], "under_way" in last) == (2, 2, False)


class AnyRun(RuleBasedStateMachine):
    """A run that is begun, killed, retried, extended, edited and moved; beside it, what it must have on file.

    A kill is a copy of the folder as it lies there at a moment, from which the run is gone on with.
    """

    MAY_FAIL = ("stubborn", "gone", "late")
    server: ModelServer

    def __init__(self) -> None:
        super().__init__()
        self.home = TemporaryDirectory()
        self.folder = Path(self.home.name) / "run"
        self.lines = {"a": "gone", "b": "stubborn", "c": "elk ask:2", "d": "same", "e": "same"}
        self.stage, self.sample, self.is_mended, self.was_killed = "ANSWER", 0, False, False
        self.asked: list[str] = []  # in the last start
        self.tries: dict[str, list[bool]] = {}  # question -> whether each reply on file can be used
        self.doubted: set[str] = set()  # questions of which a kill may have lost the last reply
        self.done: set[tuple[Any, ...]] = set()  # items that were answered, and those that were finished
        self.numbers: dict[str, Any] = {}  # what a stage decided that remembers
        self.server.handler, self.server.faults = self.reply, self.fault

    def teardown(self) -> None:
        """Finish: what is there is what an undisturbed run makes, and is written again when damaged."""
        with self.home:
            self.is_mended = True
            left = [self.start(retry_failed=True) for _ in "12"][-1]  # the first may end one that was killed
            fresh = execute(self.request(Path(self.home.name) / "fresh"))
            assert (left.totals, left.items) == (fresh.totals, fresh.items)
            assert self.written(self.folder) == self.written(Path(self.home.name) / "fresh")
            on_books = sum(use.calls + use.uncertain for use in model_uses(self.folder / JOURNAL))
            assert on_books >= sum(map(len, self.tries.values()))
            path = self.folder / "lines.jsonl"
            good, written_at = path.read_bytes(), path.stat().st_mtime_ns
            for damage in (None, lambda: path.write_bytes(good[1:]), path.unlink):
                _ = damage and damage()
                assert not any(stage.ran for stage in self.start().stages) and not self.asked
                assert path.read_bytes() == good and (damage or path.stat().st_mtime_ns == written_at)

    def written(self, folder: Path) -> list[Any]:
        """What a run wrote, but for how often somebody had it try again, which both files say."""
        manifest = json.loads((folder / "run.json").read_bytes())
        manifest["run"].pop("attempts", None)
        return [manifest, re.sub(r',"attempt_\d+"', "", (folder / "lines.jsonl").read_text())]

    def is_gone(self, question: str) -> bool:
        return not self.is_mended and ("gone" in question or ("late" in question and " again: " in question))

    def is_usable(self, question: str) -> bool:
        return self.is_mended or "stubborn" not in question

    def fault(self, asked: Asked) -> Fault | None:
        self.asked.append(self.named(asked.text))
        return ServerError(503) if self.is_gone(asked.text) else None

    def reply(self, asked: Asked) -> Any:
        self.emit()
        return reply_to(asked) if self.is_usable(asked.text) else "no JSON"

    def emit(self, _event: Any = None) -> None:
        """Let a moment pass, at which the run may be killed: this object is its reporter, too."""
        if next(self.moments) == self.kill_at:
            self.dead_at = len(self.asked)
            with suppress(shutil.Error):  # a temporary file that has got its name
                shutil.copytree(self.folder, self.folder.with_name("left"))

    def close(self) -> None: ...

    def request(self, folder: Path, **options: Any) -> RunRequest:
        source, model = folder.parent / "lines.txt", f"{self.server.openai_url}#toy"
        source.write_text("".join(f"{name} {words}\n" for name, words in self.lines.items()))
        return model_request(
            folder, (source, model), Options(workers=0, **options),
            answer_stage=f"{self.stage} REPHRASE NUMBER", settings={"concurrency": 1, "attempts": 1},
            sets=("run.threshold=0", "answer.repair=false", f"answer.sample={self.sample}",
                  f"rephrase.model={model}"),
        )  # fmt: skip

    def named(self, text: str) -> str:
        return text if " again: " in text else f"{text} #{self.sample}"

    def questions(self, name: str) -> list[str]:
        """What is asked about an item: a question after the other, as long as the replies can be used."""
        text = f"{name}: {self.lines[name]}"
        first = ["all: same"] if "same" in text else [text, f"{text} (2)"] if "ask:2" in text else [text]
        again = f"{name} again: " + "; ".join(f"answer to {question}" for question in first)
        return [self.named(question) for question in (*first, again)]

    def start(self, kill_at: int = 0, **options: Any) -> RunReport:
        """Run, and compare what was asked and made with what was on file."""
        chosen = list(self.lines)[: options.get("limit")]
        self.asked, self.moments, self.kill_at = [], iter(range(1, 10**6)), kill_at
        before, is_retry = deepcopy(self.tries), options.get("retry_failed", False)
        report = execute(self.request(self.folder, **options), self)
        self.keep(self.asked)
        attempts, codes = read_manifest(self.folder).run.attempts, failures(report)
        again = [name for name in chosen if self.lines[name] in self.MAY_FAIL]
        for name in chosen:
            expected = self.check(name, attempts if is_retry else 0)
            assert codes.get(name) == expected or (not expected and not is_retry and name in again)
        for question, times in Counter(self.asked).items():
            had = [] if question in self.doubted else before.get(question, [])
            assert times <= (1 if self.is_gone(question) else attempts - len(had)) and not any(had)
        answered = {(self.stage, self.sample, name, self.lines[name]) for name in chosen} - self.done
        unfinished = {(name, self.lines[name]) for name in chosen} - self.done
        ran = {stage.name: stage.ran for stage in report.stages}
        if not is_retry and not self.was_killed:
            again = [name for name in again if self.lines[name] == "gone"]
        assert self.was_killed or len(answered) <= ran["answer"]
        assert ran["answer"] <= len(answered) + len(again) and ran["rephrase"] <= len(unfinished)
        old, self.numbers = self.numbers, decisions(self.folder, "number")
        assert {**self.numbers, **old} == self.numbers
        assert sorted(made["number"] for made in self.numbers.values()) == [*range(len(self.numbers))]
        self.done |= answered | {item for item in unfinished if item[0] not in codes}
        return report

    def keep(self, questions: Iterable[str]) -> None:
        """Note that questions were asked and the replies are on file."""
        for question in questions:
            if not self.is_gone(question):
                self.tries.setdefault(question, []).append(self.is_usable(question))

    def check(self, name: str, attempts: int) -> str | None:
        """Return how an item must have failed; see that all that it needs is on file."""
        for question in self.questions(name):
            tries = self.tries.get(question, [])
            if not tries:
                assert self.is_gone(question) and question in self.asked
                return "unavailable"
            if not any(tries):
                assert not attempts or len(tries) == attempts or question in self.doubted
                return "malformed"
            if not all(tries) and not attempts:
                return None  # the item may still be as it failed: nobody had it made again
        return None

    @rule(limit=st.sampled_from([None, None, 1, 2]), retry=st.booleans(), kill_at=st.integers(-30, 40))
    def run(self, limit: int | None, retry: bool, kill_at: int) -> None:
        was = deepcopy((self.tries, self.doubted, self.done, self.numbers))
        self.start(kill_at, limit=limit, retry_failed=retry)
        if (left := self.folder.with_name("left")).exists():
            shutil.rmtree(self.folder)
            left.rename(self.folder)
            self.was_killed = True
            self.tries, self.doubted, self.done, self.numbers = was
            self.keep(self.asked[: self.dead_at])
            self.doubted |= set(self.asked[: self.dead_at][-1:])

    @rule(name=st.sampled_from("abcde"), words=st.sampled_from(["", "cat", "elk ask:2", "same", *MAY_FAIL]))
    def extend_or_edit(self, name: str, words: str) -> None:
        self.lines = {key: old for key, old in {**self.lines, name: words}.items() if old} or self.lines

    @rule(stage=st.sampled_from(["ANSWER", "ANSWER_V2"]), sample=st.integers(0, 1), mend=st.booleans())
    def read_otherwise(self, stage: str, sample: int, mend: bool) -> None:
        self.stage, self.sample, self.is_mended = stage, sample, self.is_mended or mend

    @rule()
    def move(self) -> None:
        if self.folder.exists():
            self.folder = self.folder.rename(self.folder.with_name(f"{self.folder.name}_"))


@pytest.mark.slow
def test_run_when_anything_is_done_to_it_ends_as_if_undisturbed_and_pays_once(server: ModelServer) -> None:
    machine = type("AnyRunHere", (AnyRun,), {"server": server})
    chosen = settings(max_examples=25, stateful_step_count=15, derandomize=True, database=None, deadline=None)
    run_state_machine_as_test(machine, settings=chosen)

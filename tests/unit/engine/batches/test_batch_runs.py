"""Runs whose questions go out in batches: files as if asked one by one, half the price, nothing in two."""

import math
import signal
import threading
from collections import Counter
from typing import Any

import pytest

from fabula.builders.drafting import without_models
from fabula.engine.batches.books import Batching
from fabula.engine.calls import answered, model_uses
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.errors import BudgetStop, MissingRequirement, ModelUnavailable
from fabula.testing.endurance import rounds
from fabula.testing.model_server import (
    Asked,
    ContentFilter,
    Dropped,
    EmptyText,
    Fate,
    Fault,
    Fenced,
    HtmlPage,
    MalformedJson,
    Misreported,
    NoQuota,
    RateLimited,
    Refused,
    SafetyBlock,
    ServerError,
    TooLong,
    TruncatedBody,
    TruncatedJson,
    Unauthorized,
)
from fabula.testing.toy_models import model_request, reply_to
from fabula.tests.unit.engine.conftest import Listener

pytestmark = pytest.mark.slow


def at(step: str, fault: Fault, times: int = 1, after: int = 0) -> Any:
    """Strike requests about batches: after some of a step, so many."""
    seen = [0]

    def struck(asked: Asked) -> Fault | None:
        if asked.protocol != "batches" or asked.step != step:
            return None
        seen[0] += 1
        return fault if after < seen[0] <= after + times else None

    return struck


def cost(scene: Any, name: str) -> float:
    return math.fsum(use.cost for use in model_uses(scene.folder / name / JOURNAL))


def test_run_when_in_batches_has_the_same_files_for_half_the_price(stage: Any, provider: str) -> None:
    scene = stage(provider)
    report = scene.run()
    assert report.totals["made"] == 9
    assert [batch.requests for batch in scene.batches()] == [9, 6, 3]
    assert set(scene.answered().values()) == {1} and scene.answered().total() == 18
    assert scene.check_books() == {"requests": 18, "answered": 18, "failed": 0, "open": 0}
    asked = scene.steps()
    scene.singly()
    assert scene.steps() == asked
    assert scene.lines() == scene.lines("single")
    assert cost(scene, "run") == pytest.approx(cost(scene, "single") / 2, rel=1e-12)
    assert scene.server.rejected == ()


def test_run_when_given_again_asks_nothing(stage: Any, provider: str) -> None:
    scene = stage(provider)
    scene.run()
    before = scene.server.count
    scene.run()
    scene.singly("run")
    assert scene.server.count == before


def test_wave_when_larger_than_a_batch_may_be_is_cut(stage: Any, provider: str) -> None:
    scene = stage(provider)
    scene.run(settings={"batch_requests": 4})
    sizes = [batch.requests for batch in scene.batches()]
    assert sorted(sizes) == sorted(len(made.lines) for made in scene.server.batches)
    assert sizes[:2] == [4, 4] and sum(sizes) == 18 and max(sizes) == 4
    scene.run("small", settings={"batch_megabytes": 0.002})
    sizes = [batch.requests for batch in scene.batches("small")]
    assert sum(sizes) == 18 and max(sizes) < 6


def test_request_when_larger_than_a_batch_may_be_fails_alone(stage: Any) -> None:
    scene = stage("openai")
    report = scene.run(text="a cat\nb " + "long " * 300 + "\n", settings={"batch_megabytes": 0.001})
    assert report.totals == {"made": 1, "rejected": 0, "failed": 1, "pending": 0}
    assert report.items[0].code == "too_long"


# -- what goes wrong while a batch is made

LOST = {
    "connection": Dropped(), "half an answer": TruncatedBody(), "made but 500": Misreported(500),
    "made but 504": Misreported(504), "a page": HtmlPage(502),
}  # fmt: skip


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
def test_creation_when_its_answer_is_lost_is_found_and_not_repeated(stage, provider, fault):
    scene = stage(provider, faults=at("make", fault))
    assert scene.run().totals["made"] == 9
    assert set(scene.in_batches().values()) == {1}
    assert scene.steps()["make"] == 3 and scene.steps()["list"] >= 1
    scene.server.faults = None
    scene.singly()
    assert scene.lines() == scene.lines("single")


@pytest.mark.parametrize("fault", [ServerError(500), ServerError(503), ServerError(529)], ids=repr)
def test_creation_when_the_service_failed_is_looked_for_before_it_is_repeated(stage, provider, fault):
    scene = stage(provider, faults=at("make", fault, times=2))
    assert scene.run().totals["made"] == 9
    assert set(scene.in_batches().values()) == {1}
    steps = [entry.asked.step for entry in scene.server.log if entry.asked.protocol == "batches"]
    making = [step for step in steps if step in ("make", "list")]
    assert making[: 1 + 4 + 1 + 4 + 1] == ["make", *["list"] * 4, "make", *["list"] * 4, "make"]


STOPPING: dict[str, tuple[tuple[tuple[str, Fault, int], ...], str, str]] = {
    "making: no key": ((("make", Unauthorized(), 100),), "unsent", "refuses the key"),
    "making: no credit": ((("make", NoQuota(), 100),), "unsent", "no credit or quota"),
    "looking: no key": ((("look", Unauthorized(), 100),), "open", "refuses the key"),
    "lost, and not listed": (
        (("make", Dropped(), 1), ("list", Unauthorized(), 100)), "creating", "refuses the key",
    ),
}  # fmt: skip
"""Case -> which requests meet which fault how often, how the batch stands, and what is said."""


@pytest.mark.parametrize("case", STOPPING)
def test_batch_when_the_service_refuses_stops_with_a_plain_error_and_is_gone_on_with(stage, provider, case):
    faults, state, words = STOPPING[case]
    strikes = [at(step, fault, times=times) for step, fault, times in faults]
    scene = stage(provider, faults=lambda asked: next(filter(None, (hit(asked) for hit in strikes)), None))
    error = scene.failure()
    assert isinstance(error, ModelUnavailable) and words in str(error)
    assert [batch.state for batch in scene.batches()] == [state]
    if state == "unsent":
        assert scene.steps()["make"] == 1 and scene.server.batches == ()
    scene.server.faults = None
    assert scene.run().totals["made"] == 9
    assert set(scene.in_batches().values()) == {1}


@pytest.mark.parametrize("fault", [Dropped(), ServerError(500), RateLimited()], ids=repr)
def test_upload_when_it_fails_is_repeated(stage: Any, fault: Fault) -> None:
    for provider in ("openai", "google"):
        scene = stage(provider, faults=at("upload", fault, times=2))
        name = f"run-{provider}"
        assert scene.run(name).totals["made"] == 9
        assert set(scene.in_batches().values()) == {1}


# -- what goes wrong while a batch is under way


PARTIAL = {
    "expired": Fate(end="expired", done=0.5),
    "nothing done": Fate(end="expired", done=0.0),
    "cancelled by somebody": Fate(end="cancelled", done=0.5),
    "partial": Fate(end="completed", done=0.5, partial_word=True),
}


@pytest.mark.parametrize("fate", PARTIAL.values(), ids=PARTIAL)
def test_batch_when_a_part_is_answered_keeps_it_and_sends_the_rest_again(stage, provider, fate):
    if fate.partial_word and provider != "google":
        fate = PARTIAL["expired"]
    scene = stage(provider, fates=[fate])
    assert scene.run().totals["made"] == 9
    assert set(scene.answered().values()) == {1}, "what was answered is not asked again"
    first = scene.batches()[0]
    assert first.answered == round(9 * fate.done) and first.failed == 9 - first.answered
    scene.check_books()
    scene.singly()
    assert scene.lines() == scene.lines("single")


def test_batch_when_it_keeps_silent_about_requests_books_them_and_sends_them_again(stage, provider):
    scene = stage(provider, fates=[Fate(end="completed", done=0.5)])
    assert scene.run().totals["made"] == 9
    lost = 9 - round(9 * 0.5)
    assert sum(use.uncertain for use in model_uses(scene.folder / "run" / JOURNAL)) == lost
    assert scene.check_books()["failed"] == lost


def test_batch_when_it_expires_again_and_again_fails_the_items_and_asks_them_next_time(stage, provider):
    scene = stage(provider, fates=Fate(end="expired", done=0.0))
    assert scene.run().totals["failed"] == 9
    assert len(scene.batches()) == 3 and scene.answered().total() == 0
    scene.server.fates = None
    assert scene.run().totals["made"] == 9


def test_batch_when_it_failed_as_a_whole_stops_with_what_the_service_says(stage: Any) -> None:
    problem = ("token_limit_exceeded", "Enqueued token limit reached for this model")
    for provider in ("openai", "google"):
        scene = stage(provider, fates=Fate(end="failed", problem=problem))
        error = scene.failure(f"run-{provider}")
        assert isinstance(error, ModelUnavailable) and "Enqueued token limit" in str(error)
        assert cost(scene, f"run-{provider}") == 0
        assert not sum(use.uncertain for use in model_uses(scene.folder / f"run-{provider}" / JOURNAL))
        scene.server.fates = None
        assert scene.run(f"run-{provider}").totals["made"] == 9


def test_state_when_it_stays_unknown_stops_and_leaves_the_batch(stage: Any, provider: str) -> None:
    scene = stage(provider, fates=Fate(word="BATCH_STATE_PONDERING"))
    error = scene.failure()
    assert isinstance(error, ModelUnavailable) and "PONDERING" in str(error)
    assert [batch.state for batch in scene.batches()] == ["open"] and scene.steps()["look"] < 20
    for made in scene.server.batches:
        made.fate = Fate()
    scene.server.fates = None
    assert scene.run().totals["made"] == 9
    assert set(scene.in_batches().values()) == {1}


def test_batch_when_the_service_has_forgotten_it_is_booked_and_asked_again(stage: Any, provider: str) -> None:
    scene = stage(provider, fates=[Fate(forgotten=True)])
    error = scene.failure()
    assert isinstance(error, ModelUnavailable) and "no longer knows" in str(error)
    assert scene.batches()[0].state == "gone"
    assert sum(use.uncertain for use in model_uses(scene.folder / "run" / JOURNAL)) == 9
    assert scene.run().totals["made"] == 9


@pytest.mark.parametrize("torn", [1, 3])
def test_results_when_torn_are_fetched_again(stage: Any, provider: str, torn: int) -> None:
    scene = stage(provider, fates=Fate(torn=torn))
    assert scene.run().totals["made"] == 9
    assert set(scene.answered().values()) == {1}
    assert not sum(use.uncertain for use in model_uses(scene.folder / "run" / JOURNAL))


# -- what goes wrong with single requests

CONTENT: dict[str, Any] = {
    "refused": Refused(), "blocked": SafetyBlock(), "filtered": ContentFilter(), "empty": EmptyText(),
    "cut off": TruncatedJson(), "fenced": Fenced(), "broken": MalformedJson("wrong_type"),
    "says what cannot be": {"text": "???"}, "too long": TooLong(),
}  # fmt: skip


@pytest.mark.parametrize("fault", CONTENT.values(), ids=CONTENT)
def test_request_when_its_answer_is_of_no_use_ends_as_a_single_call_does(stage, provider, fault):
    def handler(asked: Asked) -> Any:
        return fault if "i4" in asked.text and len(asked.messages) == 1 else reply_to(asked)

    scene = stage(provider, handler)
    batched, single = scene.run(), scene.singly()
    assert (batched.totals, batched.items) == (single.totals, single.items)
    assert scene.lines() == scene.lines("single")


def test_request_when_it_met_a_fault_that_passes_is_sent_again(stage: Any, provider: str) -> None:
    struck: set[str] = set()

    def once(asked: Asked) -> Fault | None:
        if asked.protocol == "batches" or "i4" not in asked.text or asked.key in struck:
            return None
        struck.add(asked.key)
        return ServerError(500)

    scene = stage(provider, faults=once)
    assert scene.run().totals["made"] == 9
    assert set(scene.answered().values()) == {1}
    assert scene.check_books()["failed"] == 2


def test_retry_when_batched_asks_once_more_what_got_no_usable_answer(stage: Any, provider: str) -> None:
    spoilt = {"i4"}

    def handler(asked: Asked) -> Any:
        return Refused() if any(name in asked.text for name in spoilt) else reply_to(asked)

    scene = stage(provider, handler)
    assert scene.run().totals["failed"] == 1
    spoilt.clear()
    before = scene.answered().total()
    assert scene.run(retry_failed=True).totals["made"] == 9
    assert scene.answered().total() == before + 2


# -- money


def test_budget_when_too_small_for_one_request_stops_before_anything_is_sent(stage: Any) -> None:
    scene = stage("openai")
    assert isinstance(scene.failure(max_cost=0.0001), BudgetStop)
    assert scene.server.count == 0 and scene.batches() == ()


def test_budget_when_too_small_for_a_wave_sends_what_fits_and_holds(stage: Any) -> None:
    scene = stage("openai")
    limit = 0.0045
    report = scene.run(max_cost=limit)
    assert report.totals["made"] == 9 and len(scene.batches()) > 3
    assert cost(scene, "run") <= limit
    assert set(scene.in_batches().values()) == {1}


def test_budget_when_a_batch_is_open_keeps_its_bound_aside(stage: Any) -> None:
    scene = stage("openai", faults=at("look", Unauthorized(), times=100))
    limit = 0.0072
    scene.failure(max_cost=limit)
    (batch,) = scene.batches()
    assert batch.bound is not None and batch.bound > limit / 2
    scene.server.faults = at("look", Unauthorized(), times=100)
    assert isinstance(scene.failure(max_cost=limit, text="z another one\n" + "i0 word ask:1\n"), Exception)
    assert len(scene.server.batches) <= 2


# -- which runs


def test_batch_when_no_model_takes_batches_warns_and_asks_one_by_one(stage: Any) -> None:
    scene, listener = stage("openai"), Listener()
    request = scene.request()
    source = (scene.folder / "lines.txt", f"{scene.server.openai_url}#toy")
    report = execute(model_request(scene.folder / "local", source, request.options), listener)
    assert report.totals["made"] == 9 and scene.server.batches == ()
    said = [event.data.get("message", "") for event in listener.events]
    assert any("no model of this run takes batches" in message for message in said)


def test_replay_when_a_batch_is_open_asks_nobody(stage: Any) -> None:
    scene = stage("openai", faults=at("look", Unauthorized(), times=100))
    scene.failure()
    scene.server.faults = None
    request, before = scene.request(), scene.server.count
    plan_calls(request, without_models(request.config))
    assert scene.server.count == before


def test_key_when_missing_is_named_before_anything_is_written_down(stage, provider, monkeypatch):
    scene = stage(provider)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name)
    assert isinstance(scene.failure(), MissingRequirement)


def test_run_when_continued_without_batches_waits_for_those_that_are_open(stage: Any, provider: str) -> None:
    scene = stage(provider, faults=at("look", Unauthorized(), times=100))
    scene.failure()
    scene.server.faults = None
    patient = Batching(first_look=0.001, longest_look=0.004)
    assert scene.run(batching=patient).totals["made"] == 9
    assert set(scene.answered().values()) == {1}
    assert [batch.requests for batch in scene.batches()] == [9], "the other nine went out one by one"


# -- A process killed at any point of a batch's life: no request in two batches, the bytes of single calls

PROGRAM = """
import os, sys
from pathlib import Path
from fabula.engine.batches.books import Batching
from fabula.engine.execute import Options, execute
from fabula.engine import journal as module
from fabula.errors import FabulaError
from fabula.testing.toy_models import model_request
folder, source, model, address, kill_at = sys.argv[1:6]
commits, plain = [0], module.Journal._note_committed
def commit(self, statements):
    commits[0] += 1
    plain(self, statements)
    if commits[0] >= int(kill_at) > 0:
        os.kill(os.getpid(), 9)
module.Journal._note_committed = commit
batching = Batching(on=True, first_look=0.001, longest_look=0.004)
options = Options(workers=0, batching=batching)
settings = {"base_url": address, "batch_requests": 5}
request = model_request(Path(folder), (Path(source), model), options, settings=settings)
try:
    execute(request)
except FabulaError as error:
    print(error, file=sys.stderr)
    raise SystemExit(int(error.exit_code))
"""
POINTS = 200
PROVIDERS = ("openai", "google", "anthropic")
LINES = "".join(f"i{number} word ask:{1 + number % 2}\n" for number in range(8))
"""Eight items, four of them with a second question: 12 questions in two waves, at most five in a batch."""


SMALL = {"text": LINES, "settings": {"batch_requests": 5}}


class Killer:
    """Kills the command when it has made so many requests, before the last of them is answered."""

    def __init__(self) -> None:
        self.at, self.requests, self.lock = 0, 0, threading.Lock()
        self.child: Any = None

    def __call__(self, asked: Asked) -> None:
        if asked.protocol != "batches":
            return
        with self.lock:
            self.requests += 1
            if self.requests == self.at:
                self.child.send_signal(signal.SIGKILL)
                self.child.wait()

    def killed(self, scene: Any, starter: Any, *, commit: int = 0, request: int = 0) -> int:
        """Execute in a process of its own, killed at a commit or at a request; return its exit code."""
        folder = scene.request(text=LINES).folder
        given = (folder, scene.folder / "lines.txt", f"{scene.provider}:toy", scene.address, commit)
        with self.lock:
            self.requests, self.at = 0, request
            self.child = starter.start(given, code=PROGRAM)
        return int(self.child.wait())


def finish(scene: Any) -> None:
    """Go on here to the end: no request is in two batches, and the files are those of single calls."""
    assert scene.run(**SMALL).totals["made"] == 8
    assert set(scene.in_batches().values()) == {1}, "a request was in two batches"
    paid = Counter(entry.asked.key for entry in scene.server.log if entry.asked.protocol != "batches")
    assert (set(paid.values()), paid.total()) == ({1}, 12), "each question was answered once"
    assert len(list(answered(scene.folder / "run" / JOURNAL))) == 12
    for batch in scene.batches():
        assert batch.state in ("done", "unsent") and batch.open == 0, batch
    scene.singly(**SMALL)
    assert scene.lines() == scene.lines("single")


def spread(number: int, most: int) -> int:
    """Return one of so many points, so that a tenth of the rounds goes through all of them evenly."""
    return 1 + (number * 7) % most


@pytest.mark.endurance
@pytest.mark.waits
@pytest.mark.parametrize("point", range(rounds(POINTS)))
def test_run_when_killed_at_any_commit_or_request_sends_nothing_twice_and_has_the_same_bytes(
    stage, starter, point
):
    scene, nth = stage(PROVIDERS[point % 3], faults=(killer := Killer()), fates=Fate(looks=1)), point // 6
    at_request = point // 3 % 2 == 1
    moment = {"request": spread(nth, 25)} if at_request else {"commit": spread(nth, 50)}
    assert killer.killed(scene, starter, **moment) in (0, -signal.SIGKILL)
    killer.at = 0
    finish(scene)
    assert scene.server.rejected == ()


@pytest.mark.waits
def test_run_when_killed_again_and_again_comes_to_its_end(stage: Any, starter: Any) -> None:
    scene = stage("openai", faults=(killer := Killer()), fates=Fate(looks=1))
    ends = [killer.killed(scene, starter, commit=commit) for commit in (12, 4, 5, 6, 8)]
    assert set(ends) == {-signal.SIGKILL}
    finish(scene)

"""Deadlines, stopping, cancelling and looking: who may stop a batch, and what everybody is told of it."""

import asyncio
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.drafting import without_models
from fabula.engine import lock
from fabula.engine.asker import Desk
from fabula.engine.batches.books import Batching, Lane
from fabula.engine.batches.cancel import cancel_batches
from fabula.engine.batches.carrier import LARGE
from fabula.engine.budget import Budget
from fabula.engine.calls import Calls, model_uses
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal
from fabula.engine.status import run_status
from fabula.errors import BudgetStop, FabulaError, Interrupted
from fabula.models.chat import ChatRequest, Image, Message
from fabula.models.keys import Redactor
from fabula.models.options import options_for
from fabula.models.registry import open_batches
from fabula.models.spec import parse_spec
from fabula.testing.model_server import (
    Asked,
    BadRequestFault,
    Dropped,
    EchoSecrets,
    Fate,
    Fault,
    ModelServer,
    ServerError,
    Unauthorized,
)
from fabula.testing.toy_models import toy_models

KEY = "planted-key-0123456789abcdef0123456789"
QUICK = Batching(first_look=0.001, longest_look=0.004)


class Hours:
    """A clock on the wall that goes on by so many hours with each look at a batch."""

    def __init__(self, per_look: float) -> None:
        self.per_look, self.seconds = per_look, 1_700_000_000.0

    def __call__(self) -> float:
        self.seconds += self.per_look * 3600.0
        return self.seconds


def until(step: str, fault: Fault) -> Any:
    return lambda asked: fault if asked.protocol == "batches" and asked.step == step else None


# -- deadlines


def test_deadline_when_past_cancels_keeps_late_replies_and_sends_the_rest_in_a_batch(stage, provider):
    fate = Fate(looks=1000, done=0.5, slow_cancel=3)
    scene = stage(provider, fates=[fate], batching={"deadline": 6.0, "now": Hours(1.0)})
    assert scene.run().totals["made"] == 9
    first, second, *_ = scene.batches()
    assert first.stop and first.answered == round(9 * 0.5), "answered while it was being cancelled"
    assert second.requests >= 9 - first.answered, "the rest, and what follows from what is answered"
    assert set(scene.answered().values()) == {1} and scene.steps()["cancel"] == 1
    scene.singly()
    assert scene.lines() == scene.lines("single")


def test_deadline_when_past_and_singly_is_allowed_asks_the_rest_one_by_one(stage: Any, provider: str) -> None:
    settings = {"deadline": 6.0, "then_single": True, "now": Hours(1.0)}
    scene = stage(provider, fates=Fate(looks=1000, done=0.5), batching=settings)
    assert scene.run().totals["made"] == 9
    assert set(scene.answered().values()) == {1}
    assert set(scene.in_batches().values()) == {1}, "nothing was in a second batch"
    in_batches = sum(batch.answered for batch in scene.batches())
    assert 0 < in_batches < 18
    scene.singly()
    assert scene.lines() == scene.lines("single")


def test_deadline_when_past_and_single_calls_do_not_fit_the_limit_stops(stage: Any) -> None:
    settings = {"deadline": 6.0, "then_single": True, "now": Hours(1.0)}
    scene = stage("openai", fates=Fate(looks=1000, done=0.0), batching=settings)
    # Nine requests fit in a batch at half the price; a tenth of a cent more does not pay for single ones.
    error = scene.failure(max_cost=0.0013, text="i0 word\n")
    assert isinstance(error, BudgetStop) and scene.answered().total() == 0


# -- stopping


def interrupted(scene: Any, monkeypatch: pytest.MonkeyPatch, when: str, **given: Any) -> FabulaError:
    """Execute, and ask it to stop when a step was done with a batch; return how it ended."""
    stop = threading.Event()

    def watch() -> None:
        while not any(e.asked.step == when for e in scene.server.log if e.asked.protocol == "batches"):
            if not scene.server.wait_for(scene.server.count + 1):
                break
        stop.set()

    monkeypatch.setattr(lock.Stopper, "__call__", lambda self: stop.is_set())
    threading.Thread(target=watch, daemon=True).start()
    with pytest.raises(FabulaError) as raised:
        execute(scene.request(**given))
    monkeypatch.undo()
    return raised.value


@pytest.mark.parametrize("when", ["make", "look"])
def test_stop_when_batches_run_says_which_and_what_they_may_cost(stage, provider, monkeypatch, when):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    scene = stage(provider, fates=Fate(looks=100_000))
    with monkeypatch.context() as patch:
        error = interrupted(scene, patch, when)
    assert isinstance(error, Interrupted)
    (batch,) = [made for made in scene.server.batches]
    text = str(error)
    assert f"{batch.id} at {provider}: 9 requests of answer" in text and "1 batch keeps running" in text
    assert "which cost up to 0." in text and f"fabula run cancel {scene.folder / 'run'}" in text
    for made in scene.server.batches:
        made.looks = 0
    scene.server.fates = None
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    assert scene.run().totals["made"] == 9
    assert set(scene.in_batches().values()) == {1}


def test_stop_when_nobody_knows_yet_whether_a_batch_was_made_does_not_wait_for_it(stage, monkeypatch):
    scene = stage("anthropic", fates=Fate(looks=100_000), faults=until("make", Dropped()))
    with monkeypatch.context() as patch:
        error = interrupted(scene, patch, "list")
    assert isinstance(error, Interrupted) and "1 batch keeps running" in str(error)
    assert [batch.state for batch in scene.batches()] == ["creating"]
    for made in scene.server.batches:
        made.looks = 0
    scene.server.faults = scene.server.fates = None
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert scene.run().totals["made"] == 9
    assert set(scene.in_batches().values()) == {1}


# -- cancelling


def test_cancel_when_a_batch_runs_stops_it_and_books_what_is_done(stage: Any, provider: str) -> None:
    scene = stage(provider, faults=until("look", Unauthorized()), fates=Fate(looks=1000, done=0.5))
    scene.failure()
    scene.server.faults = None
    result = cancel_batches(scene.folder / "run", QUICK)
    (batch,) = result.batches
    assert (batch.state, batch.answered, batch.failed, batch.open) == ("done", 4, 5, 0)
    assert result.left == 0 and scene.steps()["cancel"] == 1
    assert sum(use.calls for use in model_uses(scene.folder / "run" / JOURNAL)) == 4
    assert cancel_batches(scene.folder / "run", QUICK).batches == ()
    scene.server.fates = None
    assert scene.run().totals["made"] == 9
    assert set(scene.answered().values()) == {1}, "what it had answered is used"


def test_cancel_when_the_id_was_lost_finds_the_batch(stage: Any, provider: str) -> None:
    lost, unlisted = until("make", Dropped()), until("list", Unauthorized())
    scene = stage(provider, faults=lambda asked: lost(asked) or unlisted(asked))
    scene.failure()
    scene.server.faults = None
    result = cancel_batches(scene.folder / "run", QUICK)
    (batch,) = result.batches
    assert batch.state == "done" and batch.remote == scene.server.batches[0].id


@pytest.mark.parametrize("status", [400, 409])
def test_cancel_when_the_service_says_that_a_batch_is_over_reads_its_results(stage, provider, status):
    scene = stage(provider, faults=until("look", Unauthorized()))
    scene.failure()
    scene.server.faults = until("cancel", BadRequestFault("it is over", status))
    (batch,) = cancel_batches(scene.folder / "run", QUICK).batches
    assert (batch.state, batch.answered, batch.open) == ("done", 9, 0)
    assert scene.steps()["cancel"] == 1


def test_cancel_when_the_service_refuses_it_says_so(stage, provider):
    scene = stage(provider, faults=until("look", Unauthorized()))
    scene.failure()
    scene.server.faults = until("cancel", BadRequestFault("not yours", 403))
    result = cancel_batches(scene.folder / "run", QUICK)
    assert result.left == 1 and "status 403: not yours" in " ".join(result.troubles)


# -- looking


def test_status_when_batches_were_used_adds_up(stage: Any, provider: str) -> None:
    scene = stage(provider, fates=[Fate(end="expired", done=0.5)], batching={"now": Hours(0.0)})
    scene.run()
    status = run_status(scene.folder / "run", toy_models())
    document = status.as_json()
    assert document["batched"] == {"requests": 18 + 5, "answered": 18, "failed": 5, "open": 0}
    assert [batch["state"] for batch in document["batches"]] == ["done"] * len(document["batches"])
    text = "\n".join(status.lines())
    assert "9 requests = 4 answered + 5 failed + 0 open" in text
    assert "in batches: 23 requests = 18 answered + 5 failed + 0 open" in text


def test_plan_when_in_batches_costs_half(stage: Any, provider: str) -> None:
    request = stage(provider).request()
    stand_in = without_models(request.config)
    batched = plan_calls(request, stand_in)
    single = plan_calls(replace(request, options=replace(request.options, batching=Batching())), stand_in)
    assert batched.calls == single.calls
    assert single.cost is not None and batched.cost == pytest.approx(single.cost / 2)
    assert "prices of batches" in "\n".join(batched.lines())
    assert "prices of batches" not in "\n".join(single.lines())


def test_secrets_when_a_service_repeats_them_are_in_no_journal_and_no_error(stage, provider):
    for step in ("make", "look", "fetch"):
        scene = stage(provider, faults=until(step, EchoSecrets()))
        error = scene.failure(f"run-{step}")
        assert KEY not in str(error)
        files = [path.read_bytes() for path in (scene.folder / f"run-{step}").rglob("*") if path.is_file()]
        assert not any(KEY.encode() in data for data in files)
    scene = stage(provider, fates=Fate(word=f"state {KEY}", end="failed", problem=("x", f"your key {KEY}")))
    assert KEY not in str(scene.failure("word"))
    scene = stage("openai", fates=Fate(end="failed", problem=("x", f"your key {KEY}")))
    assert KEY not in str(scene.failure("problem"))
    for path in scene.folder.rglob("journal.sqlite*"):
        assert KEY.encode() not in path.read_bytes()


# -- Pictures in batches: inside the requests, or once each in the service's store of files

SMALL, LARGER = (Image(bytes([number]) * size, "image/png") for number, size in ((1, 50), (2, LARGE)))
OTHER = Image(b"3" * (LARGE + 1), "image/jpeg")


def answer(asked: Asked) -> str:
    return " ".join(str(len(picture.data)) for picture in asked.images)


def request_of(model: str, *pictures: Image) -> ChatRequest:
    return ChatRequest(model, (Message("user", ("What is there?", *pictures)),))


def ask(
    folder: Path, server: ModelServer, provider: str, waves: list[list[tuple[Image, ...]]], **more: Any
) -> Any:
    """Ask about pictures, one wave after the other, in batches; return the texts of the replies."""
    spec = parse_spec(f"{provider}:eyes")
    address = server.openai_url if provider == "openai" else server.url
    options = options_for(spec, {spec.text: {"base_url": address, **more.pop("settings", {})}})
    batching = replace(Batching(on=True, first_look=0.001, longest_look=0.004), **more)

    def open_lane(model: str) -> Lane:
        return Lane(model, open_batches(spec, options, Redactor()), options, None)

    async def run(calls: Calls) -> list[str]:
        desk = Desk(calls, Budget(None, 0.0), {spec.text: options}, _no_line)
        desk.use_batches(batching, open_lane).start([])
        texts = []
        for wave in waves:
            asked = [request_of(spec.text, *pictures) for pictures in wave]
            replies = await asyncio.gather(*(desk.reply(request, 0, "look") for request in asked))
            texts += [reply.text for _, reply in replies]
        for task in [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            task.cancel()
        await desk.shut()
        return texts

    with Journal.open(folder) as journal:
        calls = Calls(journal)
        try:
            return asyncio.run(run(calls))
        finally:
            calls.close()


def _no_line(_: str) -> Any:
    raise AssertionError("nothing is asked singly here")


def uploads(server: ModelServer) -> list[bytes]:
    return [data for _, data in server.files.values() if data in (SMALL.data, LARGER.data, OTHER.data)]


WAVES = [[(SMALL,), (LARGER,), (LARGER, SMALL)], [(LARGER, OTHER), (OTHER,)]]
TEXTS = ["50", str(LARGE), f"{LARGE} 50", f"{LARGE} {LARGE + 1}", str(LARGE + 1)]


@pytest.mark.parametrize("stored", [False, True])
def test_pictures_when_asked_about_are_seen_and_large_ones_sent_once_where_that_is_wanted(
    tmp_path: Path, provider: str, stored: bool
) -> None:
    with ModelServer(answer) as server:
        assert ask(tmp_path, server, provider, WAVES, settings={"batch_files": stored}) == TEXTS
        sent = uploads(server)
    expected = [LARGER.data, OTHER.data] if stored and provider != "openai" else []
    assert sorted(sent) == sorted(expected)


def test_picture_when_stored_by_an_earlier_process_is_not_sent_again_until_it_is_old(tmp_path, provider):
    if provider == "openai":
        pytest.skip("chat completions take no ids of pictures")
    hour = 3600.0
    with ModelServer(answer) as server:
        for number, later in enumerate((0.0, 10 * hour, 30 * 24 * hour)):
            pictures: tuple[Image, ...] = (LARGER, Image(bytes([number]), "image/png"))
            moment = partial(float, 1.7e9 + later)
            ask(tmp_path, server, provider, [[pictures]], settings={"batch_files": True}, now=moment)
        assert len(uploads(server)) == 2


@pytest.mark.parametrize("fault", [Dropped(), ServerError(503)], ids=repr)
def test_picture_when_its_upload_fails_is_sent_again(tmp_path: Path, provider: str, fault: Any) -> None:
    struck: list[int] = []

    def first_two(asked: Asked) -> Any:
        if asked.protocol == "batches" and asked.step == "upload" and len(struck) < 2:
            struck.append(1)
            return fault
        return None

    with ModelServer(answer, faults=first_two) as server:
        assert ask(tmp_path, server, provider, WAVES, settings={"batch_files": True}) == TEXTS

"""Retries, pauses and limits of calls to one model, by a clock that does not make anybody wait."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from fabula.models import chat
from fabula.models.client import KEPT, LONGEST_PAUSE, Called, ModelClient, ModelDown, prefix_of
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.prices import book, most_tokens, price_of
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.testing.clock import FakeClock
from fabula.testing.model_server import ModelServer, ServerError

OK = chat.Reply("ok", "{}", usage=chat.Usage(10, 5))
REQUEST = chat.ChatRequest("m", (chat.Message("user", ("hi",)),), max_tokens=100)


class Scripted:
    """A model that gives what the script says, in turn; the last entry for ever."""

    def __init__(
        self, script: Iterable[chat.Reply | Exception | Callable[[], Any]], clock: FakeClock
    ) -> None:
        self.script = list(script)
        self.clock = clock
        self.asked_at: list[float] = []
        self.running = self.busiest = 0
        self.closed = False

    async def complete(self, request: chat.ChatRequest) -> chat.Reply:
        assert request is REQUEST
        self.asked_at.append(self.clock.now)
        self.running += 1
        self.busiest = max(self.busiest, self.running)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        try:
            if callable(step):
                step = await step()
            if isinstance(step, chat.CallFault):  # a fresh one each time, as adapters make them
                raise chat.CallFault(
                    step.kind, step.message, status=step.status, retry_after=step.retry_after,
                    maybe_paid=step.maybe_paid,
                )  # fmt: skip
            if isinstance(step, Exception):
                raise step
            assert isinstance(step, chat.Reply)
            return step
        finally:
            self.running -= 1

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def fault(kind: Any = "server_error", **more: Any) -> chat.CallFault:
    return chat.CallFault(kind, "it broke", **more)


def client(model: Scripted, **options: Any) -> ModelClient:
    return ModelClient(model, ModelOptions(**options), model.clock, random.Random(1))


def together(asked: ModelClient, clock: FakeClock, count: int, **more: Any) -> list[Any]:
    """Return what so many calls that begin at once come to."""

    async def play() -> list[Any]:
        return await asyncio.gather(*(asked.call(REQUEST) for _ in range(count)), **more)

    return clock.run(play())


def taking(clock: FakeClock, seconds: float) -> Callable[[], Any]:
    """Return a step of a model that answers after so many seconds."""

    async def slow() -> chat.Reply:
        await clock.sleep(seconds)
        return OK

    return slow


def test_call_when_the_model_answers_makes_one_attempt(clock: FakeClock) -> None:
    model = Scripted([OK], clock)
    assert clock.run(client(model).call(REQUEST)) == Called(OK, 1)
    assert clock.slept == []


@pytest.mark.parametrize("kind", sorted(chat.TRANSIENT))
def test_call_when_a_fault_passes_is_tried_again_and_each_fault_is_told(kind: str, clock: FakeClock) -> None:
    model, told = Scripted([fault(kind), fault(kind, maybe_paid=True), OK], clock), []
    called = clock.run(client(model).call(REQUEST, told.append))
    assert called == Called(OK, 3)
    assert [(entry.kind, entry.maybe_paid) for entry in told] == [(kind, False), (kind, True)]


@pytest.mark.parametrize("kind", [*sorted(chat.FATAL), "too_long", "bad_request"])
def test_call_when_a_fault_does_not_pass_is_not_tried_again(kind: str, clock: FakeClock) -> None:
    model = Scripted([fault(kind)], clock)
    with pytest.raises(chat.CallFault) as caught:
        clock.run(client(model).call(REQUEST))
    assert caught.value.kind == kind
    assert len(model.asked_at) == 1


def test_call_when_logged_names_retries_and_at_the_lowest_level_every_reply(clock, caplog):
    with caplog.at_level("DEBUG", "fabula"):
        clock.run(client(Scripted([fault(), OK], clock)).call(REQUEST))
    retried, answered = caplog.record_tuples
    assert (
        retried[:2] == ("fabula.models.client", logging.INFO) and "m: attempt 1: server_error" in retried[2]
    )
    assert answered == ("fabula.models.client", logging.DEBUG, "m: ok after 0.0 s")


def test_call_when_attempts_are_used_up_raises_the_last_fault(clock: FakeClock) -> None:
    model = Scripted([fault("timeout"), fault("connection"), fault("server_error")], clock)
    with pytest.raises(chat.CallFault) as caught:
        clock.run(client(model, attempts=3, patience=1e6).call(REQUEST))
    assert not isinstance(caught.value, ModelDown)
    assert caught.value.kind == "server_error"
    assert len(model.asked_at) == 3


def test_call_when_tried_again_waits_at_most_twice_as_long_each_time(clock: FakeClock) -> None:
    asked = client(Scripted([OK, fault()], clock), attempts=10, patience=1e6)

    async def play() -> None:
        await asked.call(REQUEST)
        await asked.call(REQUEST)

    with pytest.raises(chat.CallFault):
        clock.run(play())
    most = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(clock.slept) == len(most)
    assert all(0 <= slept <= limit for slept, limit in zip(clock.slept, most, strict=True))
    assert len(set(clock.slept)) == len(most), "waiting times are drawn"


@pytest.mark.parametrize("kind", ["rate_limited", "server_error"])
def test_call_when_asked_to_wait_never_comes_back_earlier(kind: str, clock: FakeClock) -> None:
    status = 429 if kind == "rate_limited" else 503
    model = Scripted([fault(kind, status=status, retry_after=20.0), OK], clock)
    clock.run(client(model).call(REQUEST))
    assert 20.0 <= model.asked_at[1] - model.asked_at[0] <= 21.0


def test_call_when_asked_to_wait_for_ever_waits_no_longer_than_a_limit(clock: FakeClock) -> None:
    model = Scripted([fault("rate_limited", status=429, retry_after=3000.0), OK], clock)
    clock.run(client(model, patience=1e6).call(REQUEST))
    assert model.asked_at[1] - model.asked_at[0] <= LONGEST_PAUSE + 1.0


def test_pause_when_one_call_is_told_to_wait_holds_up_all_others(clock: FakeClock) -> None:
    model = Scripted([fault("rate_limited", status=429, retry_after=30.0), OK], clock)
    together(client(model, concurrency=1), clock, 5)
    assert len(model.asked_at) == 6
    assert all(time >= model.asked_at[0] + 30.0 for time in model.asked_at[1:])


def test_concurrency_when_too_many_are_refused_goes_down_and_comes_back(clock: FakeClock) -> None:
    seen: list[int] = []

    async def busy() -> chat.Reply | chat.CallFault:
        await clock.sleep(1.0)
        seen.append(asked.limit)
        return fault("rate_limited", status=429) if model.running > 4 else OK

    model = Scripted([busy], clock)
    asked = client(model, concurrency=16, attempts=50, patience=1e6)
    assert len(together(asked, clock, 100)) == 100
    assert model.busiest == 16
    assert min(seen) <= 4
    assert max(seen[seen.index(min(seen)) :]) > min(seen)
    assert asked.in_flight == 0


def test_concurrency_when_many_call_never_exceeds_the_limit(clock: FakeClock) -> None:
    model = Scripted([taking(clock, 1.0)], clock)
    start = clock.now
    together(client(model, concurrency=7), clock, 70)
    assert model.busiest == 7
    assert clock.now - start == pytest.approx(10.0)


def test_patience_when_nothing_succeeds_for_too_long_says_that_the_model_is_down(clock: FakeClock) -> None:
    model = Scripted([fault("connection")], clock)
    start = clock.now
    asked = client(model, patience=30.0, attempts=100, concurrency=4)
    ends = together(asked, clock, 8, return_exceptions=True)
    assert all(isinstance(end, ModelDown) and end.kind == "connection" for end in ends)
    assert "30 s" in str(ends[0]) or "patience" in str(ends[0])
    assert clock.now - start < 30.0 + 60.0 * 2


@pytest.mark.parametrize(
    ("kind", "longest"), [("connection", 60.0), ("rate_limited", 1000.0), ("timeout", 1000.0)]
)
def test_patience_when_the_model_never_answered_is_short_unless_it_is_only_busy_or_slow(kind, longest, clock):
    start = clock.now
    with pytest.raises(ModelDown):
        clock.run(client(Scripted([fault(kind)], clock), patience=500.0, attempts=100).call(REQUEST))
    assert (clock.now - start < 60.0) == (longest == 60.0)
    assert clock.now - start < longest


def test_patience_when_others_succeed_in_between_does_not_run_out(clock: FakeClock) -> None:
    model = Scripted([fault(), fault(), fault(), OK] * 20 + [OK], clock)
    asked = client(model, patience=15.0)

    async def play() -> None:
        for _ in range(20):
            await asked.call(REQUEST)

    clock.run(play())
    assert clock.now > 1000.0 + 15.0


def test_patience_when_zero_gives_up_at_the_first_fault(clock: FakeClock) -> None:
    model = Scripted([fault()], clock)
    with pytest.raises(ModelDown):
        clock.run(client(model, patience=0.0).call(REQUEST))
    assert len(model.asked_at) == 1


def test_timeout_when_a_call_takes_too_long_is_a_fault_that_may_be_paid(clock: FakeClock) -> None:
    async def never() -> chat.Reply:
        await asyncio.Event().wait()
        return OK

    model, told = Scripted([never, OK], clock), []
    called = asyncio.run(_with_real_time(client(model, call_timeout=0.01), clock, told))
    assert called.attempts == 2
    assert told[0].kind == "timeout"
    assert told[0].maybe_paid


async def _with_real_time(asked: ModelClient, clock: FakeClock, told: list[chat.CallFault]) -> Called:
    task = asyncio.ensure_future(asked.call(REQUEST, told.append))
    while not task.done():
        await asyncio.sleep(0.005)
        while clock._waiting:
            clock._waiting.pop()[2].set_result(None)
    return await task


def test_error_when_it_is_no_fault_passes_through_and_frees_the_slot(clock: FakeClock) -> None:
    model = Scripted([TimeoutError("ours")], clock)
    asked = client(model)
    with pytest.raises(TimeoutError, match="ours"):
        clock.run(asked.call(REQUEST))
    assert asked.in_flight == 0


@pytest.mark.parametrize("options", [{}, {"requests_per_minute": 60}, {"concurrency": 1}])
def test_cancellation_when_calls_are_under_way_frees_every_slot(options, clock):
    model = Scripted([taking(clock, 5.0)], clock)
    asked = client(model, **options)

    async def play() -> Called:
        tasks = [asyncio.ensure_future(asked.call(REQUEST)) for _ in range(6)]
        await clock.sleep(1.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert asked.in_flight == 0
        return await asked.call(REQUEST)

    assert clock.run(play()).reply == OK
    assert model.running == 0


def test_rate_when_limited_spaces_calls_and_gives_back_what_was_not_used(clock: FakeClock) -> None:
    model = Scripted([OK], clock)
    asked = client(model, tokens_per_minute=6000)

    async def play() -> None:
        for _ in range(11):
            await asked.call(REQUEST)

    start = clock.now
    clock.run(play())
    # 15 tokens were used of each call's hundred and more: 0.15 s apart, not a second and more.
    assert clock.now - start == pytest.approx(1.5, abs=0.3)


# -- Requests that begin alike: order and marks, against the server's own count of what it had read before

SPECS = ("openai:gpt-4.1-mini", "google:gemini-2.5-flash", "anthropic:claude-haiku-4-5")
STORIES, QUESTIONS, PANELS = 2, 15, 8
SCHEMA = chat.ReplySchema(
    "answer",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["answer"],
        "properties": {"answer": {"type": "string"}},
    },
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "planted-key-0123456789abcdef0123456789")


def question(spec: str, story: int, number: int) -> chat.ChatRequest:
    pictures = tuple(chat.Image(b"\x89PNG\r\n\x1a\n" + bytes((story, n)), "image/png") for n in range(PANELS))
    return chat.ChatRequest(
        spec,
        (chat.Message("system", ("Judge.",)), chat.Message("user", (*pictures, f"Who is in turn {number}?"))),
        schema=SCHEMA, temperature=0.0, max_tokens=100,
    )  # fmt: skip


def options_of(server: ModelServer, spec: str, **more: object) -> ModelOptions:
    url = {"openai": server.openai_url, "google": server.google_url, "anthropic": server.anthropic_url}
    return ModelOptions.model_validate({"base_url": url[spec.partition(":")[0]], "concurrency": 64, **more})


def ask_all(requests: list[chat.ChatRequest], options: ModelOptions) -> list[chat.Reply]:
    spec = parse_spec(requests[0].model)

    async def play() -> list[chat.Reply]:
        client = ModelClient(open_model(spec, options, Redactor()), options)
        called = await asyncio.gather(*(client.call(request) for request in requests))
        await client.close()
        return [call.reply for call in called]

    return asyncio.run(play())


def all_questions(spec: str) -> list[chat.ChatRequest]:
    return [question(spec, story, number) for story in range(STORIES) for number in range(QUESTIONS)]


@pytest.mark.parametrize("spec", SPECS)
def test_questions_when_they_share_pictures_pay_for_them_once_by_the_servers_count(spec: str) -> None:
    requests = all_questions(spec)
    with ModelServer(caching=True, latency=0.1) as server:
        options = options_of(server, spec)
        replies = ask_all(requests, options)
        cache = server.cache
    assert (cache.requests, cache.hits) == (30, 28)  # 2 stories, the first of 15 questions each reads nothing
    assert cache.read >= 28 * 16 * 128  # 8 pictures of 258 tokens are 2,064; OpenAI counts by 128
    usages = [reply.usage for reply in replies if reply.usage is not None]
    assert sum(usage.cached_tokens or 0 for usage in usages) == cache.read
    assert sum(usage.cache_write_tokens or 0 for usage in usages) == cache.written
    assert bool(cache.written) == spec.startswith("anthropic")
    price = price_of(parse_spec(spec), options)
    assert price is not None
    most = most_tokens(requests[0], options)
    paid = sum(book(price, usage, most).cost for usage in usages)
    plain = sum(book(price, chat.Usage(u.input_tokens, u.output_tokens), most).cost for u in usages)
    assert paid < 0.65 * plain


@pytest.mark.parametrize("spec", SPECS)
def test_questions_when_the_cache_is_not_wanted_go_out_together_and_find_nothing(spec: str) -> None:
    with ModelServer(caching=True, latency=0.5) as server:
        ask_all(all_questions(spec), options_of(server, spec, prompt_cache=False))
        assert (server.cache.requests, server.cache.hits, server.cache.written) == (30, 0, 0)
        assert all("prompt_cache_key" not in exchange.asked.body for exchange in server.log)


def test_first_when_it_fails_is_replaced_and_nothing_is_lost() -> None:
    spec = SPECS[0]
    requests = [question(spec, 1, number) for number in range(QUESTIONS)]
    with ModelServer(caching=True, faults=[ServerError()], latency=0.02) as server:
        replies = ask_all(requests, options_of(server, spec))
        assert len(replies) == QUESTIONS
        assert server.cache.hits == QUESTIONS - 1


def test_mark_when_nobody_shares_the_pictures_is_left_out_and_set_from_the_second_on() -> None:
    spec = SPECS[2]

    async def play(options: ModelOptions) -> None:
        client = ModelClient(open_model(parse_spec(spec), options, Redactor()), options)
        for number in range(3):
            await client.call(question(spec, 1, number))
        await client.close()

    with ModelServer(caching=True) as server:
        asyncio.run(play(options_of(server, spec)))
        marked = ["cache_control" in str(exchange.asked.body) for exchange in server.log]
        assert marked == [False, True, True]
        assert (server.cache.hits, server.cache.written) == (1, server.cache.read)


class Noted:
    """A model that writes down when it was asked, and takes ten seconds."""

    def __init__(self, clock: FakeClock, fails: int = 0) -> None:
        self.clock, self.fails = clock, fails
        self.asked: list[tuple[float, bool]] = []

    async def complete(self, request: chat.ChatRequest) -> chat.Reply:
        self.asked.append((self.clock.monotonic(), request.prefix is not None))
        await self.clock.sleep(10.0)
        if len(self.asked) <= self.fails:
            raise chat.CallFault("bad_request", "no")
        return chat.Reply("ok", "{}")

    async def close(self) -> None:
        return None


def times(requests: list[chat.ChatRequest], fails: int = 0, pause: float = 0.0) -> list[tuple[float, bool]]:
    clock = FakeClock(start=0.0)
    model = Noted(clock, fails)
    client = ModelClient(model, ModelOptions(), clock)

    async def play() -> None:
        await asyncio.gather(*(client.call(request) for request in requests), return_exceptions=True)
        if pause:
            await clock.sleep(pause)
            await asyncio.gather(*(client.call(request) for request in requests))

    clock.run(play())
    return model.asked


def test_order_when_requests_begin_alike_is_one_then_all_the_others() -> None:
    asked = times([question(SPECS[0], story, number) for story in (1, 2) for number in range(3)])
    assert asked == [(0.0, True)] * 2 + [(10.0, True)] * 4


@pytest.mark.parametrize(("pause", "together"), [(KEPT - 1, 3), (KEPT + 1, 1)])
def test_order_when_time_has_passed_warms_again_only_what_is_forgotten(pause: float, together: int) -> None:
    asked = times([question(SPECS[0], 1, number) for number in range(3)], pause=pause)
    later = [at for at, _ in asked if at >= 20 + pause]
    assert later.count(min(later)) == together


def test_prefix_ends_with_the_last_picture_and_is_no_part_of_the_key() -> None:
    first, second = question(SPECS[0], 1, 1), question(SPECS[0], 1, 2)
    prefix = prefix_of(first)
    assert prefix is not None
    assert (prefix, prefix.parts) == (prefix_of(second), 1 + PANELS)
    assert prefix != prefix_of(question(SPECS[0], 2, 1))
    assert prefix_of(replace(first, seed=7, temperature=1.0)) == prefix
    marked = replace(first, prefix=prefix)
    assert marked == first
    assert marked.key() == first.key()

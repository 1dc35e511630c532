"""Requests that begin alike: order and marks, against the server's own count of what it had read before."""

import asyncio
from dataclasses import replace

import pytest

from fabula.models.chat import CallFault, ChatRequest, Image, Message, Reply, ReplySchema, Usage
from fabula.models.client import ModelClient
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.prices import book, most_tokens, price_of
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.models.warming import KEPT, prefix_of
from fabula.testing.clock import FakeClock
from fabula.testing.model_server import ModelServer, ServerError

SPECS = ("openai:gpt-4.1-mini", "google:gemini-2.5-flash", "anthropic:claude-haiku-4-5")
STORIES, QUESTIONS, PANELS = 2, 15, 8
SCHEMA = ReplySchema(
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


def question(spec: str, story: int, number: int) -> ChatRequest:
    pictures = tuple(Image(b"\x89PNG\r\n\x1a\n" + bytes((story, n)), "image/png") for n in range(PANELS))
    return ChatRequest(
        spec,
        (Message("system", ("Judge.",)), Message("user", (*pictures, f"Who acts in turn {number}?"))),
        schema=SCHEMA, temperature=0.0, max_tokens=100,
    )  # fmt: skip


def options_of(server: ModelServer, spec: str, **more: object) -> ModelOptions:
    url = {"openai": server.openai_url, "google": server.google_url, "anthropic": server.anthropic_url}
    return ModelOptions.model_validate({"base_url": url[spec.partition(":")[0]], "concurrency": 64, **more})


def ask_all(requests: list[ChatRequest], options: ModelOptions) -> list[Reply]:
    spec = parse_spec(requests[0].model)

    async def play() -> list[Reply]:
        client = ModelClient(open_model(spec, options, Redactor()), options)
        called = await asyncio.gather(*(client.call(request) for request in requests))
        await client.close()
        return [call.reply for call in called]

    return asyncio.run(play())


def all_questions(spec: str) -> list[ChatRequest]:
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
    plain = sum(book(price, Usage(u.input_tokens, u.output_tokens), most).cost for u in usages)
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

    async def complete(self, request: ChatRequest) -> Reply:
        self.asked.append((self.clock.monotonic(), request.prefix is not None))
        await self.clock.sleep(10.0)
        if len(self.asked) <= self.fails:
            raise CallFault("bad_request", "no")
        return Reply("ok", "{}")

    async def close(self) -> None:
        return None


def times(requests: list[ChatRequest], fails: int = 0, pause: float = 0.0) -> list[tuple[float, bool]]:
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

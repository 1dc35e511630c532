"""Counts of tokens that are missing or cannot be, from every adapter: replies stay, booked high enough."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fabula.models.chat import ChatRequest, Message, Reply, Usage, encode_request, unpacked
from fabula.models.client import ModelClient
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions, Prices
from fabula.models.prices import MostTokens, Price, book, highest_cost, most_tokens, price_of
from fabula.models.registry import ADAPTERS, ENCODERS, open_model
from fabula.models.spec import OPEN, ModelSpec
from fabula.testing.model_server import Answer, ModelServer, OddUsage, word_vector

from .services import KEY, place

TEXT = "The fox ran."
USED = Usage(900, 40, cached_tokens=300, thinking_tokens=10, cache_write_tokens=200)
PRICES = Prices(input=1, output=10, cached_input=0.1, cache_write=1.25)
NO_COUNTS: list[Any] = [
    "12", "", float("nan"), float("inf"), -1, -1.5, 12.0, 10**30, True, False, None, [], {},
]  # fmt: skip
SERVICES = [
    *(("", provider) for provider, _ in ADAPTERS if provider not in OPEN),
    *(("embedding:", provider) for provider, _ in ENCODERS),
]  # fmt: skip


@dataclass
class Asker:
    """A model at the server, asked through the client that all runs use."""

    server: ModelServer
    spec: ModelSpec
    options: ModelOptions
    request: ChatRequest
    runner: asyncio.Runner
    client: ModelClient

    @property
    def most(self) -> MostTokens:
        return most_tokens(self.request, self.options)

    @property
    def price(self) -> Price:
        price = price_of(self.spec, self.options)
        assert price is not None
        return price

    def ask(self, fault: OddUsage | None = None) -> Reply:
        self.server.faults = fault
        called = self.runner.run(self.client.call(self.request))
        assert called.attempts == 1, "what was paid for is not asked again"
        reply = called.reply
        assert reply.outcome == "ok"
        if self.spec.encodes:
            assert unpacked(reply.text).size == 64
        else:
            assert reply.text == TEXT
        assert Reply.from_json(json.loads(json.dumps(reply.as_json()))) == reply
        return reply

    def booked(self, fault: OddUsage | None = None) -> float:
        return book(self.price, self.ask(fault).usage, self.most).cost


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(params=SERVICES, ids="".join)
def asker(
    request: pytest.FixtureRequest, running: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Asker]:
    monkeypatch.setenv("MY_KEY", KEY)
    kind, provider = request.param
    spec, where = place(running, provider, kind)
    options = ModelOptions.model_validate({**where, "api_key_env": "MY_KEY", "prices": PRICES.model_dump()})
    text = json.dumps(word_vector(TEXT)) if spec.encodes else TEXT
    used = Usage(900, 0) if spec.encodes else USED
    if provider == "google":  # it does not say what it wrote into its cache
        used = replace(used, cache_write_tokens=0)
    running.handler = lambda _: Answer(text, usage=used)
    asked = encode_request(spec.text, TEXT)
    if not spec.encodes:
        asked = ChatRequest(spec.text, (Message("user", ("Who? " * 300,)),), max_tokens=2000)
    with asyncio.Runner() as runner:
        client = ModelClient(open_model(spec, options, Redactor()), options)
        yield Asker(running, spec, options, asked, runner, client)
        runner.run(client.close())


def counts_of(asker: Asker) -> list[str]:
    if asker.spec.encodes:
        return ["input"]
    return ["input", "output", "cached", *([] if asker.spec.provider == "google" else ["cache_write"])]


def test_booked_when_a_count_cannot_be_read_is_what_was_reserved_for_it(asker: Asker) -> None:
    right, bound = asker.booked(), highest_cost(asker.price, asker.most)
    assert 0 < right < bound
    for name in counts_of(asker):
        for value in NO_COUNTS:
            booked = asker.booked(OddUsage(name, value))
            assert right < booked <= bound or (name == "cached" and right <= booked), (name, value)
            if name == "output":
                assert booked == pytest.approx(right + (asker.most.output - 40) * 10 / 1e6), value
            if name == "input":
                answered = asker.most.output if asker.spec.encodes else 40
                assert booked == pytest.approx((asker.most.input * 1.25 + answered * 10) / 1e6), value


def test_booked_when_a_count_is_missing_is_not_less_than_right(asker: Asker) -> None:
    right, bound = asker.booked(), highest_cost(asker.price, asker.most)
    for name in (*counts_of(asker), "thinking"):
        booked = asker.booked(OddUsage(name, missing=True))  # type: ignore[arg-type]
        assert right <= booked <= bound, name
        if name in ("input", "output"):
            assert booked > right, name


@pytest.mark.parametrize("value", [None, [], {}, "none", 12, True], ids=repr)
def test_booked_when_there_is_no_usage_at_all_is_the_bound(asker: Asker, value: Any) -> None:
    bound = highest_cost(asker.price, asker.most)
    assert asker.booked(OddUsage(value=value)) == asker.booked(OddUsage(missing=True)) == bound


@pytest.mark.parametrize("claim", [10**9, 10**11], ids=["billion", "hundred billions"])
def test_booked_when_more_is_claimed_than_can_have_been_used_is_the_bound_and_keeps_the_claim(asker, claim):
    right, bound = asker.booked(), highest_cost(asker.price, asker.most)
    for name in counts_of(asker):
        reply = asker.ask(OddUsage(name, claim))  # type: ignore[arg-type]
        booked = book(asker.price, reply.usage, asker.most).cost
        assert right <= booked <= bound, name
        assert reply.claimed is not None and claim in [
            count - count % 10**9 for count in reply.claimed.as_json().values() if count is not None
        ], name
        assert reply.usage is not None
        assert (reply.usage.input_tokens or 0) <= asker.most.input
        assert (reply.usage.output_tokens or 0) <= asker.most.output
        if name == "output":
            assert booked == pytest.approx(right + (asker.most.output - 40) * 10 / 1e6)

"""Limits that processes share by a file, by a clock that makes nobody wait; an object is a process."""

import asyncio
import json
import os
import sqlite3
import sys
import threading
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.models import chat, limits, prices, programs
from fabula.models.client import ModelClient
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.programs import ProgramStopped, allowed_environment, run_program
from fabula.models.spec import parse_spec
from fabula.testing.clock import FakeClock

KEY = "planted-key-0123456789abcdef0123456789"


class House:
    """Processes at one file."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock(start=0.0)
        self.path = folder / "cache" / limits.FILE
        self.told: list[str] = []
        self.offset = 1_700_000_000.0

    def wall(self) -> float:
        return self.clock.monotonic() + self.offset

    def process(
        self, requests: float | None, tokens: float | None = None, name: str = "n"
    ) -> limits.SharedLimit:
        own = limits.RateLimit(requests, tokens, self.clock)
        return limits.SharedLimit(self.path, name, own, self.told.append, self.wall)

    def starts(self, *works: tuple[limits.SharedLimit, list[int]]) -> list[float]:
        """Seconds at which calls of so many tokens start, of several processes together."""
        times: list[float] = []

        async def call(limit: limits.SharedLimit, tokens: int) -> None:
            await limit.reserve(tokens)
            times.append(self.clock.monotonic())

        async def play() -> None:
            await asyncio.gather(*(call(limit, tokens) for limit, costs in works for tokens in costs))

        self.clock.run(play())
        return sorted(times)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_requests_when_processes_share_a_key_keep_to_the_rate_together(house: House, processes: int) -> None:
    works = [(house.process(600), [0] * (240 // processes)) for _ in range(processes)]
    times = house.starts(*works)
    assert len(times) == 240
    assert max(sum(t <= u < t + 10 for u in times) for t in times) <= 102
    assert times[-1] == pytest.approx(23.9, abs=0.5)
    assert house.told == []


def test_tokens_when_processes_share_a_key_take_time_by_size(house: House) -> None:
    times = house.starts((house.process(None, 6000), [100, 300]), (house.process(None, 6000), [100]))
    assert times[0] == 0
    assert times[-1] <= 4.2  # 500 tokens at 100 a second: the last begins when those before it are over
    assert house.starts((house.process(None, 6000), [1]))[0] >= 4.9


def test_settlement_when_less_was_used_lets_another_process_start_earlier(house: House) -> None:
    first, second = house.process(None, 6000), house.process(None, 6000)
    house.starts((first, [1000]))
    first.settle(1000, 200)
    assert house.starts((second, [100])) == [pytest.approx(2.0, abs=0.11)]


def test_pause_when_one_process_is_told_to_wait_holds_up_all(house: House) -> None:
    first, second = house.process(600), house.process(600)
    house.starts((first, [0]))
    first.pause(30.0)
    assert house.starts((second, [0])) == [pytest.approx(30.0, abs=0.11)]


def test_client_when_it_is_refused_tells_the_others(house: House) -> None:
    class Refusing:
        async def complete(self, request: chat.ChatRequest) -> chat.Reply:
            raise chat.CallFault("rate_limited", "slowly", status=429, retry_after=40.0)

        async def close(self) -> None:
            return None

    options = ModelOptions(requests_per_minute=600, attempts=1)
    client = ModelClient(Refusing(), options, house.clock, rate=house.process(600))
    with pytest.raises(chat.CallFault):
        house.clock.run(client.call(chat.ChatRequest("m", (chat.Message("user", ("hi",)),))))
    assert house.starts((house.process(600), [0])) == [pytest.approx(40.0, abs=0.2)]


def test_process_when_it_dies_holds_nothing_but_the_call_that_it_had_begun(house: House) -> None:
    dead = house.process(60, 6000)

    async def play() -> None:
        waiting = [asyncio.ensure_future(dead.reserve(500)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in waiting[1:]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    house.clock.run(play())
    assert house.starts((house.process(60, 6000), [500])) == [pytest.approx(5.0, abs=0.11)]


@pytest.mark.parametrize("back", [0.5, 3600.0, 10 * 365 * 86400.0])
def test_clock_when_it_goes_back_neither_stops_calls_nor_lets_more_through(house: House, back: float) -> None:
    house.starts((house.process(60), [0, 0, 0]))
    house.offset -= back
    times = house.starts((house.process(60), [0, 0, 0]))
    assert times[0] >= 3.0 - 0.11
    assert times[-1] <= 6.2


def test_share_when_hosts_have_a_part_each_is_taken_from_both_limits() -> None:
    options = ModelOptions(requests_per_minute=120, tokens_per_minute=6000, limit_share=0.25)
    rate = limits.RateLimit.of(options, FakeClock())
    assert (rate.per_request, rate.per_token) == (2.0, 0.04)


def test_name_when_a_key_is_used_holds_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    spec, told = parse_spec("openai:gpt-4.1-mini"), list[str]()

    async def play() -> None:
        limit = limits.shared_limit(spec, ModelOptions(requests_per_minute=6000), Redactor(), told.append)
        await limit.reserve(1)
        limit.close()

    asyncio.run(play())
    written = b"".join(path.read_bytes() for path in (tmp_path / "fabula").iterdir())
    assert told == []
    assert KEY.encode() not in written
    assert b"gpt-4.1" not in written
    with sqlite3.connect(tmp_path / "fabula" / limits.FILE) as db:
        ((name,),) = db.execute("SELECT name FROM limits").fetchall()
    assert len(name) == 64


def damaged(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1000)


def in_the_way(path: Path) -> None:
    path.parent.write_bytes(b"a file where the folder should be")


@pytest.mark.parametrize("spoil", [damaged, in_the_way])
def test_file_when_it_cannot_be_used_is_named_and_the_process_keeps_its_own_limit(house, spoil):
    spoil(house.path)
    times = house.starts((house.process(60), [0, 0, 0]))
    assert times == pytest.approx([0, 1, 2], abs=0.11)
    assert len(house.told) == 1
    assert str(house.path) in house.told[0]
    assert "by this process alone" in house.told[0]


def test_file_when_another_process_holds_it_is_waited_for_and_not_for_ever(house: House) -> None:
    house.starts((house.process(60), [0]))
    with sqlite3.connect(house.path, isolation_level=None, check_same_thread=False) as holder:
        holder.execute("BEGIN IMMEDIATE")
        held = threading.Timer(0.2, holder.execute, ("COMMIT",))
        held.start()
        house.starts((house.process(60), [0]))
        held.join()
        assert house.told == []
        holder.execute("BEGIN IMMEDIATE")
        house.starts((house.process(60), [0]))
        holder.execute("COMMIT")
    assert len(house.told) == 1
    assert f"held it for {limits.PATIENCE:g} s" in house.told[0]
    holder.close()


# Requests and tokens per minute.


def starts(requests: float | None, tokens: float | None, costs: list[int]) -> list[float]:
    """Seconds at which calls of so many tokens start that are all ready at once."""
    clock = FakeClock(start=0.0)
    rate = limits.RateLimit(requests, tokens, clock)
    times: list[float] = []

    async def one(cost: int) -> None:
        await rate.reserve(cost)
        times.append(clock.monotonic())

    async def all_of_them() -> None:
        await asyncio.gather(*(one(cost) for cost in costs))

    clock.run(all_of_them())
    return times


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.sampled_from([240.0, 600.0]), st.lists(st.integers(0, 200), max_size=10))
def test_calls_when_all_come_at_once_are_spaced_by_number_or_size_without_a_burst(limit, costs):
    assert starts(limit, None, costs) == pytest.approx([n * 60 / limit for n in range(len(costs))], abs=0.11)
    before = [sum(costs[:number]) for number in range(len(costs))]
    assert starts(None, 10 * limit, costs) == pytest.approx([6 * cost / limit for cost in before], abs=0.11)


def test_limits_when_both_are_set_follow_the_tighter_one() -> None:
    assert starts(60, 6000, [10, 500, 10]) == pytest.approx([0, 1, 6], abs=0.11)


def test_settlement_when_less_was_used_lets_those_waiting_start_earlier() -> None:
    clock = FakeClock(start=0.0)
    rate = limits.RateLimit(None, 6000, clock)

    async def play() -> tuple[float, float]:
        await rate.reserve(1000)  # ten seconds
        waiting = asyncio.ensure_future(rate.reserve(100))
        await clock.sleep(1.0)
        rate.settle(1000, 200)  # two seconds
        await waiting
        earlier = clock.monotonic()
        await clock.sleep(5.0)
        rate.settle(100, 400)  # three seconds more, counted from now
        await rate.reserve(100)
        return earlier, clock.monotonic()

    assert clock.run(play()) == pytest.approx((2.0, 10.0), abs=0.11)


def test_reservation_when_cancelled_while_waiting_blocks_nobody() -> None:
    clock = FakeClock(start=0.0)
    rate = limits.RateLimit(60, None, clock)

    async def play() -> float:
        await rate.reserve(0)
        first = asyncio.ensure_future(rate.reserve(0))
        second = asyncio.ensure_future(rate.reserve(0))
        await asyncio.sleep(0)
        first.cancel()
        await second
        return clock.monotonic()

    assert clock.run(play()) == pytest.approx(1.0, abs=0.11)


# Slots for calls, fewer after a refusal.


def test_limit_when_refused_is_halved_once_for_calls_under_way_together() -> None:
    limit = limits.AdaptiveLimit(16)
    together = limit.generation
    for _ in range(10):
        limit.lower(together)
    assert limit.limit == 8
    limit.lower(limit.generation)
    assert limit.limit == 4
    for _ in range(9):
        limit.lower(limit.generation)
    assert limit.limit == 1


def test_limit_when_calls_succeed_rises_by_one_and_never_above_the_most() -> None:
    limit = limits.AdaptiveLimit(4)
    limit.lower(limit.generation)
    for _ in range(limits.RAISE_AFTER):
        assert limit.limit == 2
        limit.raise_after_success()
    assert limit.limit == 3
    for _ in range(10 * limits.RAISE_AFTER):
        limit.raise_after_success()
    assert limit.limit == 4


def test_slots_when_taken_are_given_in_order_and_never_exceeded() -> None:
    order: list[int] = []

    async def use(limit: limits.AdaptiveLimit, number: int) -> None:
        await limit.acquire()
        assert limit.used <= 2
        order.append(number)
        await asyncio.sleep(0)
        limit.release()

    async def all_of_them() -> int:
        limit = limits.AdaptiveLimit(2)
        await asyncio.gather(*(use(limit, number) for number in range(20)))
        return limit.used

    assert asyncio.run(all_of_them()) == 0
    assert order == list(range(20))


def test_slots_when_the_limit_falls_below_those_taken_wait_until_enough_are_back() -> None:
    async def play() -> list[bool]:
        limit = limits.AdaptiveLimit(4)
        for _ in range(4):
            await limit.acquire()
        limit.lower(limit.generation)
        waiting = asyncio.ensure_future(limit.acquire())
        seen = []
        for _ in range(3):
            limit.release()
            await asyncio.sleep(0)
            seen.append(waiting.done())
        return seen

    assert asyncio.run(play()) == [False, False, True]


def test_slots_when_a_waiting_call_is_cancelled_as_another_ends_are_neither_lost_nor_doubled() -> None:
    async def play() -> tuple[bool, int]:
        limit = limits.AdaptiveLimit(1)
        await limit.acquire()
        first = asyncio.ensure_future(limit.acquire())
        await asyncio.sleep(0)
        first.cancel()
        limit.release()
        await asyncio.wait([first])
        await limit.acquire()
        return first.cancelled(), limit.used

    assert asyncio.run(play()) == (True, 1)


# -- Estimates and bounds of token counts


def ask(*parts: str | chat.Image, schema: chat.ReplySchema | None = None) -> chat.ChatRequest:
    return chat.ChatRequest("m", (chat.Message("user", parts),), schema)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("fox", 1),  # 3 / 4 rounded up
        ("a" * 400, 100),
        ("狐" * 10, 10),  # one each
        ("ф" * 10, 7),  # 0.7 each
        ("狐 " * 4, 5),  # 4 + 4 / 4
    ],
)
def test_estimate_when_scripts_differ_counts_each_its_way(text: str, tokens: int) -> None:
    assert prices.estimate_tokens(text) == tokens


def test_bound_when_compared_is_never_below_the_bytes() -> None:
    text = "狐 and fox \ud800" * 50
    request = ask(text, schema=chat.ReplySchema("s", {"type": "string", "description": "é" * 30}))
    bound = prices.bound_tokens(request, ModelOptions())
    assert bound > len(text.encode("utf-8", "surrogatepass")) + 60
    assert bound > prices.estimate_request(request)


def test_bound_when_there_are_images_counts_what_the_settings_say() -> None:
    image = chat.Image(b"x", "image/png")
    plain, more = ModelOptions(image_tokens=500), ModelOptions(image_tokens=800)
    assert (
        prices.bound_tokens(ask("a", image, image), more) - prices.bound_tokens(ask("a", image, image), plain)
        == 600
    )
    assert prices.estimate_request(ask("a", image)) > prices.estimate_request(ask("a"))


# Bills worked by hand from the services' list rates, compared with what a run would book, to the cent.

BILLS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("bills.json").read_text("utf-8"))
MOST = prices.MostTokens(1_000_000, 1_000_000)
CENT = Decimal("0.01")


def cents(usd: Decimal) -> Decimal:
    return usd.quantize(CENT, ROUND_HALF_UP)


@pytest.mark.parametrize("bill", BILLS, ids=lambda bill: f"{bill['model']}: {bill['what']}")
def test_bill_when_worked_by_hand_is_what_a_run_books(bill: dict[str, Any]) -> None:
    spec = parse_spec(bill["model"])
    day = date.fromisoformat(bill["day"]) if "day" in bill else None
    price = (prices.batch_price_of if bill.get("batch") else prices.price_of)(spec, ModelOptions(), day)
    assert price is not None
    booked = prices.book(price, chat.Usage(**bill["usage"]), MOST)
    assert booked.is_read
    assert cents(bill["calls"] * Decimal(str(booked.cost))) == Decimal(bill["usd"])


def test_bills_when_counted_cover_what_is_priced_apart() -> None:
    assert len(BILLS) >= 30
    providers = {parse_spec(bill["model"]).provider for bill in BILLS}
    assert providers == {"openai", "google", "anthropic"}
    for provider in providers:
        mine = [bill for bill in BILLS if parse_spec(bill["model"]).provider == provider]
        assert any(bill["usage"].get("cached_tokens") for bill in mine)
        assert any(bill.get("batch") for bill in mine)
        assert any(bill["usage"]["input_tokens"] > 200_000 for bill in mine)
    for name in ("cache_write_tokens", "cache_write_1h_tokens", "image_input_tokens", "image_output_tokens"):
        assert any(bill["usage"].get(name) for bill in BILLS)


# Vectors of texts: exact as stored, cosine as defined, prices of what goes in alone.


def test_vector_when_packed_comes_back_bit_by_bit() -> None:
    vector = np.random.default_rng(42).normal(size=1536).astype("<f4")
    text = chat.packed(vector.tolist())
    assert len(text) == 8192
    assert chat.unpacked(text).astype("<f4").tobytes() == vector.tobytes()
    assert (
        chat.packed(chat.unpacked(text).tolist())
        == text
        == chat.read_vector(vector.tolist())
        == chat.read_vector(text)
    )


def test_cosine_when_computed_goes_by_the_angle_alone() -> None:
    # (3, 4) and (4, 3): 24 / (5 * 5)
    assert chat.cosine(np.array([3.0, 4.0]), np.array([4.0, 3.0])) == pytest.approx(0.96)
    one = np.array([0.1, 0.2, 0.3])
    assert chat.cosine(one, 7 * one) == 1.0
    assert chat.cosine(one, -one) == -1.0
    with pytest.raises(ValueError, match="vectors of 3 and of 2 numbers"):
        chat.cosine(one, np.array([1.0, 0.0]))


def test_price_when_an_encoder_is_listed_counts_what_goes_in() -> None:
    price = prices.price_of(parse_spec("embedding:openai:text-embedding-3-small"), ModelOptions())
    assert price is not None and not any(price.rates("output_tokens"))
    assert float(price.cost(chat.Usage(1_000_000, 0))) == pytest.approx(0.02)
    assert prices.price_of(parse_spec("openai:text-embedding-3-small"), ModelOptions()) is None
    assert prices.price_of(parse_spec("embedding:http://localhost:1/v1#x"), ModelOptions()) is None


# Running programs of others: what they read and write, and where that is bounded.


def run(code: str, **options: object) -> programs.Ended:
    words = [sys.executable, "-S", "-c", f"import os, sys\n{code}"]
    return run_program(words, allowed_environment(), **options)  # type: ignore[arg-type]


def test_program_when_it_is_given_something_reads_it_and_its_output_is_kept() -> None:
    ended = run("sys.stdout.write(sys.stdin.read().upper())", given=b"fox" * 50_000, output="kept")
    assert (ended.status, ended.output, ended.complaint) == (0, b"FOX" * 50_000, b"")


def test_program_when_it_writes_more_than_is_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LONGEST_OUTPUT", 1000)
    with pytest.raises(ProgramStopped, match="wrote more than 1,000 bytes"):
        run("while True: sys.stdout.write('x' * 100_000)", output="kept")


def test_variables_when_named_or_set_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "environ", {"PATH": "/bin", "LC_ALL": "C", "MY_KEY": "k", "OTHER": "o", "Path": "p"}
    )
    assert allowed_environment(("MY_KEY",), {"NEW": "n"}) == {
        "PATH": "/bin", "Path": "p", "LC_ALL": "C", "MY_KEY": "k", "NEW": "n",
    }  # fmt: skip

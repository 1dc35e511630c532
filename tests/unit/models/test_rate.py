"""Requests and tokens per minute."""

import asyncio
from itertools import pairwise

import pytest

from fabula.models.limits import RAISE_AFTER, AdaptiveLimit, RateLimit
from fabula.testing.clock import FakeClock


def starts(requests: float | None, tokens: float | None, costs: list[int]) -> list[float]:
    """Seconds at which calls of so many tokens start that are all ready at once."""
    clock = FakeClock(start=0.0)
    rate = RateLimit(requests, tokens, clock)
    times: list[float] = []

    async def one(cost: int) -> None:
        await rate.reserve(cost)
        times.append(clock.monotonic())

    async def all_of_them() -> None:
        await asyncio.gather(*(one(cost) for cost in costs))

    clock.run(all_of_them())
    return times


def test_requests_when_all_come_at_once_are_spaced_without_a_burst() -> None:
    assert starts(60, None, [0] * 5) == pytest.approx([0, 1, 2, 3, 4], abs=0.11)


def test_requests_when_many_come_keep_to_the_rate_in_every_minute() -> None:
    times = starts(600, None, [0] * 1500)
    assert all(b >= a for a, b in pairwise(times))
    assert max(sum(t <= u < t + 60 for u in times) for t in times[::50]) <= 602
    assert times[-1] == pytest.approx(149.9, abs=0.5)


def test_tokens_when_calls_differ_in_size_take_time_by_size() -> None:
    assert starts(None, 6000, [100, 300, 100]) == pytest.approx([0, 1, 4], abs=0.11)


def test_limits_when_both_are_set_follow_the_tighter_one() -> None:
    assert starts(60, 6000, [10, 500, 10]) == pytest.approx([0, 1, 6], abs=0.11)


def test_settlement_when_less_was_used_lets_those_waiting_start_earlier() -> None:
    clock = FakeClock(start=0.0)
    rate = RateLimit(None, 6000, clock)

    async def play() -> float:
        await rate.reserve(1000)  # ten seconds
        waiting = asyncio.ensure_future(rate.reserve(100))
        await clock.sleep(1.0)
        rate.settle(1000, 200)  # two seconds
        await waiting
        return clock.monotonic()

    assert clock.run(play()) == pytest.approx(2.0, abs=0.11)


def test_settlement_when_more_was_used_delays_the_next() -> None:
    clock = FakeClock(start=0.0)
    rate = RateLimit(None, 6000, clock)

    async def play() -> float:
        await rate.reserve(100)
        await clock.sleep(5.0)
        rate.settle(100, 400)  # three seconds more, counted from now
        await rate.reserve(100)
        return clock.monotonic()

    assert clock.run(play()) == pytest.approx(8.0, abs=0.11)


def test_reservation_when_cancelled_while_waiting_blocks_nobody() -> None:
    clock = FakeClock(start=0.0)
    rate = RateLimit(60, None, clock)

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
    limit = AdaptiveLimit(16)
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
    limit = AdaptiveLimit(4)
    limit.lower(limit.generation)
    for _ in range(RAISE_AFTER):
        assert limit.limit == 2
        limit.raise_after_success()
    assert limit.limit == 3
    for _ in range(10 * RAISE_AFTER):
        limit.raise_after_success()
    assert limit.limit == 4


def test_slots_when_taken_are_given_in_order_and_never_exceeded() -> None:
    order: list[int] = []

    async def use(limit: AdaptiveLimit, number: int) -> None:
        await limit.acquire()
        assert limit.used <= 2
        order.append(number)
        await asyncio.sleep(0)
        limit.release()

    async def all_of_them() -> int:
        limit = AdaptiveLimit(2)
        await asyncio.gather(*(use(limit, number) for number in range(20)))
        return limit.used

    assert asyncio.run(all_of_them()) == 0
    assert order == list(range(20))


def test_slots_when_the_limit_falls_below_those_taken_wait_until_enough_are_back() -> None:
    async def play() -> list[bool]:
        limit = AdaptiveLimit(4)
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
        limit = AdaptiveLimit(1)
        await limit.acquire()
        first = asyncio.ensure_future(limit.acquire())
        await asyncio.sleep(0)
        first.cancel()
        limit.release()
        await asyncio.wait([first])
        await limit.acquire()
        return first.cancelled(), limit.used

    assert asyncio.run(play()) == (True, 1)

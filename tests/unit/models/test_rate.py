"""Requests and tokens per minute."""

import asyncio
from itertools import pairwise

import pytest

from fabula.models.limits import RateLimit
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


def test_limits_when_none_are_set_are_inactive() -> None:
    assert not RateLimit(None, None, FakeClock()).active
    assert starts(None, None, [5] * 3) == [0, 0, 0]


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

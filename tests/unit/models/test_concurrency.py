"""Slots for calls, fewer after a refusal."""

import asyncio

from fabula.models.limits import RAISE_AFTER, AdaptiveLimit


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


def test_slots_when_those_waiting_are_cancelled_lose_none() -> None:
    async def play() -> tuple[int, int]:
        limit = AdaptiveLimit(1)
        await limit.acquire()
        early, late, last = (asyncio.ensure_future(limit.acquire()) for _ in range(3))
        await asyncio.sleep(0)
        early.cancel()
        await asyncio.sleep(0)
        limit.release()  # hands the slot to `late` ...
        late.cancel()  # ... which is cancelled in the same moment
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.wait_for(last, 1)
        taken = limit.used
        limit.release()
        return taken, limit.used

    assert asyncio.run(play()) == (1, 0)


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

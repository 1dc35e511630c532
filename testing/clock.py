"""A clock that stands still until everybody waits for it; then it jumps to the next moment waited for."""

import asyncio
import heapq
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")

_ROUNDS = 20
"""Turns of the event loop after which whoever could go on without the clock has done so."""


class FakeClock:
    """Time for tests: :meth:`run` plays a coroutine in which hours pass in no time, in the right order."""

    def __init__(self, start: float = 1000.0) -> None:
        self.now = start
        self.slept: list[float] = []
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def monotonic(self) -> float:
        """Return the time in seconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has come so far."""
        self.slept.append(seconds)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now + max(0.0, seconds), next(self._order), turn))
        await turn

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns, moving the clock whenever nothing else can go on."""
        return asyncio.run(self._play(work))

    async def _play(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        while not task.done():
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            if self._waiting and not task.done():
                self.now, _, turn = heapq.heappop(self._waiting)
                if not turn.done():
                    turn.set_result(None)
        return await task

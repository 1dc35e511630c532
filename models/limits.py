"""How many calls to a model are under way at a time: halved when the service says too many, raised slowly."""

import asyncio
from collections import deque

RAISE_AFTER = 5
"""Successes in a row after which one more call is allowed."""


class AdaptiveLimit:
    """Slots for calls; first come, first served. For one event loop.

    Args:
        most: the limit at the start, never exceeded.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = most
        self._used = 0
        self._successes = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._changed = 0

    @property
    def limit(self) -> int:
        """How many calls are allowed now."""
        return self._limit

    @property
    def used(self) -> int:
        """How many slots are taken."""
        return self._used

    @property
    def generation(self) -> int:
        """Number of reductions so far; note it when a call starts, and hand it to :meth:`lower`."""
        return self._changed

    async def acquire(self) -> None:
        """Take a slot, waiting for one if need be. Cancelled while waiting, no slot is taken."""
        if self._used < self._limit and not self._waiting:
            self._used += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the slot was handed over in the same moment
            elif turn in self._waiting:  # a slot given back in the same moment takes it out of the line
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Give a slot back."""
        self._used -= 1
        self._admit()

    def raise_after_success(self) -> None:
        """Count a success; after a few in a row, allow one more call."""
        if self._limit == self._most:
            return
        self._successes += 1
        if self._successes >= RAISE_AFTER:
            self._successes = 0
            self._limit += 1
            self._admit()

    def lower(self, generation: int) -> None:
        """Halve the limit, once for all calls that were under way together.

        Args:
            generation: what :attr:`generation` was when the refused call started.
        """
        self._successes = 0
        if generation == self._changed:
            self._changed += 1
            self._limit = max(1, self._limit // 2)

    def _admit(self) -> None:
        while self._waiting and self._used < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._used += 1
                turn.set_result(None)

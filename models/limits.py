"""What paces the calls to a model: a clock, requests and tokens per minute, and calls under way.

The clock is injected, so that tests need not wait. Calls under way are halved when the service says
too many, and raised slowly.
"""

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .options import ModelOptions


class Clock(Protocol):
    """A monotonic clock; setting the machine's time does not move it."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)


STEP = 0.1
"""Longest sleep in seconds before looking again, as a settlement may have made room; also how late a call
may be without the next one being late too."""


class RateLimit:
    """Spaces calls evenly, so that no minute holds more than allowed and nothing bursts. For one event loop.

    Each call occupies the time that the limits grant for it; the next one starts when that time is over.
    What a call turns out not to have used is given back to those after it.

    Args:
        requests_per_minute: None for no limit.
        tokens_per_minute: None for no limit; input and output together.
        clock: what time goes by.

    Attributes:
        per_request: seconds that a request occupies; 0 for no limit.
        per_token: the same for a token.
        clock: what time goes by.
    """

    def __init__(
        self, requests_per_minute: float | None, tokens_per_minute: float | None, clock: Clock
    ) -> None:
        self.per_request = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self.per_token = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self.clock = clock
        self._next_request = self._next_tokens = clock.monotonic()
        self._started = False
        self._turn = asyncio.Lock()

    @classmethod
    def of(cls, options: "ModelOptions", clock: Clock) -> "RateLimit":
        """Return the limits in a model's settings, as far as they are this host's share."""
        limits = (options.requests_per_minute, options.tokens_per_minute)
        requests, tokens = (None if limit is None else limit * options.limit_share for limit in limits)
        return cls(requests, tokens, clock)

    @property
    def active(self) -> bool:
        """Whether there is any limit."""
        return bool(self.per_request or self.per_token)

    async def reserve(self, tokens: int) -> None:
        """Wait until a call of so many tokens may start, and occupy its share."""
        async with self._turn:
            while True:
                now = self.clock.monotonic()
                wait = max(self._next_request, self._next_tokens) - now
                if wait <= 0:
                    break
                await self.clock.sleep(min(wait, STEP))
            # Waking up a little late must not lower the rate; an idle time must not be saved up for a burst.
            floor = now - STEP if self._started else now
            self._started = True
            self._next_request = max(self._next_request, floor) + self.per_request
            self._next_tokens = max(self._next_tokens, floor) + tokens * self.per_token

    def settle(self, reserved: int, used: int) -> None:
        """Correct a reservation by what the call used; more than reserved delays the next call."""
        delta = (used - reserved) * self.per_token
        base = max(self._next_tokens, self.clock.monotonic()) if delta > 0 else self._next_tokens
        self._next_tokens = base + delta

    def pause(self, seconds: float) -> None:
        """Do nothing: whoever asks the model waits himself, and nobody else is limited by this."""

    def close(self) -> None:
        """Do nothing: there is no file."""


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
        """Halve the limit, once for all calls that were under way together."""
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

"""Requests and tokens per minute: reserved before a call, settled with what it used."""

import asyncio

from .clock import Clock

_STEP = 0.1
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
    """

    def __init__(
        self, requests_per_minute: float | None, tokens_per_minute: float | None, clock: Clock
    ) -> None:
        self._per_request = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._per_token = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock
        self._next_request = self._next_tokens = clock.monotonic()
        self._started = False
        self._turn = asyncio.Lock()

    @property
    def active(self) -> bool:
        """Whether there is any limit."""
        return bool(self._per_request or self._per_token)

    async def reserve(self, tokens: int) -> None:
        """Wait until a call of so many tokens may start, and occupy its share."""
        async with self._turn:
            while True:
                now = self._clock.monotonic()
                wait = max(self._next_request, self._next_tokens) - now
                if wait <= 0:
                    break
                await self._clock.sleep(min(wait, _STEP))
            # Waking up a little late must not lower the rate; an idle time must not be saved up for a burst.
            floor = now - _STEP if self._started else now
            self._started = True
            self._next_request = max(self._next_request, floor) + self._per_request
            self._next_tokens = max(self._next_tokens, floor) + tokens * self._per_token

    def settle(self, reserved: int, used: int) -> None:
        """Correct a reservation by what the call used; more than reserved delays the next call."""
        delta = (used - reserved) * self._per_token
        base = max(self._next_tokens, self._clock.monotonic()) if delta > 0 else self._next_tokens
        self._next_tokens = base + delta

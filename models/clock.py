"""The clock that pauses, retries and limits go by: injected, so that tests need not wait."""

import asyncio
import time
from typing import Protocol


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

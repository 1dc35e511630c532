"""Asking a Hub again: with jitter, as long as it asks to wait, and not for ever."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from .hub_faults import HubFault

T = TypeVar("T")


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _silent(_: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long to ask again.

    Attributes:
        attempts: most requests for one step.
        first: seconds of the longest first pause; each next one may be twice as long.
        longest: seconds of the longest pause of our own.
        patience: seconds that a Hub may ask to wait in one answer; if it asks for more, we give up.
        sleep: waits.
        draw: gives a number from 0 to 1.
        tell: is told in one line when there is a pause.
    """

    attempts: int = 6
    first: float = 1.0
    longest: float = 20.0
    patience: float = 300.0
    sleep: Callable[[float], None] = _sleep
    draw: Callable[[], float] = random.random
    tell: Callable[[str], None] = _silent

    def pause(self, attempt: int, asked: float | None) -> float | None:
        """Return how long to wait after the n-th attempt (from 1); None for giving up.

        A pause that the Hub asks for is never cut short; the jitter comes on top.
        """
        if attempt >= self.attempts or (asked is not None and asked > self.patience):
            return None
        drawn = (1 + self.draw()) / 2 * min(self.longest, self.first * 2.0 ** (attempt - 1))
        return drawn if asked is None else asked + min(drawn, self.first)

    def run(self, step: str, ask: Callable[[], T], done: Callable[[], T | None] = lambda: None) -> T:
        """Ask until there is an answer.

        Args:
            step: what is asked, for people.
            ask: asks once.
            done: looks whether the step was done by a request whose answer was lost; None if not. It is
                called before asking again where that is possible.

        Raises:
            HubFault: it is no transient one, or there were too many.
        """
        attempt, maybe_done = 0, False
        while True:
            attempt += 1
            try:
                found = done() if maybe_done else None
                return ask() if found is None else found
            except HubFault as fault:
                pause = self.pause(attempt, fault.retry_after) if fault.transient else None
                if pause is None:
                    raise fault.during(step) from None
                maybe_done = maybe_done or fault.maybe_done
                self.tell(f"cannot {step} yet: {fault.message}; trying again in {pause:.1f} s")
                self.sleep(pause)

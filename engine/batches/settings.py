"""How an execution uses batches, and how often it looks at them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ...errors import ConfigError
from ...models.limits import Clock, SystemClock

HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How an execution uses batches.

    Attributes:
        on: whether requests go out in batches, to services that take them.
        deadline: hours after which a batch is cancelled; None for never.
        then_single: whether what a batch did not answer is asked by itself, at the full price.
        first_look: seconds before the first look at a batch.
        longest_look: seconds between two looks, at most.
        clock: what waiting goes by.
        now: gives the time in seconds since 1970. It says how old a batch is, and stands in no output.
    """

    on: bool = False
    deadline: float | None = None
    then_single: bool = False
    first_look: float = 10.0
    longest_look: float = 600.0
    clock: Clock = field(default_factory=SystemClock)
    now: Callable[[], float] = time.time

    def check(self) -> None:
        """Raise ConfigError when an option does not fit the others."""
        for option, given in (("--batch-deadline", self.deadline is not None),
                              ("--batch-then-single", self.then_single)):  # fmt: skip
            if given and not self.on:
                raise ConfigError(option, what="this option goes only with --batch", fix="add --batch")
        if self.deadline is not None and not 0 < self.deadline < float("inf"):
            raise ConfigError(
                "--batch-deadline", expected="hours, more than 0", found=str(self.deadline),
                fix="give another number",
            )  # fmt: skip

    def next_look(self, wait: float) -> float:
        """Return how long to wait next time, after so many seconds: half as long again."""
        return min(wait * 1.5, self.longest_look)

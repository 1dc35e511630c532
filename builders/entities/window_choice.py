"""The best windows of a row of shots, none of which share a shot: weighted interval scheduling.

By dynamic programming, exact. Among choices of the same value the one with fewer windows is taken, then the
one whose windows begin earlier, then the one whose first window that differs is shorter.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A window of shots by place: from ``start``, ``length`` of them; ``value`` is what it brings."""

    start: int
    length: int
    value: int

    @property
    def stop(self) -> int:
        """The place after its last shot."""
        return self.start + self.length


Choice = tuple[Window, ...]


def choose_windows(windows: Sequence[Window], most: int | None = None) -> Choice:
    """Return windows that share no shot and whose values add up to most, in order.

    Args:
        windows: what there is to choose from; those of no value are never taken.
        most: how many may be taken; None for any number.
    """
    useful = sorted(window for window in windows if window.value > 0)
    end = max((window.stop for window in useful), default=0)
    starting: dict[int, list[Window]] = {}
    for window in useful:
        starting.setdefault(window.start, []).append(window)
    if most is not None and most >= end // min((window.length for window in useful), default=1):
        most = None
    rounds = 1 if most is None else most
    # best[place] is the best choice from the shots at and after a place, with as many windows as allowed.
    best: list[Choice] = [()] * (end + 1)
    for _ in range(rounds):
        after: list[Choice] = [()] * (end + 1)
        source = after if most is None else best
        for place in range(end - 1, -1, -1):
            options = [after[place + 1]]
            options += [(window, *source[window.stop]) for window in starting.get(place, ())]
            after[place] = min(options, key=_rank)
        best = after
    return best[0]


def _rank(choice: Choice) -> tuple[int, int, Choice]:
    return -sum(window.value for window in choice), len(choice), choice

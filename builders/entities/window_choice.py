"""The best windows of a row of shots, none of which share a shot: weighted interval scheduling.

By dynamic programming, exact. Among choices of the same value the one with fewer windows is taken, then the
one whose windows begin earlier, then the one whose first window that differs is shorter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A window of shots by place: from ``start``, ``length`` of them; ``value`` is what it brings.

    Of windows of one ``group``, such as a tier, only so many may be taken.
    """

    start: int
    length: int
    value: int
    group: str = ""

    @property
    def stop(self) -> int:
        """The place after its last shot."""
        return self.start + self.length


Choice = tuple[Window, ...]
_Ranked = tuple[int, int, Choice]
"""Value, negated, number of windows, and the windows: the smallest is the best."""
_NOTHING: _Ranked = (0, 0, ())


def choose_windows(windows: Sequence[Window], most: Mapping[str, int] | None = None) -> Choice:
    """Return windows that share no shot and whose values add up to most, in order.

    Time grows with the number of windows, times the product of the limits that can be reached, each plus one.

    Args:
        windows: what there is to choose from; those of no value are never taken.
        most: group -> how many of it may be taken; of a group that is not named, any number.
    """
    useful = sorted(window for window in windows if window.value > 0)
    end = max((window.stop for window in useful), default=0)
    starting: dict[int, list[Window]] = {}
    for window in useful:
        starting.setdefault(window.start, []).append(window)
    limits = _limits(useful, end, most or {})
    free = {window.group for window in useful} - limits.keys()
    # best[left][place] is the best choice from the shots at and after a place, with so many left of a group.
    best: dict[tuple[int, ...], list[_Ranked]] = {}
    # Smaller counts come first: a choice with one window less left of a group is known by then.
    for left in product(*(range(limit + 1) for limit in limits.values())):
        here = best[left] = [_NOTHING] * (end + 1)
        # What may follow a window of each group; a group of which nothing is left is not there.
        after = {group: best[_one_less(left, at)] for at, group in enumerate(limits) if left[at]}
        after |= dict.fromkeys(free, here)
        for place in range(end - 1, -1, -1):
            found = here[place + 1]
            for window in starting.get(place, ()):
                if window.group in after:
                    found = _better(found, window, after[window.group][window.stop])
            here[place] = found
    return best[tuple(limits.values())][0][2]


def _limits(windows: Sequence[Window], end: int, most: Mapping[str, int]) -> dict[str, int]:
    """Return the limits that can be reached: group -> how many of it may be taken."""
    shortest: dict[str, int] = {}
    for window in windows:
        shortest[window.group] = min(window.length, shortest.get(window.group, window.length))
    return {
        group: most[group]
        for group, length in sorted(shortest.items())
        if group in most and most[group] < end // length
    }


def _one_less(left: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*left[:at], left[at] - 1, *left[at + 1 :])


def _better(found: _Ranked, window: Window, after: _Ranked) -> _Ranked:
    value, count = after[0] - window.value, after[1] + 1
    if (value, count) > found[:2]:
        return found
    return min(found, (value, count, (window, *after[2])))

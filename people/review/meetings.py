"""How often methods meet in seats, and how that changes when two seats swap votes.

Formula: n_jt is how often seat j shows method t; methods t and u meet c_tu = sum over j of n_jt n_ju times.
    Seats are even within where the sum over j, t of n_jt^2 is least; methods meet evenly where the sum over
    t < u of c_tu^2 is. With d the change of n_j (and -d that of n_j') and e = n_j - n_j' before it, the first
    sum grows by 2 d (e + d), summed, and c_tu by d_t e_u + d_u e_t + 2 d_t d_u.
Source: John and Eccleston, "(M,S)-optimality" (1974): the sum of squares that is made least.
Example: seats {a, b} and {a, b} of methods a, b, c, c swap b for c: {a, c}, {a, b}; c_ab falls by one.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from .plan import Unit

Arm = tuple[tuple[str, ...], str | None]
"""What is shown: the methods, sorted, and the condition."""


def arm_of(unit: Unit) -> Arm:
    """Return the arm that a unit belongs to."""
    return tuple(sorted(unit.treatments)), unit.condition


class Change(NamedTuple):
    """What a swap of two arms does.

    Attributes:
        within: growth of the sum of squares within seats.
        between: growth of the sum of squares between methods; only where ``within`` is not above 0.
        shift: feature -> change of how often the first seat shows it.
        meetings: pair of methods -> change of how often they meet.
    """

    within: int
    between: int
    shift: dict[int, int]
    meetings: dict[tuple[int, int], int]


class Meetings:
    """How often seats show arms, methods and conditions, and methods meet.

    Args:
        arms: what is shown, by number.
        seats: how many there are.
    """

    def __init__(self, arms: Sequence[Arm], seats: int) -> None:
        methods = sorted({method for arm, _ in arms for method in arm})
        conditions = sorted({str(condition) for _, condition in arms})
        features = {name: number for number, name in enumerate([*methods, *((name,) for name in conditions)])}
        self.methods = len(methods)
        self.counts = [[0] * len(arms) for _ in range(seats)]
        self.shown = [[0] * len(features) for _ in range(seats)]
        self.met = [[0] * self.methods for _ in methods]
        self._has = [
            Counter([features[method] for method in arm] + [features[str(condition),]])
            for arm, condition in arms
        ]
        self._shifts: dict[tuple[int, int], dict[int, int]] = {}

    def count(self) -> None:
        """Count features and meetings anew from the counts of arms."""
        for counts, shown in zip(self.counts, self.shown, strict=True):
            shown[:] = [0] * len(shown)
            for arm, number in enumerate(counts):
                for feature, times in self._has[arm].items():
                    shown[feature] += times * number
        for method, other in combinations(range(self.methods), 2):
            together = sum(shown[method] * shown[other] for shown in self.shown)
            self.met[method][other] = self.met[other][method] = together

    def change(self, seat: int, other: int, give: int, get: int) -> Change:
        """Return what happens when a seat gives a vote of one arm and gets one of another seat's arm."""
        moved = self._moved(give, get)
        mine, theirs = self.shown[seat], self.shown[other]
        within = sum(2 * step * (mine[part] - theirs[part] + step) for part, step in moved.items())
        meetings: dict[tuple[int, int], int] = {}
        if within > 0:
            return Change(within, 0, moved, meetings)
        ahead = [own - its for own, its in zip(mine[: self.methods], theirs, strict=False)]
        between = 0
        for method, step in moved.items():
            if method >= self.methods:
                continue
            for partner, lead in enumerate(ahead):
                also = moved.get(partner, 0)
                if partner == method or (also and partner < method):
                    continue
                growth = step * lead + also * (ahead[method] + 2 * step)
                if growth:
                    meetings[method, partner] = growth
                    between += growth * (2 * self.met[method][partner] + growth)
        return Change(within, between, moved, meetings)

    def _moved(self, give: int, get: int) -> dict[int, int]:
        """Return feature -> change of how often a seat shows it that gives one arm and gets another."""
        if (give, get) not in self._shifts:
            shift = Counter(self._has[get])
            shift.subtract(self._has[give])
            self._shifts[give, get] = {feature: step for feature, step in shift.items() if step}
        return self._shifts[give, get]

    def apply(self, seat: int, other: int, change: Change) -> None:
        """Keep a change that was made."""
        for feature, step in change.shift.items():
            self.shown[seat][feature] += step
            self.shown[other][feature] -= step
        for (method, partner), growth in change.meetings.items():
            self.met[method][partner] += growth
            self.met[partner][method] += growth

    def pairs(self) -> list[int]:
        """Return how often every two methods meet."""
        return [self.met[method][other] for method, other in combinations(range(self.methods), 2)]

    def unevenness(self) -> tuple[int, int]:
        """Return both sums of squares: within seats, and between methods."""
        within = sum(number * number for shown in self.shown for number in shown)
        return within, sum(number * number for number in self.pairs())

    def is_flat(self) -> bool:
        """Whether all seats show the same of every arm, so that no swap changes anything."""
        return all(counts == self.counts[0] for counts in self.counts)

    def is_even(self) -> bool:
        """Whether seats show all features equally often, within one, and methods meet as evenly as can be."""
        met = self.pairs()
        return (not met or max(met) - min(met) <= (sum(met) % len(met) > 0)) and all(
            max(numbers) - min(numbers) <= 1 for numbers in zip(*self.shown, strict=True)
        )

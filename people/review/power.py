"""How many items and people a study needs: the width of an interval from their numbers, and the reverse.

Question: how wide will the interval of a share, a mean rating, a mean preference or a kappa be?
Formula: a vote has the variance s^2, of which the share a is due to its item (or other cluster, such as a
    story) and the share b to the person; n items have m votes each, from R people. The mean of all votes has
    the variance V = s^2 (a / n + b / R + (1 - a - b) / (n m)), and n m V / s^2 is the design effect. The
    width of a :class:`Share` is that of Wilson's interval for s^2 / V independent votes; of a :class:`Rating`
    2 z sqrt(V); of a :class:`Preference` 2 t sd / sqrt(units) over means of people, means of items or votes,
    as it is tested, and for the signed-rank test sqrt(pi / 3) times that; of a :class:`Kappa` 2 z sqrt(var),

        var = (Var P - 4 (1 - k) Cov(P, L) + 4 (1 - k)^2 Var L) / (n (1 - S2)^2)

    where P is the share of agreeing pairs of an item, L the mean of p_j over its votes, S_q the sum of p_j^q,
    and items are unanimous with probability k, else voted on independently:
    Var P = k + (1 - k) (S2^2 + 2 (S2 + 2 (m - 2) S3 - (2 m - 3) S2^2) / (m (m - 1))) - (k + (1 - k) S2)^2,
    Var L = k (S3 - S2^2) + (1 - k) (S3 - S2^2) / m and
    Cov(P, L) = k S2 + (1 - k) (S2^2 + 2 (S3 - S2^2) / m) - (k + (1 - k) S2) S2.
Input: what is guessed, or known from a pilot: shares, deviations, components of variance.
Output: the whole width, upper less lower end; numbers of items.
Undefined when: the width cannot be reached with so few people, which is an error that says so.
Source: Wilson (1927); Kish (1965) for the design effect; Hodges and Lehmann (1956) for the efficiency 3 / pi
    of the signed-rank test with normal values; the variance of kappa by the delta method, as in Gwet,
    "Large-sample variance of Fleiss generalized kappa" (2021). For k = 0 it is that of Fleiss, Nee and Landis
    (1979); for two people and two categories that of Bloch and Kraemer (1989), with which Donner and Eliasziw
    (1992) plan studies.
Departures: components of variance are taken as known, so that z stands where an analysis with few people has
    t. With more than two people, kappa alone does not give its variance: unanimity or chance gives wider
    intervals than people who err independently about a true label.
Example: 400 items with 3 votes each of a share of one half: without clusters 1,200 votes, width 0.0565; with
    a = 0.2 the design effect is 1 + 2 * 0.2 = 1.4, and the width 0.0668.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ...errors import ConfigError

LEVEL, ALPHA, POWER = 0.95, 0.05, 0.8
MOST_ITEMS = 10_000_000
"""The most items that are looked for."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Who votes.

    Attributes:
        votes: votes of each item.
        people: how many people there are in all; None: as many as ``load`` asks for.
        load: items that one person judges; None, without ``people``: everybody judges everything.
    """

    votes: int = 3
    people: int | None = None
    load: int | None = None

    def __post_init__(self) -> None:
        if self.votes < 1 or (self.load is not None and self.load < 1):
            raise ConfigError("votes", what="fewer than one vote or item", fix="give numbers from 1")
        if self.people is not None and (self.people < self.votes or self.load is not None):
            raise ConfigError(
                "people",
                what=f"{self.people} people, {self.votes} votes of each item, a load of {self.load or 'any'}",
                fix="take at least as many people as votes, and give people or their load, not both",
            )

    def size(self, items: int) -> int:
        """Return how many people judge so many items."""
        if self.people is not None:
            return self.people
        return max(self.votes, -(-items * self.votes // self.load) if self.load else 0)


class Quantity(Protocol):
    """What is to be known."""

    def width(self, items: int, crew: Crew, level: float = LEVEL) -> float:
        """Return the width of its interval."""
        ...


@dataclass(frozen=True, slots=True)
class Components:
    """What the variance of a vote is due to.

    Attributes:
        item: the share that is due to items, in [0, 1]; the correlation of two votes on one item.
        person: the share that is due to people; the correlation of two votes of one person.
    """

    item: float = 0.0
    person: float = 0.0

    def __post_init__(self) -> None:
        if min(self.item, self.person) < 0 or self.item + self.person > 1:
            what = f"shares {self.item} and {self.person} of the variance"
            raise ConfigError("components", what=what, fix="give shares from 0 that add to 1 at most")

    def of_mean(self, items: int, crew: Crew) -> float:
        """Return the variance of the mean of all votes, in units of the variance of one."""
        rest = 1 - self.item - self.person
        return self.item / items + self.person / crew.size(items) + rest / (items * crew.votes)

    def design_effect(self, items: int, crew: Crew) -> float:
        """Return how many times the variance is that of as many independent votes."""
        return items * crew.votes * self.of_mean(items, crew)


@dataclass(frozen=True, slots=True)
class Share:
    """A share of votes, such as of right answers.

    Attributes:
        share: what it is thought to be; 0.5 is the worst case.
        components: of the variance share (1 - share) of a vote.
    """

    share: float = 0.5
    components: Components = Components()

    def width(self, items: int, crew: Crew, level: float = LEVEL) -> float:
        """Return the width of Wilson's interval, in [0, 1]."""
        votes, z = 1 / self.components.of_mean(items, crew), _z(level)
        spread = self.share * (1 - self.share) / votes + z**2 / (4 * votes**2)
        return 2 * z * math.sqrt(spread) / (1 + z**2 / votes)


@dataclass(frozen=True, slots=True)
class Rating:
    """A mean of ratings.

    Attributes:
        deviation: standard deviation of one rating.
        components: of its variance.
    """

    deviation: float
    components: Components = Components()

    def width(self, items: int, crew: Crew, level: float = LEVEL) -> float:
        """Return the width of the interval of the mean, in units of the scale."""
        return 2 * _z(level) * self.deviation * math.sqrt(self.components.of_mean(items, crew))


@dataclass(frozen=True, slots=True)
class Preference:
    """A mean preference between two methods, as it is tested against zero.

    Attributes:
        deviation: standard deviation of one preference.
        components: of its variance.
        by: what the test takes as independent: ``person`` or ``item`` (one mean each), or every ``vote``.
        test: ``signed-rank``, or ``t`` of one sample.
    """

    deviation: float
    components: Components = Components()
    by: Literal["person", "item", "vote"] = "person"
    test: Literal["signed-rank", "t"] = "signed-rank"

    def width(self, items: int, crew: Crew, level: float = LEVEL) -> float:
        """Return the width of the interval that belongs to the test; infinite for one unit."""
        from scipy.special import stdtrit

        units, deviation = self._units(items, crew)
        if units < 2:
            return math.inf
        reach = float(stdtrit(units - 1, (1 + level) / 2)) * deviation / math.sqrt(units)
        return 2 * reach / math.sqrt(self._efficiency())

    def power(self, mean: float, items: int, crew: Crew, alpha: float = ALPHA) -> float:
        """Return the chance that the one-sided test finds a mean preference.

        Args:
            mean: the true one.
            items: how many are judged.
            crew: who votes.
            alpha: level of the test; for several criteria, divided by their number.
        """
        from scipy.special import nctdtr, stdtrit

        units, deviation = self._units(items, crew)
        if units < 2:
            return 0.0
        shift = mean / deviation * math.sqrt(units * self._efficiency())
        return 1 - float(nctdtr(units - 1, shift, stdtrit(units - 1, 1 - alpha)))

    def _efficiency(self) -> float:
        return 3 / math.pi if self.test == "signed-rank" else 1.0

    def _units(self, items: int, crew: Crew) -> tuple[int, float]:
        """Return how many units are tested, and the standard deviation of one."""
        if self.by == "vote":
            return items * crew.votes, self.deviation
        units = crew.size(items) if self.by == "person" else items
        own = self.components.person if self.by == "person" else self.components.item
        votes = max(1.0, items * crew.votes / units)
        return units, self.deviation * math.sqrt(own + (1 - own) / votes)


@dataclass(frozen=True, slots=True)
class Kappa:
    """Fleiss' kappa.

    Attributes:
        kappa: what it is thought to be, in [0, 1).
        shares: how often each category is chosen; they add to 1.
    """

    kappa: float
    shares: Sequence[float]

    def __post_init__(self) -> None:
        if not 0 <= self.kappa < 1 or not math.isclose(sum(self.shares), 1) or max(self.shares) >= 1:
            raise ConfigError(
                "kappa", what=f"kappa {self.kappa}, shares {', '.join(map(str, self.shares))}",
                fix="give a kappa from 0 and below 1, and shares of two categories or more that add to 1",
            )  # fmt: skip

    def width(self, items: int, crew: Crew, level: float = LEVEL) -> float:
        """Return the width of its large-sample interval."""
        if crew.votes < 2:
            raise ConfigError("votes", what="kappa of one vote", fix="take two votes of each item or more")
        return 2 * _z(level) * math.sqrt(self.variance(crew.votes) / items)

    def variance(self, votes: int) -> float:
        """Return the variance of kappa times the number of items, from so many votes of each."""
        second, third = (sum(share**power for share in self.shares) for power in (2, 3))
        kappa, chance, tie = self.kappa, 1 - self.kappa, third - second**2
        of_pairs = (
            2 * (second + 2 * (votes - 2) * third - (2 * votes - 3) * second**2) / (votes * (votes - 1))
        )
        agreed = kappa + chance * second
        var_agreed = kappa + chance * (second**2 + of_pairs) - agreed**2
        var_level = kappa * tie + chance * tie / votes
        both = kappa * second + chance * (second**2 + 2 * tie / votes) - agreed * second
        return (var_agreed - 4 * chance * both + 4 * chance**2 * var_level) / (1 - second) ** 2


def items_for(quantity: Quantity, width: float, crew: Crew, level: float = LEVEL) -> int:
    """Return the fewest items whose interval is no wider than wished.

    Raises:
        ConfigError: so few people cannot reach it, however many items they judge.
    """
    return _fewest(
        lambda items: quantity.width(items, crew, level) <= width,
        f"an interval of width {width:g} cannot be reached: with {MOST_ITEMS:,} items it is "
        f"{quantity.width(MOST_ITEMS, crew, level):.3g} wide, since people differ",
    )


def items_to_detect(
    preference: Preference, mean: float, crew: Crew, alpha: float = ALPHA, power: float = POWER
) -> int:
    """Return the fewest items with which the one-sided test finds a mean preference with some power.

    Raises:
        ConfigError: so few people cannot reach it, however many items they judge.
    """
    return _fewest(
        lambda items: preference.power(mean, items, crew, alpha) >= power,
        f"a power of {power:g} cannot be reached: with {MOST_ITEMS:,} items it is "
        f"{preference.power(mean, MOST_ITEMS, crew, alpha):.3g}, since people differ",
    )


def quantity(
    kind: str, share: float, deviation: float, components: Components, categories: Sequence[float]
) -> Quantity:
    """Return what is to be known, by its name.

    Args:
        kind: ``share``, ``mean``, ``preference`` or ``kappa``.
        share: the share, or the kappa, that is expected.
        deviation: standard deviation of one rating or preference.
        components: what the variance of a vote is due to.
        categories: of kappa, how often each category is chosen.

    Raises:
        ConfigError: there is no such quantity.
    """
    if kind == "share":
        return Share(share, components)
    if kind == "mean":
        return Rating(deviation, components)
    if kind == "preference":
        return Preference(deviation, components)
    if kind == "kappa":
        return Kappa(share, tuple(categories) or (0.5, 0.5))
    raise ConfigError(
        "review power",
        expected="share, mean, preference or kappa",
        found=repr(kind),
        fix="choose one of them",
    )


def _fewest(is_enough: Callable[[int], bool], why_not: str) -> int:
    """Return the least number of items that is enough, where more are always enough, too."""
    high = 1
    while not is_enough(high):
        if high >= MOST_ITEMS:
            raise ConfigError(
                "people", what=why_not, fix="take more people, or a load instead of their number"
            )
        high = min(MOST_ITEMS, high * 2)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _z(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)

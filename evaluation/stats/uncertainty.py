"""How sure a number is: its interval and p-value, and corrections for several tests made together."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError
from ...schemas.text import counted, plural
from ...schemas.values import Score
from ...validators.resampling import (
    FEW,
    LEAST,
    RESAMPLES,
    SEED,
    Floats,
    alike,
    divided,
    exact_ends,
    interval_by_size,
    percentile_interval,
    resampled_sums,
    standard_error,
)

# -- Ranks: of the values of a statistic, and of methods; what is equal up to rounding shares a rank
#
# 1 - 2/3 and 2/3 - 1/3 are one difference and two doubles, and a rank statistic that tells them apart makes
# an effect of the last bit. So all ranks, zeros and ties are taken of values that :func:`levelled` made
# equal.

DIGITS = 12
TOLERANCE = 10.0**-DIGITS
"""Values that are no further apart, in units of the larger one or of 1, are equal.

A double has 16 digits; a mean of thousands of them, or a difference of two means, keeps more than 12. Two
fractions that differ, with denominators up to a million, are further apart than this."""


def known(value: float | Floats) -> float | None:
    return None if np.isnan(value) else float(value)


def levelled(values: Floats, scale: float = 1.0) -> Floats:
    """Return values in which those that are equal up to rounding are equal, and zero where they are zero.

    ``values``: shape (..., n), compared along the last axis; ``nan`` and infinities stay as they are.

    >>> levelled(np.array([1 - 2 / 3, 2 / 3 - 1 / 3, 0.1 + 0.2 - 0.3])).tolist() == [1 - 2 / 3, 1 - 2 / 3, 0]
    True
    """
    if not np.size(values):
        return values
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(np.asarray(values, dtype=np.float64), order, axis=-1)
    ordered[np.abs(ordered) <= TOLERANCE * scale] = 0.0
    with np.errstate(invalid="ignore"):
        steps = np.diff(ordered, axis=-1)
        size = np.maximum(scale, np.maximum(np.abs(ordered[..., 1:]), np.abs(ordered[..., :-1])))
        same = (steps <= np.minimum(TOLERANCE * size, 0.5)) & np.isfinite(steps)  # 1e15 is not 1e15 + 1
    places = np.arange(1, ordered.shape[-1]) * ~same
    firsts = np.maximum.accumulate(np.insert(places, 0, 0, axis=-1), axis=-1)
    level = np.empty_like(ordered)
    np.put_along_axis(level, order, np.take_along_axis(ordered, firsts, axis=-1), axis=-1)
    return level


def scale_of(column: Floats) -> float:
    """Return the scale at which numbers of an unknown kind are levelled.

    Numbers on both sides of zero are differences, made from numbers as large as the largest. Others, such as
    p-values and likelihoods, may be tiny and differ all the same: each is compared by its own size.
    """
    known = column[np.isfinite(column)]
    return float(np.abs(known).max()) if len(known) and known.min() < 0 < known.max() else 0.0


def mean_ranks(values: Floats, scale: float = 1.0) -> Floats:
    """Return ranks from 1 of values of shape (n,), levelled at a scale; equal ones share the mean of theirs.

    As ``scipy.stats.rankdata`` has it, which takes a second to import.
    """
    _, places, counts = np.unique(levelled(values, scale), return_inverse=True, return_counts=True)
    shared: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return shared


def ranks(values: Floats, *, higher: bool = True) -> Floats:
    """Return ranks from 1: one more than the number of methods that are better; equal ones share theirs.

    ``values``: shape (..., methods), finite.
    """
    signed = values if higher else -values
    mine, theirs = signed[..., :, None], signed[..., None, :]
    margin = TOLERANCE * np.maximum(1.0, np.maximum(np.abs(mine), np.abs(theirs)))
    better: Floats = 1.0 + (theirs - mine > margin).sum(axis=-1)
    return better


def rank_intervals(
    table: Floats, *, higher: bool = True, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[tuple[int, int], ...]:
    """Return the 95 % interval of every method's rank over drawn stories; both ends are ranks.

    All methods are drawn on the same stories.

    ``table``: values, shape (stories, methods), finite.

    Returned: lowest and highest rank of each method; none without stories or drawings.
    """
    if not table.size or not resamples:
        return ()
    means = resampled_sums(table, resamples, seed) / len(table)
    low, high = percentile_interval(ranks(means, higher=higher))
    return tuple((math.floor(lowest), math.ceil(other)) for lowest, other in zip(low, high, strict=True))


# --


def two_sided_p(differences: Floats) -> float:
    """Return the bootstrap p-value of no difference: twice the smaller share beyond zero, at most 1.

    One is added to both counts, so that it is never zero; differences that are ``nan`` are left out.

    ``differences``: shape (resamples,), the difference in each resample.
    """
    known = differences[~np.isnan(differences)]
    if not len(known):
        return float("nan")
    beyond = min((known <= TOLERANCE).sum(), (known >= -TOLERANCE).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(known) + 1)))


def mean_of_known(values: Floats) -> Floats:
    """Return the mean over the last axis without ``nan`` entries; ``nan`` where all are."""
    known = ~np.isnan(values)
    return divided(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1).astype(np.float64))


__all__ = ["CORRECTIONS", "Interval", "Uncertainty", "bonferroni", "holm"]


def bonferroni(p_values: Floats) -> Floats:
    """Return p-values times their number, at most 1; ``nan`` entries stay and are not counted."""
    number = int((~np.isnan(p_values)).sum())
    return np.minimum(1.0, p_values * number)


def holm(p_values: Floats) -> Floats:
    """Return Holm's step-down p-values, at most 1; ``nan`` entries stay and are not counted.

    The k-th smallest of m is multiplied by m - k + 1, and none is below one that was smaller. It rejects
    whatever Bonferroni's correction rejects, and keeps the same error rate (Holm 1979).
    """
    corrected = np.full(p_values.shape, np.nan)
    order = np.argsort(p_values, kind="stable")[: int((~np.isnan(p_values)).sum())]
    steps = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * steps))
    return corrected


CORRECTIONS: Mapping[str, Callable[[Floats], Floats]] = {"holm": holm, "bonferroni": bonferroni}


Interval = Literal["by-size", "percentile"]
Bounds = tuple[Floats | float, Floats | float]
UNBOUNDED: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """How intervals and p-values over units (stories, prompts) are made.

    The percentile bootstrap is too sure of itself with few units: at a level of 0.05 it rejects a true null
    in 13 % of simulations with 6 of them, in 8 % with 15 and in 7 % with 25. ``by-size`` therefore takes
    Student's t below 30 units, with the standard error of the bootstrap, widened by sqrt(n / (n - 1)) because
    resampling shrinks it by as much; for a mean that is the usual t interval. That rejects in 4 to 6 %. Below
    6 units there is no interval and no p-value. Where all units have one value, say 100 % of each story, no
    resample differs, and both would have no width: ``by-size`` then takes the exact interval of Clopper and
    Pearson over the units, and none where what is measured has no bounds.

    Attributes:
        resamples: bootstrap resamples of the units; 0 for no intervals.
        seed: seed of the bootstrap [42].
        interval: intervals: ``by-size`` (Student's t below 30 stories or prompts, none below 6, exact where
            all have one value), or ``percentile`` for any number, as the papers have it [by-size].
        correction: correction of p-values that are computed together: ``holm``, or ``bonferroni`` as in the
            papers [holm].
    """

    resamples: int = RESAMPLES
    seed: int = SEED
    interval: Interval = "by-size"
    correction: str = "holm"

    def __post_init__(self) -> None:
        if self.resamples < 0:
            raise ConfigError("resamples", what=f"{self.resamples} is below 0", fix="give a number from 0")
        for name, known in (("interval", get_args(Interval)), ("correction", tuple(CORRECTIONS))):
            if getattr(self, name) not in known:
                raise ConfigError(
                    name, what=f"there is no {name} {getattr(self, name)!r}",
                    fix=f"choose {' or '.join(known)}",
                )  # fmt: skip

    def ends(
        self,
        values: Floats,
        replicates: Floats,
        units: Floats | int,
        bounds: Bounds = UNBOUNDED,
    ) -> tuple[Floats, Floats]:
        """Return the ends of 95 % intervals; ``nan`` where there is none.

        ``values``: what was computed from all units, shape (...). ``replicates``: the same from resampled
        units, shape (resamples, ...). ``units``: how many units each value stands on, shape (...), or one
        number for all. ``bounds``: lowest and highest possible values of a unit, shape (...), or one number
        for all.
        """
        if self.interval == "percentile":
            return percentile_interval(replicates)
        ends = interval_by_size(values, replicates, units, bounds)
        if not (one := alike(*ends)).any():
            return ends
        number = np.broadcast_to(np.asarray(units, dtype=np.float64), np.shape(values))
        low, high = (
            np.where(one, *pair) for pair in zip(exact_ends(values, number, bounds), ends, strict=True)
        )
        return low, high

    def with_ends(
        self,
        scores: Sequence[Score],
        tops: Floats,
        bottoms: Floats,
        bounds: Bounds = UNBOUNDED,
    ) -> list[Score]:
        """Return scores that are sums over sums with their 95 % intervals, where there are some.

        All see the same drawings of the units.

        ``tops``, ``bottoms``: what is added up of each unit, shape (units, ratios).
        """
        width, drawn = tops.shape[1], self.resamples if len(tops) else 0
        sums = resampled_sums(np.concatenate([tops, bottoms], axis=1), drawn, self.seed)
        replicates = divided(sums[:, :width], sums[:, width:])
        values = np.array([np.nan if score.value is None else score.value for score in scores])
        low, high = self.ends(values, replicates, (bottoms > 0).sum(axis=0).astype(np.float64), bounds)
        return [score.between(*ends) for score, *ends in zip(scores, low, high, strict=True)]

    def p_value(self, value: float, replicates: Floats, units: int) -> float:
        """Return the two-sided p-value of no difference; ``nan`` where there is none. It is never zero.

        ``replicates``: the difference in each resample, shape (resamples,).
        """
        known = replicates[~np.isnan(replicates)]
        if self.interval == "percentile" or units >= FEW:
            return two_sided_p(replicates)
        if units < LEAST or not len(known) or np.isnan(value):
            return float("nan")
        from scipy.special import stdtr

        error = float(standard_error(known, np.asarray(float(units))))
        if error <= TOLERANCE:  # all differences are one number: how likely is it that all have this sign
            return 1.0 if abs(value) <= TOLERANCE else max(2 * 0.5**units, 2 / (len(known) + 1))
        return max(2 * float(stdtr(units - 1, -abs(value) / error)), 2 / (len(known) + 1))

    def method(self, units: int) -> str | None:
        """Return the name of what an interval over so many units is made with; None where there is none."""
        if self.interval == "by-size" and units < LEAST:
            return None
        return "percentile" if self.interval == "percentile" or units >= FEW else "t"

    def meaning(self, units: int, unit: str) -> str:
        """Return in a sentence what the brackets behind values over so many units are; empty for nothing."""
        method = self.method(units) if self.resamples else None
        if method is None:
            return ""
        how = "Student's t, resampled standard error" if method == "t" else f"{self.resamples:,} resamples"
        return f"In brackets 95 % intervals over {plural(unit)} ({how})."

    def notes(self, units: int, unit: str) -> tuple[str, ...]:
        """Return what a reader must know of intervals and tests over few units.

        Nothing where they are many.
        """
        if self.interval == "percentile" or units >= FEW or not self.resamples:
            return ()
        if units < LEAST:
            return (f"{counted(units, unit)}: too few for intervals and tests, which need {LEAST}",)
        return (
            f"{counted(units, unit)}, fewer than {FEW}: intervals and p-values are of Student's t, not of "
            "percentiles of resamples",
        )


# -- The one comparison of two methods over the units that both have: signed-rank test and effect sizes

Alternative = Literal["greater", "two-sided"]
EXACT = 50
"""Up to so many differences other than zero the p-value is exact, ties included; beyond, it is the normal
approximation with the correction for ties and without one for continuity."""


@dataclass(frozen=True)
class SignedRank:
    # how many differences are not zero, up to rounding; zeros are dropped before ranking (Wilcoxon's own way)
    count: int
    zeros: int  # how many are
    positive: float  # sum of the ranks of the positive differences, W+; tied ones share their mean rank
    negative: float  # sum of the ranks of the negative differences, W-
    # probability of such a W+, or a more extreme one, if signs were tossed; 1 without differences
    p_value: float
    exact: bool  # whether it was counted out, not approximated

    @property
    def rank_biserial(self) -> float:
        """(W+ - W-) / (W+ + W-), in [-1, 1]; ``nan`` where all differences are zero."""
        total = self.positive + self.negative
        return (self.positive - self.negative) / total if total else float("nan")


def signed_rank(differences: NDArray[np.float64], alternative: Alternative = "greater") -> SignedRank:
    """Test whether differences are centred at zero.

    ``differences``: shape (n,), finite. ``alternative``: ``greater``: the median is above zero;
    ``two-sided``: it is not zero.
    """
    values = levelled(np.asarray(differences, dtype=np.float64))
    kept = values[values != 0]
    zeros = len(values) - len(kept)
    if not len(kept):
        return SignedRank(0, zeros, 0.0, 0.0, 1.0, True)
    ranks = mean_ranks(np.abs(kept))
    positive, negative = float(ranks[kept > 0].sum()), float(ranks[kept < 0].sum())
    if exact := len(kept) <= EXACT:
        above, below = _tails(ranks, positive)
    else:
        from scipy.special import ndtr

        spread = np.sqrt((ranks**2).sum() / 4)  # equals the usual formula with its correction for ties
        score = (positive - ranks.sum() / 2) / spread
        above, below = float(ndtr(-score)), float(ndtr(score))
    p_value = above if alternative == "greater" else min(1.0, 2 * min(above, below))
    return SignedRank(len(kept), zeros, positive, negative, p_value, exact)


def _tails(ranks: NDArray[np.float64], positive: float) -> tuple[float, float]:
    """Return P(W+ >= positive) and P(W+ <= positive) over all assignments of signs to these ranks."""
    doubled = np.rint(ranks * 2).astype(np.int64)  # shared ranks are halves
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[:-rank]
        chances = (chances + moved) / 2
    doubled_rank = round(positive * 2)
    return min(1.0, float(chances[doubled_rank:].sum())), min(1.0, float(chances[: doubled_rank + 1].sum()))


def cohen_d(differences: NDArray[np.float64]) -> float:
    """Return Cohen's d of paired differences: their mean over their standard deviation (d_z).

    ``nan`` with fewer than two differences, or where all are the same.
    """
    if len(differences) < 2:
        return float("nan")
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    return mean / spread if spread > TOLERANCE * max(1.0, abs(mean)) else float("nan")


LEVEL = 0.05


@dataclass(frozen=True)
class Pair:
    """Two methods before they are compared."""

    first: str  # method
    second: str  # method
    # first less second, per unit that both have, shape (units,); finite
    differences: Floats = field(repr=False)
    # what is compared, such as the metric or the judge, by its name in JSON
    about: Mapping[str, str] = field(default_factory=dict)
    # the difference of the set, where it is not the mean of the units' differences
    value: float | None = None
    # that difference in each resample, shape (resamples,)
    replicates: Floats | None = field(default=None, repr=False)
    # the largest difference that a unit can have, either way
    reach: float = np.inf


@dataclass(frozen=True, slots=True)
class Paired:
    """One method against another over the units that both have."""

    about: Mapping[str, str]  # what is compared, such as the metric or the judge, by its name in JSON
    first: str  # method
    second: str  # method
    unit: str  # what is paired: story or prompt
    n: int  # how many units both have
    difference: float | None  # of the first less the second; None where it is undefined
    low: float | None  # lower end of its 95 % interval
    high: float | None  # upper end
    # what the interval and ``p_bootstrap`` are made with: ``percentile`` or Student's ``t``, both with
    # resampled units, or ``exact`` (see :class:`.uncertainty.Uncertainty`); None where there is no interval
    interval: str | None
    p_bootstrap: float | None  # two-sided p-value of no difference, not corrected
    p_bootstrap_corrected: float | None  # the same, corrected for the comparisons that were made together
    p_wilcoxon: float | None  # two-sided p-value of the signed-rank test over units, not corrected
    p_wilcoxon_corrected: float | None  # the same, corrected
    correction: str  # which correction that is: ``holm`` or ``bonferroni``
    cohen_d: float | None  # effect size of the units' differences, d_z
    rank_biserial: float | None  # effect size of their signed ranks (KathaTrace, Eq. 49).
    higher: int  # units in which the first has the higher value
    lower: int  # units in which it has the lower one
    equal: int  # units in which they have the same
    least: float | None = None  # smallest ``p_bootstrap`` that so many resamples can give; not in the JSON

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON; the number of units bears their name."""
        own = ("about", "unit", "n", "least")
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in own}
        return {**self.about, **fields, plural(self.unit): self.n}

    def winner(self, *, higher: bool) -> str | None:
        """Return the better method where both tests, corrected, tell the two apart; else None."""
        if self.difference is None or len(self.tests) < 2 or max(self.tests) >= LEVEL:
            return None
        return self.first if (self.difference > 0) == higher else self.second

    def line(self, scale: float = 100, digits: int = 1) -> str:
        pair = " ".join([*(f"{value}:" for value in self.about.values()), f"{self.first} - {self.second}"])
        if self.difference is None:
            return f"{pair}: undefined, nothing is valid for both"
        ends = ""
        if self.low is not None and self.high is not None:
            ends = f" [{scale * self.low:.{digits}f}, {scale * self.high:.{digits}f}]"
        if not self.tests:
            few = f"{counted(self.n, self.unit)}, too few for a test"
            return f"{pair}: {scale * self.difference:+.{digits}f}, {few}"
        return (
            f"{pair}: {scale * self.difference:+.{digits}f}{ends}, {counted(self.n, self.unit)}, "
            f"p{'<' if self.at_least else '='}{short(self.p_bootstrap_corrected)} ({self.resampled_test}), "
            f"p={short(self.p_wilcoxon_corrected)} (Wilcoxon), "
            f"d={short(self.cohen_d)}, r_rb={short(self.rank_biserial)}"
        )

    @property
    def resampled_test(self) -> str:
        """What ``p_bootstrap`` is of, for readers."""
        return {"t": "Student's t", "exact": "sign test"}.get(self.interval or "", "bootstrap")

    @property
    def at_least(self) -> bool:
        """Whether ``p_bootstrap`` is the smallest value that so many resamples can give."""
        return None not in (self.p_bootstrap, self.least) and self.p_bootstrap <= self.least  # type: ignore[operator]

    @property
    def tests(self) -> tuple[float, ...]:
        """The corrected p-values that there are."""
        return tuple(p for p in (self.p_wilcoxon_corrected, self.p_bootstrap_corrected) if p is not None)


def paired_lines(
    pairs: Sequence[Paired], scale: float = 100, digits: int = 1, more: Callable[[Paired], str] = lambda _: ""
) -> Iterator[str]:
    """Yield comparisons for people; where no pair has enough units for a test, one line says so."""
    known = [pair for pair in pairs if pair.difference is not None]
    if known and not any(pair.tests for pair in known):
        most = max(known, key=lambda pair: pair.n)
        few = f"{counted(most.n, most.unit)}: too few to tell methods apart, which takes {LEAST}"
        yield f"  {few}; --format csv has the differences of their means"
        return
    yield from (f"  {pair.line(scale, digits)}{more(pair)}" for pair in pairs)


def paired(pairs: Sequence[Pair], unit: str, uncertainty: Uncertainty) -> tuple[Paired, ...]:
    """Return every pair compared; p-values are corrected for the number of pairs that are given."""
    rows = [_row(pair, uncertainty) for pair in pairs]
    corrected = {
        f"{name}_corrected": CORRECTIONS[uncertainty.correction](np.array([row[name] for row in rows]))
        for name in ("p_bootstrap", "p_wilcoxon")
    }
    made = []
    for index, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        signs = np.sign(levelled(pair.differences))
        values = {**row, **{name: float(column[index]) for name, column in corrected.items()}}
        made.append(
            Paired(
                about=dict(pair.about), first=pair.first, second=pair.second, unit=unit,
                n=len(pair.differences),
                interval=_interval(row, pair, uncertainty),
                correction=uncertainty.correction, least=2 / (uncertainty.resamples + 1),
                higher=int((signs > 0).sum()), lower=int((signs < 0).sum()), equal=int((signs == 0).sum()),
                **{name: None if np.isnan(value) else value for name, value in values.items()},
            )
        )  # fmt: skip
    return tuple(made)


def _interval(row: Mapping[str, float], pair: Pair, uncertainty: Uncertainty) -> str | None:
    if np.isnan(row["low"]):
        return None
    drawn = pair.differences if pair.replicates is None else pair.replicates
    one = uncertainty.interval == "by-size" and np.ptp(drawn[~np.isnan(drawn)]) <= TOLERANCE
    return "exact" if one else uncertainty.method(len(pair.differences))


def _row(pair: Pair, uncertainty: Uncertainty) -> dict[str, float]:
    differences, number = pair.differences, len(pair.differences)
    value, replicates = pair.value, pair.replicates
    if value is None or replicates is None:
        value = float(differences.mean()) if number else float("nan")
        drawn = uncertainty.resamples if number else 0
        sums = resampled_sums(differences[:, None], drawn, uncertainty.seed)
        replicates = sums[:, 0] / max(number, 1)
    low, high = uncertainty.ends(np.asarray(value), replicates, number, (-pair.reach, pair.reach))
    ranks = signed_rank(differences, "two-sided")
    tested = number > 0 and uncertainty.method(number) is not None
    return {
        "difference": value,
        "low": float(low),
        "high": float(high),
        "p_bootstrap": uncertainty.p_value(value, replicates, number),
        "p_wilcoxon": ranks.p_value if tested else float("nan"),
        "cohen_d": cohen_d(differences),
        "rank_biserial": ranks.rank_biserial,
    }


def short(value: float | None) -> str:
    """Return a p-value or an effect size with three digits; ``-`` for none."""
    return "-" if value is None else f"{value:.3g}"

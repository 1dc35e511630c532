"""The one comparison of two methods over the units that both have: signed-rank test and effect sizes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...schemas.text import counted, plural
from ...validators.resampling import LEAST, Floats, resampled_sums
from .ranks import TOLERANCE, levelled, mean_ranks
from .uncertainty import CORRECTIONS, Uncertainty

Alternative = Literal["greater", "two-sided"]
EXACT = 50
"""Up to so many differences other than zero the p-value is exact, ties included; beyond, it is the normal
approximation with the correction for ties and without one for continuity."""


@dataclass(frozen=True)
class SignedRank:
    """A signed-rank test."""

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
    # resampled units (see :class:`.uncertainty.Uncertainty`); None where there is no interval
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
        """Return it as one line for people."""
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
        """What ``p_bootstrap`` is of, for readers: Student's t, or the bootstrap."""
        return "Student's t" if self.interval == "t" else "bootstrap"

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
                interval=None if np.isnan(row["low"]) else uncertainty.method(len(pair.differences)),
                correction=uncertainty.correction, least=2 / (uncertainty.resamples + 1),
                higher=int((signs > 0).sum()), lower=int((signs < 0).sum()), equal=int((signs == 0).sum()),
                **{name: None if np.isnan(value) else value for name, value in values.items()},
            )
        )  # fmt: skip
    return tuple(made)


def _row(pair: Pair, uncertainty: Uncertainty) -> dict[str, float]:
    differences, number = pair.differences, len(pair.differences)
    value, replicates = pair.value, pair.replicates
    if value is None or replicates is None:
        value = float(differences.mean()) if number else float("nan")
        drawn = uncertainty.resamples if number else 0
        sums = resampled_sums(differences[:, None], drawn, uncertainty.seed)
        replicates = sums[:, 0] / max(number, 1)
    low, high = uncertainty.ends(np.asarray(value), replicates, number)
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

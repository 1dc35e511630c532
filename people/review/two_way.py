"""Intervals of what people said about items: reviewers and items are both taken as drawn from many.

Question: how sure is a mean, a share or an agreement, when the votes of one reviewer belong together, and so
    do the votes on one item?
Formula: both are left out in turn, one reviewer, one item, one vote at a time (jackknife); with V the
    variance of each, (m - 1) / m times the sum of squares around the mean, V = V_reviewers + V_items -
    V_votes, and no less than either of the first two. The interval is Student's t with V^2 / (V_r^2 / (R - 1)
    + V_i^2 / (I - 1)) degrees of freedom (Satterthwaite), that of a share Wilson's with p (1 - p) / V votes
    in place of their number; of a share of 0 or 1 there are as many as items.
Input: for each vote its value, its reviewer and its item; of agreement also what was judged of the item.
Output: value and ends of the 95 % interval.
Undefined when: there is no vote. There is no interval below 6 items, or where leaving anything out changes
    nothing; below 3 reviewers it is over items alone, which tells nothing of other reviewers, and says so.
Source: Cameron, Gelbach and Miller, "Robust inference with multiway clustering" (2011), for the sum; Owen,
    "The pigeonhole bootstrap" (2007), for why resampling both at once is too wide: it counts what is left of
    single votes three times; Fleiss (1971), Wilson (1927), Satterthwaite (1946).
Departures: leaving out in place of drawing with replacement: a reviewer drawn twice would agree with
    themselves. In simulations with effects of reviewers and items, 3 to 30 reviewers and 3 votes an item,
    intervals hold the true mean in 92 to 98 %, the true share in 93 to 99 %, the true kappa in 93 to 99 % of
    studies; intervals over items alone hold it in 40 to 95 %.
Example: two reviewers rate three items (1, 1), (2, 4), (3, 5). Without a reviewer the mean is 2 or 10/3 in
    place of 8/3: V_reviewers = 1/2 (4/9 + 4/9) = 4/9.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...evaluation.stats.agreement import krippendorff_alpha, observed_agreement
from ...schemas.canonical import Json
from ...validators.agreement import kappa_of_sums
from ...validators.resampling import LEAST, Floats, divided

Codes = NDArray[np.int64]
LEAST_REVIEWERS = 3
"""Below so many reviewers an interval is over items alone."""
BOTH, ITEMS = "reviewers and items", "items"


@dataclass(frozen=True)
class Crossed:
    """Who said something about what: codes from 0, one entry for each vote, shape (votes,)."""

    reviewers: Codes
    items: Codes

    @classmethod
    def of(cls, reviewers: Codes, items: Codes) -> "Crossed":
        """Return it with codes that leave no number out."""
        return cls(np.unique(reviewers, return_inverse=True)[1], np.unique(items, return_inverse=True)[1])

    def counts(self) -> dict[str, int]:
        """Return how many votes, reviewers and items there are."""
        return {
            "votes": len(self.items), "reviewers": len(np.unique(self.reviewers)),
            "items": len(np.unique(self.items)),
        }  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A number with its interval.

    Attributes:
        value: the number; None where it is undefined.
        low: end of the 95 % interval; None where there is none.
        high: the other end.
        over: what the interval stands for other draws of; None where there is none.
        counts: votes, reviewers and items.
    """

    value: float | None
    low: float | None
    high: float | None
    over: str | None
    counts: dict[str, int]

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {"value": self.value, "low": self.low, "high": self.high, "over": self.over, **self.counts}


@dataclass(frozen=True)
class _Spread:
    """Variance of a number, degrees of freedom, and what it is over; None where it is not known."""

    variance: float
    freedom: float
    over: str


def mean_of(values: Floats, crossed: Crossed, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Measured:
    """Return a mean over votes with its interval.

    Args:
        values: of each vote, shape (votes,).
        crossed: who said it about what.
        bounds: lowest and highest possible value.
    """
    counts = crossed.counts()
    if not len(values):
        return Measured(None, None, None, None, counts)
    mean, spread = float(values.mean()), _spread_of_mean(values, crossed)
    if spread is None or spread.variance <= 0:
        return Measured(mean, None, None, None, counts)
    reach = _t(spread.freedom) * float(np.sqrt(spread.variance))
    return Measured(mean, max(bounds[0], mean - reach), min(bounds[1], mean + reach), spread.over, counts)


def share_of(hits: Floats, crossed: Crossed) -> Measured:
    """Return a share of votes with its interval.

    Args:
        hits: 1 or 0 for each vote, shape (votes,).
        crossed: who said it about what.
    """
    counts = crossed.counts()
    if not len(hits):
        return Measured(None, None, None, None, counts)
    share, spread = float(hits.mean()), _spread_of_mean(hits, crossed)
    if spread is None:
        return Measured(share, None, None, None, counts)
    number, freedom = float(counts["items"]), float(counts["items"] - 1)
    if spread.variance > 0:
        number = min(share * (1 - share) / spread.variance, float(len(hits)))
        freedom = spread.freedom
    t = _t(freedom)
    middle = (share + t * t / (2 * number)) / (1 + t * t / number)
    reach = (
        t
        / (1 + t * t / number)
        * float(np.sqrt(share * (1 - share) / number + t * t / (4 * number * number)))
    )
    return Measured(share, max(0.0, middle - reach), min(1.0, middle + reach), spread.over, counts)


def _spread_of_mean(values: Floats, crossed: Crossed) -> _Spread | None:
    total, number = values.sum(), float(len(values))

    def without(codes: Codes) -> Floats:
        sums, sizes = np.bincount(codes, values), np.bincount(codes).astype(np.float64)
        return divided(total - sums, number - sizes)

    votes = np.arange(len(values))
    return _spread(without(crossed.reviewers), without(crossed.items), without(votes))


@dataclass(frozen=True)
class Agreement:
    """How far reviewers agree: the share of agreeing pairs, Fleiss' kappa, Krippendorff's alpha."""

    pairs: float | None
    kappa: Measured | None
    alpha: float | None
    units: int

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        kappa = None if self.kappa is None else self.kappa.as_json()
        return {"pairs": self.pairs, "kappa": kappa, "alpha": self.alpha, "units": self.units}


def agreement_of(answers: Codes, units: Codes, crossed: Crossed, *, ordinal: bool = False) -> Agreement:
    """Return how far reviewers agree on what was judged.

    Args:
        answers: the answer of each vote, codes from 0; for ordinal ones in order. Shape (votes,).
        units: what was judged of the item, such as a question, codes from 0. Shape (votes,).
        crossed: who said it about which item.
        ordinal: whether answers are steps of a scale: alpha then is ordinal, and there is no kappa.
    """
    width = int(answers.max()) + 1 if len(answers) else 0
    table = _table(answers, units, width)
    two = int((table.sum(axis=1) >= 2).sum()) if len(answers) else 0
    if not two:
        return Agreement(
            None, None if ordinal else Measured(None, None, None, None, crossed.counts()), None, 0
        )
    alpha = krippendorff_alpha(table, "ordinal" if ordinal else "nominal")
    kappa = None if ordinal else _kappa(answers, units, crossed, table)
    return Agreement(observed_agreement(table), kappa, None if np.isnan(alpha) else alpha, two)


def _table(answers: Codes, units: Codes, width: int, rows: int | None = None) -> Floats:
    """Return how often each unit got each answer, shape (units, answers)."""
    rows = (int(units.max()) + 1 if len(units) else 0) if rows is None else rows
    counts = np.bincount(units * width + answers, minlength=rows * width)
    return counts.reshape(rows, width).astype(np.float64)


def _sums(table: Floats) -> Floats:
    """Return what kappa is made of, for each unit: share of agreeing pairs, 1 if there is one, the counts."""
    number = table.sum(axis=1)
    there = number >= 2
    pairs = number * (number - 1)
    shares = np.where(there, (table * (table - 1)).sum(axis=1) / np.where(there, pairs, 1.0), 0.0)
    sums: Floats = np.column_stack([shares, there.astype(np.float64), table * there[:, None]])
    return sums


def _kappa(answers: Codes, units: Codes, crossed: Crossed, table: Floats) -> Measured:
    sums = _sums(table)
    total = sums.sum(axis=0)

    def kappa(changed: Floats) -> Floats:
        return kappa_of_sums(changed[:, 0], changed[:, 1], changed[:, 2:])

    value = float(kappa(total[None, :])[0])
    counts = crossed.counts()
    if np.isnan(value):
        return Measured(None, None, None, None, counts)
    of_item = np.zeros((counts["items"], sums.shape[1]))
    item_of_unit = np.zeros(len(table), dtype=np.int64)
    item_of_unit[units] = crossed.items
    np.add.at(of_item, item_of_unit, sums)
    without_reviewer = np.array(
        [
            _sums(_table(answers[kept], units[kept], table.shape[1], len(table))).sum(axis=0)
            for kept in (crossed.reviewers != code for code in range(counts["reviewers"]))
        ]
    )
    fewer = table[units]
    fewer[np.arange(len(answers)), answers] -= 1
    without_vote = total - sums[units] + _sums(fewer)
    spread = _spread(kappa(without_reviewer), kappa(total - of_item), kappa(without_vote))
    if spread is None or spread.variance <= 0:
        return Measured(value, None, None, None, counts)
    reach = _t(spread.freedom) * float(np.sqrt(spread.variance))
    return Measured(value, max(-1.0, value - reach), min(1.0, value + reach), spread.over, counts)


def _spread(without_reviewer: Floats, without_item: Floats, without_vote: Floats) -> _Spread | None:
    """Return the variance of a number from what it is without each reviewer, item and vote."""
    reviewers, items = len(without_reviewer), len(without_item)
    of_items = _jackknife(without_item)
    if items < LEAST or np.isnan(of_items):
        return None
    of_reviewers = _jackknife(without_reviewer)
    if reviewers < LEAST_REVIEWERS or np.isnan(of_reviewers):
        return _Spread(of_items, items - 1.0, ITEMS)
    of_votes = _jackknife(without_vote)
    variance = max(of_reviewers + of_items - of_votes, of_reviewers, of_items)
    parts = of_reviewers**2 / (reviewers - 1) + of_items**2 / (items - 1)
    return _Spread(variance, variance**2 / parts if parts else items - 1.0, BOTH)


def _jackknife(values: Floats) -> float:
    """Return the variance of a number from what it is without one at a time; ``nan`` with fewer than two."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return float("nan")
    return float((len(known) - 1) / len(known) * ((known - known.mean()) ** 2).sum())


def _t(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))

"""Wilcoxon's signed-rank test for ordinal differences, with its effect size."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Alternative = Literal["greater", "two-sided"]
EXACT = 50
"""Up to so many differences other than zero the p-value is exact, ties included; beyond, it is the normal
approximation with the correction for ties and without one for continuity."""


@dataclass(frozen=True)
class SignedRank:
    """A signed-rank test.

    Attributes:
        count: how many differences are not zero; zeros are dropped before ranking (Wilcoxon's own way).
        zeros: how many are.
        positive: sum of the ranks of the positive differences, W+; tied ones share their mean rank.
        negative: sum of the ranks of the negative differences, W-.
        p_value: probability of such a W+, or a more extreme one, if signs were tossed; 1 without differences.
        exact: whether it was counted out, not approximated.
    """

    count: int
    zeros: int
    positive: float
    negative: float
    p_value: float
    exact: bool

    @property
    def rank_biserial(self) -> float:
        """(W+ - W-) / (W+ + W-), in [-1, 1]; ``nan`` where all differences are zero."""
        total = self.positive + self.negative
        return (self.positive - self.negative) / total if total else float("nan")


def signed_rank(differences: NDArray[np.float64], alternative: Alternative = "greater") -> SignedRank:
    """Test whether differences are centred at zero.

    Args:
        differences: shape (n,), finite.
        alternative: ``greater``: the median is above zero; ``two-sided``: it is not zero.
    """
    from scipy.stats import norm, rankdata

    values = np.asarray(differences, dtype=np.float64)
    kept = values[values != 0]
    zeros = len(values) - len(kept)
    if not len(kept):
        return SignedRank(0, zeros, 0.0, 0.0, 1.0, True)
    ranks = rankdata(np.abs(kept))
    positive, negative = float(ranks[kept > 0].sum()), float(ranks[kept < 0].sum())
    if exact := len(kept) <= EXACT:
        above, below = _tails(ranks, positive)
    else:
        spread = np.sqrt((ranks**2).sum() / 4)  # equals the usual formula with its correction for ties
        score = (positive - ranks.sum() / 2) / spread
        above, below = float(norm.sf(score)), float(norm.cdf(score))
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
    place = round(positive * 2)
    return min(1.0, float(chances[place:].sum())), min(1.0, float(chances[: place + 1].sum()))

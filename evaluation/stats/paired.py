"""Tests of paired differences."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Alternative = Literal["two-sided", "greater", "less"]


def wilcoxon_p(differences: Floats, alternative: Alternative = "two-sided") -> float:
    """Return the p-value of the Wilcoxon signed-rank test that differences are centred on zero.

    Differences of zero are left out; where all are zero nothing speaks against the hypothesis and it is 1.
    The exact distribution is used for up to 50 differences without ties, the normal one otherwise.

    Args:
        differences: shape (pairs,), nothing missing.
        alternative: two-sided, or whether the differences are greater or less than zero.
    """
    from scipy.stats import rankdata, wilcoxon

    if not len(differences):
        return float("nan")
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    sizes = np.abs(moved)
    exact = len(moved) <= 50 and len(np.unique(rankdata(sizes))) == len(moved)
    method: Literal["exact", "asymptotic"] = "exact" if exact else "asymptotic"
    return float(wilcoxon(moved, alternative=alternative, method=method).pvalue)


def bonferroni(p_values: Floats) -> Floats:
    """Return p-values times their number, at most 1; ``nan`` entries stay and are not counted."""
    number = int((~np.isnan(p_values)).sum())
    return np.minimum(1.0, p_values * number)

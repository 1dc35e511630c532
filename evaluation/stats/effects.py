"""Effect sizes of paired differences."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cohen_d(differences: Floats) -> float:
    """Return Cohen's d of paired differences: their mean over their standard deviation (d_z).

    ``nan`` with fewer than two differences, or where all are the same.
    """
    if len(differences) < 2:
        return float("nan")
    spread = float(differences.std(ddof=1))
    mean = float(differences.mean())
    return mean / spread if spread > 1e-12 * max(1.0, abs(mean)) else float("nan")


def rank_biserial(differences: Floats) -> float:
    """Return the matched-pairs rank-biserial correlation, in [-1, 1] (KathaTrace, Eq. 49).

    It is (W+ - W-) / (W+ + W-) with the rank sums of positive and negative differences. Differences of zero
    are left out; ``nan`` where none is left.
    """
    from scipy.stats import rankdata

    moved = differences[differences != 0]
    if not len(moved):
        return float("nan")
    ranks = rankdata(np.abs(moved))
    return float((ranks * np.sign(moved)).sum() / ranks.sum())

"""Effect sizes of paired differences; that of signed ranks is with its test, in :mod:`.signed_rank`."""

import numpy as np
from numpy.typing import NDArray


def cohen_d(differences: NDArray[np.float64]) -> float:
    """Return Cohen's d of paired differences: their mean over their standard deviation (d_z).

    ``nan`` with fewer than two differences, or where all are the same.
    """
    if len(differences) < 2:
        return float("nan")
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    return mean / spread if spread > 1e-12 * max(1.0, abs(mean)) else float("nan")

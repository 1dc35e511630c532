"""Corrections of p-values for several tests that are made together."""

import numpy as np
from numpy.typing import NDArray


def bonferroni(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values times their number, at most 1; ``nan`` entries stay and are not counted."""
    number = int((~np.isnan(p_values)).sum())
    return np.minimum(1.0, p_values * number)

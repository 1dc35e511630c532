"""Corrections of p-values for several tests that are made together."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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

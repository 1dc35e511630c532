"""Resampling of stories: p-values of differences, and means of what is known.

Sums over drawn stories and percentiles are those of :mod:`fabula.validators.resampling`.
"""

import numpy as np

from ...validators.resampling import Floats, divided
from .ranks import TOLERANCE


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

"""Resampling of stories: p-values of differences, means of what is known, and ranks with intervals.

Sums over drawn stories and percentiles are those of :mod:`fabula.validators.resampling`.
"""

import math

import numpy as np

from ...validators.resampling import (
    LEVEL,
    RESAMPLES,
    SEED,
    Floats,
    divided,
    draws,
    percentile_interval,
    resampled_sums,
)

__all__ = [
    "LEVEL", "RESAMPLES", "SEED", "Floats", "divided", "draws", "mean_of_known", "percentile_interval",
    "rank_intervals", "ranks", "resampled_sums", "two_sided_p",
]  # fmt: skip


def two_sided_p(differences: Floats) -> float:
    """Return the bootstrap p-value of no difference: twice the smaller share beyond zero, at most 1.

    One is added to both counts, so that it is never zero; differences that are ``nan`` are left out.

    Args:
        differences: shape (resamples,), the difference in each resample.
    """
    known = differences[~np.isnan(differences)]
    if not len(known):
        return float("nan")
    beyond = min((known <= 0).sum(), (known >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(known) + 1)))


def mean_of_known(values: Floats) -> Floats:
    """Return the mean over the last axis without ``nan`` entries; ``nan`` where all are."""
    known = ~np.isnan(values)
    return divided(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1).astype(np.float64))


_ALIKE = 1e-9
"""Means that differ by less, in units of the larger one or of 1, are the same: rounding decides no rank."""


def ranks(values: Floats, *, higher: bool = True) -> Floats:
    """Return ranks from 1: one more than the number of methods that are better; equal ones share theirs.

    Args:
        values: shape (..., methods), finite.
        higher: whether the higher value is the better one.
    """
    signed = values if higher else -values
    mine, theirs = signed[..., :, None], signed[..., None, :]
    margin = _ALIKE * np.maximum(1.0, np.maximum(np.abs(mine), np.abs(theirs)))
    better: Floats = 1.0 + (theirs - mine > margin).sum(axis=-1)
    return better


def rank_intervals(
    table: Floats, *, higher: bool = True, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[tuple[int, int], ...]:
    """Return the 95 % interval of every method's rank over drawn stories; both ends are ranks.

    All methods are drawn on the same stories.

    Args:
        table: values, shape (stories, methods), finite.
        higher: whether the higher value is the better one.
        resamples: how often the stories are drawn.
        seed: of the random numbers.

    Returns:
        Lowest and highest rank of each method; none without stories or drawings.
    """
    if not table.size or not resamples:
        return ()
    means = resampled_sums(table, resamples, seed) / len(table)
    low, high = percentile_interval(ranks(means, higher=higher))
    return tuple((math.floor(lowest), math.ceil(other)) for lowest, other in zip(low, high, strict=True))

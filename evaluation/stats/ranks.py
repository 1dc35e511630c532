"""Ranks: of the values of a statistic, and of methods; what is equal up to rounding shares a rank.

1 - 2/3 and 2/3 - 1/3 are one difference and two doubles, and a rank statistic that tells them apart makes
an effect of the last bit. So all ranks, zeros and ties are taken of values that :func:`levelled` made equal.
"""

import math

import numpy as np

from ...validators.resampling import RESAMPLES, SEED, Floats, percentile_interval, resampled_sums

DIGITS = 12
TOLERANCE = 10.0**-DIGITS
"""Values that are no further apart, in units of the larger one or of 1, are equal.

A double has 16 digits; a mean of thousands of them, or a difference of two means, keeps more than 12. Two
fractions that differ, with denominators up to a million, are further apart than this."""


def known(value: float | Floats) -> float | None:
    """Return a value; None for ``nan``."""
    return None if np.isnan(value) else float(value)


def levelled(values: Floats, scale: float = 1.0) -> Floats:
    """Return values in which those that are equal up to rounding are equal, and zero where they are zero.

    ``values``: shape (..., n), compared along the last axis; ``nan`` and infinities stay as they are.

    >>> levelled(np.array([1 - 2 / 3, 2 / 3 - 1 / 3, 0.1 + 0.2 - 0.3])).tolist() == [1 - 2 / 3, 1 - 2 / 3, 0]
    True
    """
    if not np.size(values):
        return values
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(np.asarray(values, dtype=np.float64), order, axis=-1)
    ordered[np.abs(ordered) <= TOLERANCE * scale] = 0.0
    with np.errstate(invalid="ignore"):
        steps = np.diff(ordered, axis=-1)
        size = np.maximum(scale, np.maximum(np.abs(ordered[..., 1:]), np.abs(ordered[..., :-1])))
        same = (steps <= np.minimum(TOLERANCE * size, 0.5)) & np.isfinite(steps)  # 1e15 is not 1e15 + 1
    places = np.arange(1, ordered.shape[-1]) * ~same
    firsts = np.maximum.accumulate(np.insert(places, 0, 0, axis=-1), axis=-1)
    level = np.empty_like(ordered)
    np.put_along_axis(level, order, np.take_along_axis(ordered, firsts, axis=-1), axis=-1)
    return level


def scale_of(column: Floats) -> float:
    """Return the scale at which numbers of an unknown kind are levelled.

    Numbers on both sides of zero are differences, made from numbers as large as the largest. Others, such as
    p-values and likelihoods, may be tiny and differ all the same: each is compared by its own size.
    """
    known = column[np.isfinite(column)]
    return float(np.abs(known).max()) if len(known) and known.min() < 0 < known.max() else 0.0


def mean_ranks(values: Floats, scale: float = 1.0) -> Floats:
    """Return ranks from 1 of values of shape (n,), levelled at a scale; equal ones share the mean of theirs.

    As ``scipy.stats.rankdata`` has it, which takes a second to import.
    """
    _, places, counts = np.unique(levelled(values, scale), return_inverse=True, return_counts=True)
    shared: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return shared


def ranks(values: Floats, *, higher: bool = True) -> Floats:
    """Return ranks from 1: one more than the number of methods that are better; equal ones share theirs.

    ``values``: shape (..., methods), finite.
    """
    signed = values if higher else -values
    mine, theirs = signed[..., :, None], signed[..., None, :]
    margin = TOLERANCE * np.maximum(1.0, np.maximum(np.abs(mine), np.abs(theirs)))
    better: Floats = 1.0 + (theirs - mine > margin).sum(axis=-1)
    return better


def rank_intervals(
    table: Floats, *, higher: bool = True, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[tuple[int, int], ...]:
    """Return the 95 % interval of every method's rank over drawn stories; both ends are ranks.

    All methods are drawn on the same stories.

    ``table``: values, shape (stories, methods), finite.

    Returned: lowest and highest rank of each method; none without stories or drawings.
    """
    if not table.size or not resamples:
        return ()
    means = resampled_sums(table, resamples, seed) / len(table)
    low, high = percentile_interval(ranks(means, higher=higher))
    return tuple((math.floor(lowest), math.ceil(other)) for lowest, other in zip(low, high, strict=True))

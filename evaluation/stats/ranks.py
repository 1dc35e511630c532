"""Ranks of several methods by one score, and how sure they are."""

import math

import numpy as np

from .bootstrap import RESAMPLES, SEED, Floats, percentile_interval, resampled_sums

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
    return tuple((math.floor(one), math.ceil(other)) for one, other in zip(low, high, strict=True))

"""Resampling of stories: statistics of sums over drawn stories, all at once, and ranks with intervals."""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES, SEED, LEVEL = 10_000, 42, 0.95
_CELLS = 2_000_000
"""Most weights that are in memory at a time."""


def resampled_sums(columns: Floats, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return the sums of columns over stories drawn with replacement, as many as there are.

    Columns that are resampled together see the same stories, so that differences between their sums are
    paired. The draws depend on the seed and the number of stories alone.

    Args:
        columns: shape (stories, columns).
        resamples: how often the stories are drawn.
        seed: of the random numbers.

    Returns:
        Shape (resamples, columns).
    """
    sums = np.empty((resamples, columns.shape[1]))
    start = 0
    for weights in draws(len(columns), resamples, seed):
        sums[start : start + len(weights)] = weights @ columns
        start += len(weights)
    return sums


def draws(stories: int, resamples: int = RESAMPLES, seed: int = SEED) -> Iterator[Floats]:
    """Yield how often each story is drawn, in blocks of shape (some resamples, stories)."""
    block = max(1, _CELLS // max(1, stories))
    if resamples <= block:  # as many comparisons of the same stories ask for again and again
        if resamples > 0:
            yield _drawn_at_once(stories, resamples, seed)
        return
    yield from _drawn(stories, resamples, seed, block)


@lru_cache(maxsize=2)
def _drawn_at_once(stories: int, resamples: int, seed: int) -> Floats:
    counts = next(_drawn(stories, resamples, seed, resamples))
    counts.flags.writeable = False
    return counts


def _drawn(stories: int, resamples: int, seed: int, block: int) -> Iterator[Floats]:
    random = np.random.default_rng(seed)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = random.integers(0, stories, size=(size, stories), dtype=np.int64)
        drawn += np.arange(size, dtype=np.int64)[:, None] * stories
        counts = np.bincount(drawn.ravel(), minlength=size * stories)
        yield counts.reshape(size, stories).astype(np.float64)


def percentile_interval(values: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Return the ends of percentile intervals over the first axis; ``nan`` entries are left out.

    Args:
        values: shape (resamples, ...).
        level: of the interval, in (0, 1).

    Returns:
        Lower and upper ends, each of the shape of one entry; ``nan`` where there is none.
    """
    tail, shape = (1 - level) / 2, values.shape[1:]
    flat = values.reshape(len(values), int(np.prod(shape, dtype=np.int64)))
    ends = np.full((2, flat.shape[1]), np.nan)
    there = ~np.isnan(flat)
    whole = there.all(axis=0) & bool(len(flat))
    if whole.any():
        ends[:, whole] = np.quantile(flat[:, whole], (tail, 1 - tail), axis=0)
    for column in np.flatnonzero(~whole & there.any(axis=0)):
        ends[:, column] = np.quantile(flat[there[:, column], column], (tail, 1 - tail))
    return ends[0].reshape(shape), ends[1].reshape(shape)


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


def divided(numerator: Floats, denominator: Floats) -> Floats:
    """Return a quotient, ``nan`` where nothing was counted."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    result: Floats = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=result, where=np.asarray(denominator) > 0)
    return result


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

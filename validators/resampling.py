"""Resampling of units such as stories: sums over drawn ones, all at once, and the intervals made of them."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES, SEED, LEVEL = 10_000, 42, 0.95
FEW, LEAST = 30, 6
"""Below so many units intervals and p-values are of Student's t; below the second there is neither."""
_CELLS = 2_000_000
"""Most weights that are in memory at a time."""


def resampled_sums(columns: Floats, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return the sums of columns over stories drawn with replacement, as many as there are.

    Columns that are resampled together see the same stories, so that differences between their sums are
    paired. The draws depend on the seed and the number of stories alone.

    ``columns``: shape (stories, columns).

    Returned: shape (resamples, columns).
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

    ``values``: shape (resamples, ...).

    Returned: lower and upper ends, each of the shape of one entry; ``nan`` where there is none.
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


def interval_by_size(
    values: Floats,
    replicates: Floats,
    units: Floats | int,
    bounds: tuple[Floats | float, Floats | float] = (-np.inf, np.inf),
) -> tuple[Floats, Floats]:
    """Return the ends of 95 % intervals: percentiles, or Student's t below :data:`FEW` units.

    Below :data:`LEAST` units, and without replicates, the ends are ``nan``.

    ``values``: what was computed from all units, shape (...). ``replicates``: the same from resampled units,
    shape (resamples, ...). ``units``: how many units each value stands on, shape (...), or one number for
    all. ``bounds``: lowest and highest possible values, shape (...), or one number for all.
    """
    low, high = percentile_interval(replicates)
    number = np.broadcast_to(np.asarray(units, dtype=np.float64), np.shape(values))
    few, none = number < FEW, number < LEAST
    if not len(replicates) or not few.any():
        return low, high
    from scipy.special import stdtrit  # the functions behind scipy.stats, which takes a second to import

    with np.errstate(invalid="ignore", divide="ignore"):
        reach = stdtrit(np.maximum(number - 1, 1), 0.975) * standard_error(replicates, number)
    low = np.where(few, np.maximum(values - reach, bounds[0]), low)
    high = np.where(few, np.minimum(values + reach, bounds[1]), high)
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


def alike(low: Floats, high: Floats) -> NDArray[np.bool_]:
    """Return whether both ends are one number, up to rounding."""
    width: NDArray[np.bool_] = high - low <= 1e-12 * np.maximum(1.0, np.abs(low))
    return width


def exact_ends(
    values: Floats, units: Floats, bounds: tuple[Floats | float, Floats | float]
) -> tuple[Floats, Floats]:
    """Return the ends of exact 95 % intervals of means of which all units have the same value.

    None of n units has another value. So with 95 % confidence at most 1 - 0.025 ** (1 / n) of all units have
    one (Clopper and Pearson 1934; about 3.7 / n), and those have at the least the lower bound, at the most
    the upper one. Of shares of 0 and 1 this is the interval of Clopper and Pearson itself. Where a bound is
    not finite there is no interval: ``nan``.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        others = 1 - ((1 - LEVEL) / 2) ** (1 / units)
        low, high = (np.asarray(values + others * (bound - values)) for bound in bounds)
    known = np.isfinite(low) & np.isfinite(high)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def standard_error(replicates: Floats, units: Floats) -> Floats:
    """Return the standard error of values, widened by sqrt(n / (n - 1)) as resampling shrinks it.

    ``replicates``: the values from resampled units, shape (resamples, ...); ``nan`` entries are left out.
    ``units``: how many units each value stands on, shape (...).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        known = ~np.isnan(replicates)
        count = known.sum(axis=0)
        mean = np.where(known, replicates, 0.0).sum(axis=0) / count
        spread = np.sqrt((np.where(known, replicates - mean, 0.0) ** 2).sum(axis=0) / count)
        widened: Floats = spread * np.sqrt(units / (units - 1))
    return widened


def divided(numerator: Floats, denominator: Floats) -> Floats:
    """Return a quotient, ``nan`` where nothing was counted."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    result: Floats = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=result, where=np.asarray(denominator) > 0)
    return result


# -- Agreement between raters beyond chance: Fleiss' kappa, of counts and of sums of counts
#
# ``counts`` have the shape (units, categories), whole numbers >= 0: how many raters put the unit into the
# category. A rater who did not rate a unit is not counted; units with fewer than two ratings are left out.
# Where a value is undefined (no such unit, or one category only) the result is ``nan``.


def paired(counts: Floats) -> Floats:
    """Return the counts of the units with at least two ratings."""
    given = np.asarray(counts, dtype=np.float64)
    kept: Floats = given[given.sum(axis=1) >= 2]
    return kept


def pair_shares(counts: Floats) -> Floats:
    """Return for each unit the share of pairs of raters that agree, shape (units,), in [0, 1]."""
    raters = counts.sum(axis=1)
    shares: Floats = (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))
    return shares


def fleiss_kappa(counts: Floats) -> float:
    """Return Fleiss' kappa, (P - Pe) / (1 - Pe), in [-1, 1].

    With equally many raters for every unit this is Fleiss (1971), also Eq. 76 of the KathaTrace paper. Where
    the numbers differ, every unit has the same weight in P and every rating the same weight in Pe.
    """
    kept = paired(counts)
    if not len(kept):
        return float("nan")
    totals = kept.sum(axis=0)[None, :]
    return float(kappa_of_sums(pair_shares(kept).sum()[None], np.array([float(len(kept))]), totals)[0])


def kappa_of_sums(shares: Floats, units: Floats, totals: Floats) -> Floats:
    """Return Fleiss' kappa from sums over units, which add when units are drawn or pooled; shape (n,).

    ``shares``: sum of :func:`pair_shares`, shape (n,). ``units``: how many units with at least two ratings,
    shape (n,). ``totals``: how many ratings each category has, shape (n, categories).
    """
    chance = (divided(totals, totals.sum(axis=1)[:, None]) ** 2).sum(axis=1)
    agreed = divided(shares, units)
    left = 1.0 - chance
    kappa: Floats = np.full(agreed.shape, np.nan)
    np.divide(agreed - chance, left, out=kappa, where=~np.isclose(chance, 1.0) & ~np.isnan(agreed))
    return kappa

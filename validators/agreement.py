"""Agreement between raters beyond chance: Fleiss' kappa, of counts and of sums of counts.

``counts`` have the shape (units, categories), whole numbers >= 0: how many raters put the unit into the
category. A rater who did not rate a unit is not counted; units with fewer than two ratings are left out.
Where a value is undefined (no such unit, or one category only) the result is ``nan``.
"""

import numpy as np

from .resampling import Floats, divided


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

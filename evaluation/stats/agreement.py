"""Agreement between raters beyond chance.

Functions of agreement take ``counts`` of shape (units, categories), whole numbers >= 0: how many raters put
the unit into the category. A rater who did not rate a unit is not counted; units with fewer than two ratings
are left out. Where a value is undefined (no such unit, or one category only) the result is ``nan``.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...validators.resampling import pair_shares, paired

__all__ = [
    "MISSING", "Counts", "Level", "cohen_kappa",
    "counts_of", "krippendorff_alpha", "observed_agreement",
]  # fmt: skip

Counts = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]
MISSING = -1


def counts_of(codes: NDArray[np.int64], categories: int) -> Counts:
    """Return the counts of a table of ratings.

    ``codes``: shape (raters, units); categories from 0, :data:`MISSING` where there is no rating.

    Returned: shape (units, categories).
    """
    return np.stack([(codes == code).sum(axis=0) for code in range(categories)], axis=1).astype(np.float64)


def observed_agreement(counts: Counts) -> float:
    """Return the mean over units of the share of rater pairs that agree (the mean P of Fleiss 1971)."""
    kept = paired(counts)
    return float(pair_shares(kept).mean()) if len(kept) else float("nan")


def krippendorff_alpha(
    counts: Counts, level: Level = "nominal", values: NDArray[np.float64] | None = None
) -> float:
    """Return Krippendorff's alpha, 1 - Do / De, at most 1, from the coincidences of values within units.

    ``counts``: shape (units, categories); for ``ordinal`` and ``interval`` the categories are in order.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).
    """
    kept = paired(counts)
    if not len(kept):
        return float("nan")
    weights = 1.0 / (kept.sum(axis=1) - 1)
    coincidences = kept.T @ (kept * weights[:, None]) - np.diag((kept * weights[:, None]).sum(axis=0))
    totals = coincidences.sum(axis=1)
    differences = _differences(totals, level, values)
    expected = float((np.outer(totals, totals) * differences).sum()) / (totals.sum() - 1)
    if expected == 0:
        return float("nan")
    return float(1.0 - (coincidences * differences).sum() / expected)


def cohen_kappa(table: Counts, weights: Literal["none", "linear", "quadratic"] = "none") -> float:
    """Return Cohen's kappa of two raters, in [-1, 1].

    ``table``: shape (categories, categories): how often the first rater said the row, the second the column.
    """
    total = table.sum()
    if total == 0:
        return float("nan")
    steps = np.abs(np.subtract.outer(np.arange(len(table)), np.arange(len(table)))).astype(np.float64)
    cost = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    expected = float((cost * chance).sum())
    return 1.0 - float((cost * table).sum()) / expected if expected else float("nan")


def _differences(totals: Counts, level: Level, values: NDArray[np.float64] | None) -> Counts:
    size = len(totals)
    if level == "nominal":
        return 1.0 - np.eye(size)
    if level == "interval":
        points = np.arange(size, dtype=np.float64) if values is None else values
    else:  # the number of values up to and including a category, less half its own
        points = np.cumsum(totals) - totals / 2
    return np.asarray(np.subtract.outer(points, points) ** 2, dtype=np.float64)

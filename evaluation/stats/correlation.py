"""Correlation of two columns of numbers, with a confidence interval and a two-sided p-value.

Intervals are made on Fisher's z scale, with the standard error that belongs to each coefficient: Pearson
1 / sqrt(n - 3); Spearman sqrt((1 + r^2 / 2) / (n - 3)) (Bonett and Wright 2000); Kendall's tau-b
sqrt(0.437 / (n - 4)) (Fieller, Hartley and Pearson 1957). A perfect correlation has no interval on that
scale: both of its ends are the value itself.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...schemas.text import tallied
from ...validators.resampling import pair_shares, paired
from .ranks import levelled, mean_ranks

Name = Literal["pearson", "spearman", "kendall"]
NAMES: tuple[Name, ...] = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Correlation:
    """A correlation."""

    name: Name  # which coefficient
    value: float | None  # the coefficient, in [-1, 1]; None where it is undefined
    low: float | None  # lower end of the interval; None where there are too few pairs for one
    high: float | None  # upper end
    p: float | None  # two-sided p-value of no correlation
    pairs: int  # how many pairs of numbers it stands on
    left_out: int  # pairs in which a number is missing
    reason: str | None = None  # why there is no value

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)


def spearman(x: ArrayLike, y: ArrayLike, level: float = 0.95, of: str = "pairs") -> Correlation:
    """Return Spearman's rank correlation, ties with their mean rank; see :func:`correlate`."""
    return correlate("spearman", x, y, level, of)


def kendall(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Correlation:
    """Return Kendall's tau-b; see :func:`correlate`."""
    return correlate("kendall", x, y, level)


def correlate(
    name: Name,
    x: ArrayLike,
    y: ArrayLike,
    level: float = 0.95,
    of: str = "pairs",
    scales: tuple[float, float] = (1.0, 1.0),
) -> Correlation:
    """Return a correlation of two columns."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"two columns of the same length are needed, not {first.shape} and {second.shape}")
    there = np.isfinite(first) & np.isfinite(second)
    first, second = first[there], second[there]
    pairs, left_out = len(first), int((~there).sum())
    even = levelled(first, scales[0]), levelled(second, scales[1])
    reason = _undefined(*even, of)
    if reason is not None:
        return Correlation(name, None, None, None, None, pairs, left_out, reason)
    value, p = _coefficient(name)(*((first, second) if name == "pearson" else even))
    value = min(1.0, max(-1.0, value))
    low, high = _interval(name, value, pairs, level)
    return Correlation(name, value, low, high, p if math.isfinite(p) else None, pairs, left_out)


def rank_correlations(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's correlation of every row with the first; ``nan`` where a row is constant.

    ``table``: shape (rows, columns), at least two columns, nothing missing.

    Returned: shape (rows - 1,).
    """
    ranks = np.apply_along_axis(mean_ranks, 1, table) - (table.shape[1] + 1) / 2
    squares = (ranks**2).sum(axis=1)
    product = ranks[1:] @ ranks[0]
    result = np.full(len(product), np.nan)
    np.divide(product, np.sqrt(squares[0] * squares[1:]), out=result, where=squares[0] * squares[1:] > 0)
    return result


def _undefined(x: NDArray[np.float64], y: NDArray[np.float64], of: str) -> str | None:
    if len(x) < 3:
        return f"{tallied(len(x), of)}; at least 3 are needed"
    if (x == x[0]).all() or (y == y[0]).all():
        return "all numbers of a column are the same"
    return None


def _coefficient(name: Name) -> Callable[..., tuple[float, float]]:
    if name == "spearman":
        return _spearman
    from scipy import stats

    function = {"pearson": stats.pearsonr, "kendall": stats.kendalltau}[name]

    def coefficient(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
        result = function(x, y)
        return float(result.statistic), float(result.pvalue)

    return coefficient


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return coefficient and p-value as ``scipy.stats.spearmanr``, which takes a second to import."""
    from scipy.special import stdtr

    ranks = np.stack([mean_ranks(x, 0.0), mean_ranks(y, 0.0)], axis=1)  # levelled before
    value, free = np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0], len(x) - 2
    with np.errstate(divide="ignore"):
        statistic = value * np.sqrt((free / ((value + 1.0) * (1.0 - value))).clip(0))
    return float(value), float(2 * stdtr(free, -np.abs(statistic)))


def _interval(name: Name, value: float, pairs: int, level: float) -> tuple[float | None, float | None]:
    from scipy.special import ndtri

    if pairs < 5:
        return None, None
    if abs(value) >= 1 - 1e-12:
        return value, value
    spread = {
        "pearson": 1 / math.sqrt(pairs - 3),
        "spearman": math.sqrt((1 + value**2 / 2) / (pairs - 3)),
        "kendall": math.sqrt(0.437 / (pairs - 4)),
    }[name]
    reach = float(ndtri((1 + level) / 2)) * spread
    return math.tanh(math.atanh(value) - reach), math.tanh(math.atanh(value) + reach)


# -- Agreement between raters beyond chance
#
# Functions of agreement take ``counts`` of shape (units, categories), whole numbers >= 0: how many raters put
# the unit into the category. A rater who did not rate a unit is not counted; units with fewer than two
# ratings are left out. Where a value is undefined (no such unit, or one category only) the result is ``nan``.

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

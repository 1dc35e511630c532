"""Expected calibration error: how far stated confidence is from how often it was right."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bin:
    """One bin of answers.

    Attributes:
        count: how many answers.
        confidence: their mean confidence.
        accuracy: the share of them that is right.
    """

    count: int
    confidence: float
    accuracy: float


def by_value(confidence: Floats, right: Floats) -> tuple[Bin, ...]:
    """Return one bin per value of confidence that occurs, in order: for verbal levels with stated values."""
    values, places = np.unique(confidence, return_inverse=True)
    return _bins(confidence, right, places, len(values))


def by_width(confidence: Floats, right: Floats, bins: int = 10) -> tuple[Bin, ...]:
    """Return the bins of equal width over [0, 1] that hold an answer; 1 belongs to the last."""
    places = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    return _bins(confidence, right, places, bins)


def calibration_error(bins: tuple[Bin, ...]) -> float:
    """Return the expected calibration error of bins, in [0, 1]; ``nan`` without an answer.

    It is the mean over bins of the distance between accuracy and confidence, weighted by size.
    Source: KathaTrace, Eq. 48 and 62.
    """
    total = sum(one.count for one in bins)
    if not total:
        return float("nan")
    return sum(one.count * abs(one.accuracy - one.confidence) for one in bins) / total


def _bins(confidence: Floats, right: Floats, places: NDArray[np.int64], size: int) -> tuple[Bin, ...]:
    counts = np.bincount(places, minlength=size)
    sums = np.bincount(places, weights=confidence, minlength=size)
    hits = np.bincount(places, weights=right, minlength=size)
    return tuple(
        Bin(int(count), float(total / count), float(hit / count))
        for count, total, hit in zip(counts, sums, hits, strict=True)
        if count
    )

"""Intervals for what people said: the participants are drawn again, with all that each of them said.

People differ more than the answers of one of them, so that single answers are not drawn on their own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..evaluation.stats.bootstrap import divided, draws, percentile_interval
from ..schemas.score import Score

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Weights of the participants, shape (replicates, participants) -> values, shape (replicates, statistics)."""

CHUNK = 250
"""Replicates computed at a time: a statistic holds so many values for every question."""


@dataclass(frozen=True)
class Resampling:
    """How often participants are drawn, and from which seed; intervals are of the stated level."""

    replicates: int = 10_000
    seed: int = 42
    level: float = 0.95


@dataclass(frozen=True)
class Estimate:
    """Values with the ends of their intervals; ``nan`` where there is none. Each has shape (statistics,)."""

    values: Floats
    low: Floats
    high: Floats


def estimate(statistic: Statistic, participants: int, resampling: Resampling) -> Estimate:
    """Return what a statistic is for the participants as they are, and its percentile interval.

    With fewer than two participants there is no interval. Replicates in which a value is undefined, as when
    nobody was drawn who answered, are left out of its interval.

    Args:
        statistic: made of sums over participants, each times its weight.
        participants: how many there are.
        resampling: replicates, seed and level.
    """
    values = statistic(np.ones((1, participants)))[0]
    nothing = np.full(values.shape, np.nan)
    if participants < 2 or not resampling.replicates:
        return Estimate(values, nothing, nothing)
    drawn = np.concatenate([statistic(weights) for weights in _weights(participants, resampling)])
    low, high = percentile_interval(drawn, resampling.level)
    known = np.isfinite(values)
    return Estimate(values, np.where(known, low, np.nan), np.where(known, high, np.nan))


def scores(found: Estimate, why_undefined: str, counts: list[dict[str, int]]) -> list[Score]:
    """Return estimates as scores, one for each entry of ``counts``."""
    return [
        Score(value=None, status="undefined", reason=why_undefined, counts=count)
        if np.isnan(value)
        else Score(value=float(value), status="ok", low=_end(low), high=_end(high), counts=count)
        for value, low, high, count in zip(found.values, found.low, found.high, counts, strict=True)
    ]


def ratio(sums: Floats, numbers: Floats) -> Statistic:
    """Return the statistic that is a sum over a number.

    Args:
        sums: shape (participants, statistics), what is summed for each participant.
        numbers: the same shape, how many were summed.
    """

    def statistic(weights: Floats) -> Floats:
        return divided(weights @ sums, weights @ numbers)

    return statistic


def _weights(participants: int, resampling: Resampling) -> Iterator[Floats]:
    for block in draws(participants, resampling.replicates, resampling.seed):
        for start in range(0, len(block), CHUNK):
            yield block[start : start + CHUNK]


def _end(value: float) -> float | None:
    return None if np.isnan(value) else float(value)

"""What people said, and its intervals: the participants are drawn again, with all that each of them said.

People differ more than the answers of one of them, so that single answers are not drawn on their own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schemas.judgement import HumanRow
from ..schemas.values import Score
from ..validators.resampling import divided, draws, percentile_interval

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


def lines_of(rows: Sequence[HumanRow], kind: str, **columns: object) -> list[HumanRow]:
    """Return the lines of a kind, without repeated controls, whose columns have the stated values."""
    return [
        row
        for row in rows
        if row.kind == kind
        and not row.repeat
        and all(getattr(row, name) == value for name, value in columns.items())
    ]


def estimate(statistic: Statistic, participants: int, resampling: Resampling) -> Estimate:
    """Return what a statistic is for the participants as they are, and its percentile interval.

    With fewer than two participants there is no interval. Replicates in which a value is undefined, as when
    nobody was drawn who answered, are left out of its interval.
    """
    values = statistic(np.ones((1, participants)))[0]
    nothing = np.full(values.shape, np.nan)
    if participants < 2 or not resampling.replicates:
        return Estimate(values, nothing, nothing)
    drawn = np.concatenate([statistic(weights) for weights in _weights(participants, resampling)])
    low, high = percentile_interval(drawn, resampling.level)
    known = np.isfinite(values)
    return Estimate(values, np.where(known, low, np.nan), np.where(known, high, np.nan))


def scores(estimated: Estimate, why_undefined: str, counts: Sequence[dict[str, int]]) -> list[Score]:
    """Return estimates as scores, one for each entry of ``counts``."""
    columns = zip(estimated.values, estimated.low, estimated.high, counts, strict=True)
    return [score_of(value, why_undefined, count, (low, high)) for value, low, high, count in columns]


def score_of(
    value: float, why_undefined: str, counts: dict[str, int], ends: tuple[float, float] = (np.nan, np.nan)
) -> Score:
    """Return a number as a score, undefined where it is ``nan``; so are the ends of its interval."""
    if np.isnan(value):
        return Score(value=None, status="undefined", reason=why_undefined, counts=counts)
    low, high = (None if np.isnan(end) else float(end) for end in ends)
    return Score(value=float(value), status="ok", low=low, high=high, counts=counts)


def means(
    said: Sequence[tuple[str, Sequence[float]]],
    resampling: Resampling,
    why_undefined: str,
    counts: Sequence[dict[str, int]],
) -> list[Score]:
    """Return the means of numbers over all judgements, with participant-level intervals."""
    people = {rater: index for index, rater in enumerate(sorted({rater for rater, _ in said}))}
    sums, numbers = np.zeros((len(people), len(counts))), np.zeros((len(people), 1))
    for rater, values in said:
        sums[people[rater]] += values
        numbers[people[rater]] += 1
    return scores(estimate(ratio(sums, numbers), len(people), resampling), why_undefined, counts)


def ratio(sums: Floats, numbers: Floats) -> Statistic:
    """Return the statistic that is a sum over a number.

    ``sums``: shape (participants, statistics), what is summed for each participant. ``numbers``: how many
    were summed, the same shape or a single column.
    """
    return lambda weights: divided(weights @ sums, weights @ numbers)


def _weights(participants: int, resampling: Resampling) -> Iterator[Floats]:
    for block in draws(participants, resampling.replicates, resampling.seed):
        for start in range(0, len(block), CHUNK):
            yield block[start : start + CHUNK]

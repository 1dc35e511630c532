"""What people and judges share, as tables; and the values of all judges as a function of people's weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..evaluation.stats.bootstrap import divided
from .answers import Answered
from .resample import Floats, Statistic

NAMES = ("agreement", "calibration_error", "mean_absolute_difference", "spearman", "pairwise_agreement")
"""The values of a judge, in the order of the statistic; :mod:`.against` has their definitions."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Shared:
    """What people and some judges, who were asked the same, say about the same units.

    Attributes:
        table: who was right, shape (people, units); the units of a storyboard stand together.
        starts: the first unit of each storyboard.
        verdict: 1 where the judge is right, shape (judges, units).
        confidence: what the judge's confidence stands for, ``nan`` where none is stated, the same shape.
        bins: for each judge, shape (units, bins), 1 where the unit's confidence falls into the bin.
        pairs: places of the storyboards that are compared, shape (pairs, 2).
    """

    table: Answered
    starts: Ints
    verdict: Floats
    confidence: Floats
    bins: tuple[Floats, ...]
    pairs: Ints


def statistic_of(shared: Shared, *, pairwise: bool) -> Statistic:
    """Return the values of :data:`NAMES` as a function of the people's weights.

    The values have shape (replicates, values x judges): the first value of every judge, then the second, and
    so on. Without ``pairwise`` the last is left undefined, as it is costly for many pairs.
    """
    verdict, stated = shared.verdict, np.isfinite(shared.confidence)
    confidence = np.where(stated, shared.confidence, 0.0)
    columns = [bins * there[:, None] for bins, there in zip(shared.bins, stated, strict=True)]
    owner = np.repeat(np.eye(len(verdict)), [part.shape[1] for part in columns], axis=0)
    binned = np.concatenate(columns, axis=1)
    right_in = np.concatenate([c * v[:, None] for c, v in zip(columns, verdict, strict=True)], axis=1)
    stated_in = np.concatenate([c * s[:, None] for c, s in zip(columns, confidence, strict=True)], axis=1)
    machine = board_means(verdict, shared.starts)

    def statistic(weights: Floats) -> Floats:
        given, right = weights @ shared.table.given, weights @ shared.table.right
        more, less = (2 * right > given).astype(np.float64), (2 * right < given).astype(np.float64)
        known = more + less
        agreed = more @ verdict.T + less @ (1 - verdict).T
        gaps = np.abs(more @ right_in + less @ (binned - right_in) - known @ stated_in)
        human = board_means(divided(right, given), shared.starts)
        parts = [
            divided(agreed, known.sum(axis=1)[:, None]),
            divided(gaps @ owner, (known @ binned) @ owner),
            _distance(human, machine),
            spearman_of(human, machine),
            _pairwise(human, machine, shared.pairs)
            if pairwise
            else np.full((len(weights), len(verdict)), np.nan),
        ]
        return np.concatenate(parts, axis=1)

    return statistic


def board_means(values: Floats, starts: Ints) -> Floats:
    """Return the mean of values over each storyboard, ``nan`` where none is known.

    Args:
        values: shape (rows, units), ``nan`` where unknown.
        starts: the first unit of each storyboard.

    Returns:
        Shape (rows, storyboards), rounded, so that thirds added in another order tie.
    """
    if not len(starts):
        return np.zeros((len(values), 0))
    there = np.isfinite(values)
    sums = np.add.reduceat(np.where(there, values, 0.0), starts, axis=1)
    numbers = np.add.reduceat(there.astype(np.float64), starts, axis=1)
    return np.round(divided(sums, numbers), 12)


def spearman_of(rows: Floats, fixed: Floats) -> Floats:
    """Return Spearman's correlation of each row with each fixed one, where the row has numbers.

    Args:
        rows: shape (replicates, places), ``nan`` where there is no number.
        fixed: shape (judges, places).

    Returns:
        Shape (replicates, judges); ``nan`` with fewer than three places, or where all values are alike.
    """
    from scipy.stats import rankdata

    there = np.isfinite(rows)
    if not rows.shape[1]:
        return np.full((len(rows), len(fixed)), np.nan)
    middle = (there.sum(axis=1)[:, None] + 1) / 2
    first = np.where(there, rankdata(np.where(there, rows, np.inf), axis=1) - middle, 0.0)
    spread = (first**2).sum(axis=1)
    found = np.empty((len(rows), len(fixed)))
    for place, one in enumerate(fixed):
        if there.all():  # the usual case, in which the ranks of the fixed one are always the same
            second = rankdata(one) - middle[0]
            product, size = first @ second, np.full(len(rows), (second**2).sum())
        else:
            ranked = np.where(there, rankdata(np.where(there, one, np.inf), axis=1) - middle, 0.0)
            product, size = (first * ranked).sum(axis=1), (ranked**2).sum(axis=1)
        found[:, place] = divided(product, np.sqrt(spread * size))
    found[there.sum(axis=1) < 3] = np.nan
    return found


def per_board(shared: Shared, judge: int) -> tuple[Floats, Floats]:
    """Return recoverability of each storyboard by a judge and by people."""
    share = divided(shared.table.right.sum(axis=0), shared.table.given.sum(axis=0))
    machine, human = board_means(np.stack([shared.verdict[judge], share]), shared.starts)
    return machine, human


def verdicts(shared: Shared, judge: int) -> tuple[Flags, Flags]:
    """Return on which units people have a majority, and on which of them a judge agrees with it."""
    lead = (2 * shared.table.right - shared.table.given).sum(axis=0)
    known = lead != 0
    return known, known & ((lead > 0) == (shared.verdict[judge] > 0))


def _distance(human: Floats, machine: Floats) -> Floats:
    there = np.isfinite(human)
    apart = np.abs(np.where(there, human, 0.0)[:, None, :] - machine[None]) * there[:, None, :]
    return divided(apart.sum(axis=2), there.sum(axis=1)[:, None].astype(np.float64))


def _pairwise(human: Floats, machine: Floats, pairs: Ints) -> Floats:
    first, second = pairs[:, 0], pairs[:, 1]
    signs = np.sign(human[:, first] - human[:, second])
    own = np.sign(machine[:, first] - machine[:, second])
    same = sum(
        (signs == sign).astype(np.float32) @ (own == sign).astype(np.float32).T for sign in (-1.0, 0.0, 1.0)
    )
    number = np.isfinite(signs).sum(axis=1)[:, None].astype(np.float64)
    return divided(np.asarray(same, dtype=np.float64), number)

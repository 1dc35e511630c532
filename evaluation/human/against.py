"""Judges against people: agreement, calibration error, rank correlation, distance, pairwise agreement.

Question: do a judge's verdicts follow what people recover from the same evidence?
Formula: share of questions where the judge is right exactly when the majority of people is (Eq. 45, 60, 73);
    expected calibration error of the confidence stated in that (Eq. 48, 62); Spearman's and Kendall's
    correlation and mean absolute difference of recoverability per storyboard (Eq. 46, 61, 74); share of the
    pairs of storyboards that both order alike (Eq. 47, 75).
Input: people's answers and a judge's replies to the same questions about the same outputs, one condition.
Output: shares and errors in [0, 1], correlations in [-1, 1].
Undefined when: nothing is shared; fewer than three storyboards, or all alike, for a correlation.
Source: KathaTrace, sections D.5, F.6 and H.6, Table 39.
Departures: answers are compared as accepted or not (E.7). A question on which people are divided half and
    half has no majority and is left out of agreement and calibration error. Confidence is verbal: the
    values that its levels stand for are ours and are stated. A single answer falls into the bin of its
    level; the mean confidence of several judges or votes falls into one of ten bins of equal width. Pairs
    are storyboards of the same story where stories have several, of different stories otherwise.
Example: people's majorities right, right, wrong; the judge right, wrong, wrong: agreement 2/3. With
    confidence 0.9 each, the calibration error is |2/3 - 0.9| = 0.2333.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...schemas.human import HumanRow
from ...schemas.katha import Question
from ...schemas.score import Score
from ..stats.bootstrap import divided
from ..stats.calibration import Bin, by_value, by_width
from ..stats.correlation import Correlation, kendall, spearman
from .answers import Answered, Unit, tabulated
from .judged import Judged, unit_of
from .resample import Floats, Resampling, Statistic, estimate, scores

NAMES = ("agreement", "calibration_error", "mean_absolute_difference", "spearman", "pairwise_agreement")
LEVELS = {"low": 0.25, "medium": 0.5, "high": 0.9}
"""Probabilities that the verbal levels of confidence stand for, unless others are stated."""
BINS = 10
TOO_LITTLE = "people and the judge share too little"
MOST_PAIRS = 5000
"""Pairs of storyboards up to which pairwise agreement gets an interval."""


@dataclass(frozen=True)
class Against:
    """One judge against people under one condition.

    Attributes:
        values: the five scores of :data:`NAMES`, with participant-level intervals.
        spearman: the correlation with its p-value and analytic interval.
        kendall: Kendall's tau-b, as well.
        bins: the bins of confidence; accuracy is agreement with people.
        pairs: ``within_story`` or ``between_stories``.
        not_judged: units that people answered and the judge was not asked.
    """

    values: Mapping[str, Score]
    spearman: Correlation
    kendall: Correlation
    bins: tuple[Bin, ...]
    pairs: str
    not_judged: int


@dataclass(frozen=True)
class _Shared:
    """What people and the judge share; tables have shape (people, units)."""

    table: Answered
    verdict: NDArray[np.bool_]
    confidence: Floats
    bins: Floats
    story: Floats
    pairs: NDArray[np.int64]


def against(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    judge: Judged,
    levels: Mapping[str, float],
    resampling: Resampling,
) -> Against:
    """Return how far a judge follows people's answers.

    Args:
        rows: people's answers under one condition, without repeated controls.
        questions: question id -> question.
        judge: the judge's replies, or the ensemble's.
        levels: level of confidence -> probability.
        resampling: how intervals are made.
    """
    asked = dict.fromkeys(unit_of(row) for row in rows)
    units = sorted((unit for unit in asked if unit in judge.right), key=str)
    people = sorted({row.rater for row in rows})
    boards = [(*unit[1:3], questions[str(unit[3])].story_id) for unit in units]
    names = list(dict.fromkeys(boards))
    pairs, kind = _pairs(names)
    confidence, single = _confidence(units, judge, levels)
    shared = _Shared(
        tabulated(rows, questions, people, units, unit_of),
        np.array([judge.right[unit] for unit in units], dtype=bool),
        confidence, _one_hot(_bin_places(confidence, single)),
        _one_hot(np.array([names.index(board) for board in boards], dtype=np.int64)), pairs,
    )  # fmt: skip
    found = estimate(statistic_of(shared, pairwise=True), len(people), Resampling(0))
    if units:
        often = estimate(statistic_of(shared, pairwise=len(pairs) <= MOST_PAIRS), len(people), resampling)
        found = type(found)(found.values, often.low, often.high)
    machine, human = _per_board(shared)
    return Against(
        dict(zip(NAMES, scores(found, TOO_LITTLE, _counts(shared)), strict=True)),
        spearman(machine, human), kendall(machine, human), _told_bins(shared, single), kind,
        len(asked) - len(units),
    )  # fmt: skip


def statistic_of(shared: _Shared, *, pairwise: bool) -> Statistic:
    """Return the five values of :data:`NAMES` as a function of the people's weights."""
    machine = _mean_per_board(shared.verdict.astype(np.float64)[None], shared.story)[0]
    stated = np.isfinite(shared.confidence)
    confidence = np.where(stated, shared.confidence, 0.0)

    def statistic(weights: Floats) -> Floats:
        given, right = weights @ shared.table.given, weights @ shared.table.right
        lead = 2 * right - given
        known = (lead != 0).astype(np.float64)
        agrees = known * ((lead > 0) == shared.verdict)
        sizes = (known * stated) @ shared.bins
        sums = np.abs((agrees * stated) @ shared.bins - (known * confidence) @ shared.bins)
        human = _mean_per_board(divided(right, given), shared.story)
        there = np.isfinite(human)
        distance = np.where(there, np.abs(human - machine), 0.0).sum(axis=1)
        return np.column_stack(
            [
                divided(agrees.sum(axis=1), known.sum(axis=1)),
                divided(sums.sum(axis=1), sizes.sum(axis=1)),
                divided(distance, there.sum(axis=1).astype(np.float64)),
                masked_spearman(human, machine),
                _pairwise(human, machine, shared.pairs) if pairwise else np.full(len(weights), np.nan),
            ]
        )

    return statistic


def masked_spearman(rows: Floats, fixed: Floats) -> Floats:
    """Return Spearman's correlation of each row with a fixed one, over the places where the row has a number.

    Args:
        rows: shape (replicates, places).
        fixed: shape (places,).

    Returns:
        Shape (replicates,); ``nan`` with fewer than three places, or where all values are alike.
    """
    from scipy.stats import rankdata

    there = np.isfinite(rows)
    number = there.sum(axis=1)
    if not rows.shape[1]:
        return np.full(len(rows), np.nan)
    middle = (number[:, None] + 1) / 2
    first = np.where(there, rankdata(np.where(there, rows, np.inf), axis=1) - middle, 0.0)
    second = np.where(there, rankdata(np.where(there, fixed, np.inf), axis=1) - middle, 0.0)
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.where(number >= 3, divided((first * second).sum(axis=1), spread), np.nan)


def _mean_per_board(values: Floats, story: Floats) -> Floats:
    there = np.isfinite(values)
    means = divided(np.where(there, values, 0.0) @ story, there.astype(np.float64) @ story)
    return np.round(means, 12)  # thirds added in another order must tie


def _pairwise(human: Floats, machine: Floats, pairs: NDArray[np.int64]) -> Floats:
    first, second = pairs[:, 0], pairs[:, 1]
    there = np.isfinite(human[:, first]) & np.isfinite(human[:, second])
    same = np.sign(human[:, first] - human[:, second]) == np.sign(machine[first] - machine[second])
    return divided((same & there).sum(axis=1).astype(np.float64), there.sum(axis=1).astype(np.float64))


def _pairs(boards: Sequence[Unit]) -> tuple[NDArray[np.int64], str]:
    stories: dict[object, list[int]] = {}
    for place, board in enumerate(boards):
        stories.setdefault(board[-1], []).append(place)
    within = [pair for places in stories.values() for pair in combinations(places, 2)]
    chosen = within or list(combinations(range(len(boards)), 2))
    kind = "within_story" if within else "between_stories"
    return np.array(chosen, dtype=np.int64).reshape(len(chosen), 2), kind


def _confidence(units: Sequence[Unit], judge: Judged, levels: Mapping[str, float]) -> tuple[Floats, bool]:
    """Return the mean stated confidence of each unit, ``nan`` where none is, and whether all are single."""
    stated = [
        [levels[level] for level in judge.confidence.get(unit, ()) if level in levels] for unit in units
    ]
    means = [sum(values) / len(values) if values else float("nan") for values in stated]
    return np.array(means, dtype=np.float64), all(len(values) <= 1 for values in stated)


def _bin_places(confidence: Floats, single: bool) -> NDArray[np.int64]:
    if single:
        return np.unique(confidence, return_inverse=True)[1].astype(np.int64)
    return np.minimum(np.nan_to_num(confidence) * BINS, BINS - 1).astype(np.int64)


def _one_hot(places: NDArray[np.int64]) -> Floats:
    width = int(places.max()) + 1 if len(places) else 0
    return np.eye(width)[places]


def _per_board(shared: _Shared) -> tuple[Floats, Floats]:
    share = divided(shared.table.right.sum(axis=0), shared.table.given.sum(axis=0))
    both = np.stack([shared.verdict.astype(np.float64), share])
    machine, human = _mean_per_board(both, shared.story)
    return machine, human


def _verdicts(shared: _Shared) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where people have a majority, and where it agrees with the judge."""
    lead = (2 * shared.table.right - shared.table.given).sum(axis=0)
    known = lead != 0
    return known, known & ((lead > 0) == shared.verdict)


def _counts(shared: _Shared) -> list[dict[str, int]]:
    known, _ = _verdicts(shared)
    tied = {"questions": int(known.sum()), "divided": int((~known).sum())}
    stated = {"answers": int((known & np.isfinite(shared.confidence)).sum())}
    boards = {"storyboards": shared.story.shape[1]}
    return [tied, stated, boards, boards, {"pairs": len(shared.pairs)}]


def _told_bins(shared: _Shared, single: bool) -> tuple[Bin, ...]:
    known, agrees = _verdicts(shared)
    counted = known & np.isfinite(shared.confidence)
    confidence, right = shared.confidence[counted], agrees[counted].astype(np.float64)
    return by_value(confidence, right) if single else by_width(confidence, right, BINS)

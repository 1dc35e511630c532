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

from ..evaluation.stats.calibration import Bin, by_value, by_width
from ..evaluation.stats.correlation import Correlation, kendall, spearman
from ..schemas.human import HumanRow
from ..schemas.katha import Question
from ..schemas.score import Score
from .answers import Unit, tabulated
from .judged import Judged, unit_of
from .resample import Estimate, Floats, Resampling, estimate, scores
from .shared import NAMES, Ints, Shared, per_board, statistic_of, verdicts

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
        silent: units that both were asked, left out because the judge gave no answer.
    """

    values: Mapping[str, Score]
    spearman: Correlation
    kendall: Correlation
    bins: tuple[Bin, ...]
    pairs: str
    not_judged: int
    silent: int = 0


def against(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    judges: Mapping[str, Judged],
    levels: Mapping[str, float],
    resampling: Resampling,
) -> dict[str, Against]:
    """Return judge -> how far it follows people's answers.

    Args:
        rows: people's answers under one condition, without repeated controls.
        questions: question id -> question.
        judges: the replies of the judges, and of the ensemble.
        levels: level of confidence -> probability.
        resampling: how intervals are made.
    """

    def board(unit: Unit) -> Unit:
        return (*unit[1:3], questions[str(unit[3])].story_id)

    asked = dict.fromkeys(unit_of(row) for row in rows)
    alike: dict[tuple[Unit, ...], list[str]] = {}
    for name, judge in judges.items():
        there = (unit for unit in asked if unit in judge.right)
        chosen = tuple(sorted(there, key=lambda unit: (str(board(unit)), str(unit))))
        alike.setdefault(chosen, []).append(name)
    found: dict[str, Against] = {}
    for units, names in alike.items():  # judges who were asked the same share all that people said
        boards = [board(unit) for unit in units]
        pairs, kind = _pairs(list(dict.fromkeys(boards)))
        confidence = [_confidence(units, judges[name], levels) for name in names]
        people = sorted({row.rater for row in rows})
        shared = Shared(
            table=tabulated(rows, questions, people, units, unit_of),
            starts=np.array(
                [n for n, one in enumerate(boards) if not n or boards[n - 1] != one], dtype=np.int64
            ),
            verdict=np.array(
                [[judges[name].right[unit] for unit in units] for name in names], dtype=np.float64
            ),
            confidence=np.array([stated for stated, _ in confidence]).reshape(len(names), len(units)),
            bins=tuple(_one_hot(_bin_places(stated, single)) for stated, single in confidence),
            pairs=pairs,
        )
        told = _estimated(shared, len(people), resampling)
        for place, name in enumerate(names):
            own = Estimate(told.values[place], told.low[place], told.high[place])
            machine, human = per_board(shared, place)
            silent = len(asked.keys() & judges[name].silent)
            found[name] = Against(
                dict(zip(NAMES, scores(own, TOO_LITTLE, _counts(shared, place)), strict=True)),
                spearman(machine, human), kendall(machine, human),
                _told_bins(shared, place, confidence[place][1]), kind,
                len(asked) - len(units) - silent, silent,
            )  # fmt: skip
    return {name: found[name] for name in judges}


def _estimated(shared: Shared, people: int, resampling: Resampling) -> Estimate:
    """Return the values of all judges, shape (judges, values)."""
    found = estimate(statistic_of(shared, pairwise=True), people, Resampling(0))
    if shared.verdict.size:
        often = estimate(statistic_of(shared, pairwise=len(shared.pairs) <= MOST_PAIRS), people, resampling)
        found = Estimate(found.values, often.low, often.high)
    shape = (len(NAMES), len(shared.verdict))
    return Estimate(*(part.reshape(shape).T for part in (found.values, found.low, found.high)))


def _pairs(boards: Sequence[Unit]) -> tuple[Ints, str]:
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


def _bin_places(confidence: Floats, single: bool) -> Ints:
    if single:
        return np.unique(confidence, return_inverse=True)[1].astype(np.int64)
    return np.minimum(np.nan_to_num(confidence) * BINS, BINS - 1).astype(np.int64)


def _one_hot(places: Ints) -> Floats:
    width = int(places.max()) + 1 if len(places) else 0
    return np.eye(width)[places]


def _counts(shared: Shared, judge: int) -> list[dict[str, int]]:
    known, _ = verdicts(shared, judge)
    tied = {"questions": int(known.sum()), "divided": int((~known).sum())}
    stated = {"answers": int((known & np.isfinite(shared.confidence[judge])).sum())}
    boards = {"storyboards": len(shared.starts)}
    return [tied, stated, boards, boards, {"pairs": len(shared.pairs)}]


def _told_bins(shared: Shared, judge: int, single: bool) -> tuple[Bin, ...]:
    known, agrees = verdicts(shared, judge)
    counted = known & np.isfinite(shared.confidence[judge])
    confidence, right = shared.confidence[judge][counted], agrees[counted].astype(np.float64)
    return by_value(confidence, right) if single else by_width(confidence, right, BINS)

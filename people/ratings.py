"""Mean ratings: NCS, MAS, EES, visual quality, and whatever else people rated from 1 to 5.

Question: how do people rate the storyboards of a method?
Formula: mean of all ratings of a criterion (Eq. 54), with their standard deviation beside it.
Input: lines of kind ``rating``.
Output: a mean in [1, 5], higher is better; the standard deviation has N - 1 below and is null for one rating.
Undefined when: there is no rating.
Source: KathaTrace, section F.3 and Table 37; visual ratings of Tables 2 and 52.
Departures: none.
Example: ratings 3, 4 and 5 have mean 4 and standard deviation 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..schemas.human import HumanRow
from ..schemas.score import Score
from .resample import Resampling, estimate, ratio, scores

CRITERIA = {
    "NCS": "Narrative coherence.",
    "MAS": "Alignment with the moral target.",
    "EES": "Emotional expressiveness.",
    "visual": "Visual quality.",
}
"""Criteria that the paper names; others are allowed."""


@dataclass(frozen=True)
class Rated:
    """The ratings of one criterion: their mean with its interval, and their standard deviation."""

    mean: Score
    deviation: float | None


def human_ratings(rows: Sequence[HumanRow], method: str, resampling: Resampling) -> dict[str, Rated]:
    """Return criterion -> the ratings of a method, with participant-level intervals."""
    told = [row for row in rows if row.kind == "rating" and row.method == method and not row.repeat]
    return {
        criterion: _rated([row for row in told if row.criterion == criterion], resampling)
        for criterion in sorted({str(row.criterion) for row in told})
    }


def _rated(rows: Sequence[HumanRow], resampling: Resampling) -> Rated:
    values = np.array([row.value for row in rows], dtype=np.float64)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return Rated(mean_of(rows, resampling, stories=len({row.item for row in rows})), deviation)


def mean_of(rows: Sequence[HumanRow], resampling: Resampling, **counts: int) -> Score:
    """Return the mean value of lines that have one, with its participant-level interval."""
    people = sorted({row.rater for row in rows})
    sums, numbers = np.zeros((len(people), 1)), np.zeros((len(people), 1))
    for row in rows:
        person = people.index(row.rater)
        sums[person] += row.value or 0
        numbers[person] += 1
    found = estimate(ratio(sums, numbers), len(people), resampling)
    count = {"judgements": len(rows), "people": len(people), **counts}
    return scores(found, "there is no judgement", [count])[0]

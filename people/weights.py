"""Weights of judges, fitted on people's answers of one split only.

Question: how much should each judge's vote count?
Formula: the logarithm of the odds that the judge agrees with the majority of people, log((a + 1) / (d + 1))
    with a questions agreed and d disagreed on; 0 where that is negative. With independent judges this is
    the weight that makes the weighted majority most likely right (Nitzan and Paroush 1982).
Input: people's answers and the judges' replies to questions of the split.
Output: judge -> weight >= 0.
Undefined when: a judge shares no question with people there; it gets no weight, and is left out.
Source: KathaTrace, section 3.8, names calibrated weighting without a formula; this one is ours.
Departures: none.
Example: a judge that agrees on 8 of 10 questions has weight log(9 / 3) = 1.0986.
"""

import math
from collections.abc import Mapping, Sequence

from ..schemas.human import HumanRow
from ..schemas.katha import Question
from .answers import is_right, majority
from .judged import ENSEMBLE, Judged, Unit, unit_of


def fitted_weights(
    rows: Sequence[HumanRow], questions: Mapping[str, Question], judges: Mapping[str, Judged]
) -> dict[str, float]:
    """Return judge -> weight, from the answers given; the caller keeps to those of one split."""
    votes: dict[Unit, list[bool]] = {}
    for row in rows:
        if row.kind == "answer" and not row.repeat:
            votes.setdefault(unit_of(row), []).append(is_right(row, questions[str(row.item)]))
    people = {unit: majority(found) for unit, found in votes.items()}
    weights = {}
    for name, judge in judges.items():
        if name == ENSEMBLE:
            continue
        shared = [(judge.right[unit], right) for unit, right in people.items() if unit in judge.right]
        agreed = sum(said == right for said, right in shared if right is not None)
        disagreed = sum(said != right for said, right in shared if right is not None)
        if agreed + disagreed:
            weights[name] = max(0.0, math.log((agreed + 1) / (disagreed + 1)))
    return weights

"""Ambiguity detection: how many defective questions does the filter remove, and how many sound ones.

Question: does answering with story and pictures together find the questions that nobody can answer?
Formula: detection = defective questions that are ambiguous (Eq. 19) / defective questions asked so;
    false removals = other questions that are ambiguous / other questions asked so.
Input: verdicts on a release with planted defects (:mod:`.defects`), which questions are defective.
Output: in [0, 1]; detection higher is better, false removals lower.
Undefined when: no defective, or no other, question was asked with story and pictures together.
Source: KathaTrace, J.2 and Table 59, which names it without a formula.
Departures: defects are planted. Other questions may have a defect of their own, or pictures that contradict
    the story, so that false removals are at most so many. Without the filter nothing is removed: both are 0.
Example: 10 questions, 4 planted; 3 of these and 1 other are ambiguous: detection 3/4, false removals 1/6.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ....evaluation.metrics.metric import Quantity
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.values import Score
from .leakage import defects_in, rows_of
from .views import View, share_score

MEASURE = Quantity(name="detection", label="Ambiguity detection", direction="higher", range=(0, 1))


@dataclass(frozen=True)
class Detection:
    """What the filter removes."""

    detection: Score  # of the defective questions, the share that is removed
    false_removals: Score  # of the others, the share that is removed


def detection(view: View, defective: Collection[str], uncertainty: Uncertainty) -> Detection:
    """Return how well the filter tells planted defects from other questions, over all methods."""
    bad = defects_in(view, defective)
    caught, lost = [], []
    for method in view.judged.methods:
        checked = method.outcomes.checked & view.counted
        removed = method.outcomes.ambiguous & checked & (view.chosen != "raw")
        caught += rows_of(view, removed & bad, checked & bad)
        lost += rows_of(view, removed & ~bad, checked & ~bad)
    why = "no {} question was asked with story and pictures together"
    return Detection(
        share_score(
            caught, uncertainty, why.format("defective"), {"defective": int((bad & view.counted).sum())}
        ),
        share_score(lost, uncertainty, why.format("other")),
    )

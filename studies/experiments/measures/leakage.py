"""Ambiguity leakage: how many defective questions stay in the score.

Question: of questions that are known to be defective, how many does a protocol still score?
Formula: leakage = defective questions that are scored / defective questions that were judged;
    contamination = defective questions that are scored / questions that are scored.
Input: verdicts on a release with planted defects (:mod:`.defects`), which questions are defective.
Output: in [0, 1], lower is better.
Undefined when: no defective question was judged; for contamination, no question is scored.
Source: KathaTrace, J.1 and Table 58, which names it without a formula or a way to know defective questions.
Departures: defects are planted. Without the text+image filter everything that was judged is scored, so that
    leakage is 1 by definition, where the paper has 15.4 %: its figure may be of all questions, as
    contamination is. Questions of several seeds or methods count once for each.
Example: 10 questions, 4 defective; the filter removes 3 of these and 1 other: leakage 1/4, contamination 1/6.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....evaluation.metrics.metric import Quantity
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.values import Score
from .views import View, share_score

MEASURE = Quantity(name="leakage", label="Ambiguity leakage", direction="lower", range=(0, 1))
NOTHING = "no defective question was judged"


@dataclass(frozen=True)
class Leakage:
    """What stays in the score."""

    leakage: Score  # of the defective questions, the share that is scored
    contamination: Score  # of what is scored, the share that is defective


def leakage(view: View, defective: Collection[str], uncertainty: Uncertainty) -> Leakage:
    """Return how many defective questions stay in the score, over all methods."""
    bad = defects_in(view, defective)
    leaked, contaminated = [], []
    for method in view.judged.methods:
        scored = view.scored(method)
        judged = method.outcomes.those("raw") & view.counted
        leaked += rows_of(view, scored & bad, judged & bad)
        contaminated += rows_of(view, scored & bad, scored)
    return Leakage(
        share_score(leaked, uncertainty, NOTHING, {"defective": int((bad & view.counted).sum())}),
        share_score(contaminated, uncertainty, "no question is scored"),
    )


def defects_in(view: View, defective: Collection[str]) -> NDArray[np.bool_]:
    """Return which questions are defective, shape (questions,)."""
    return np.array([key.question_id in defective for key in view.judged.items.keys], dtype=bool)


def rows_of(view: View, part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> list[tuple[str, float, float]]:
    """Return story, how many of the part, how many of the whole; both of shape (seeds, questions)."""
    items = view.judged.items
    sums = [
        np.bincount(items.story, weights=mask.sum(axis=0), minlength=items.stories) for mask in (part, whole)
    ]
    names = [record.story_id for record in items.records]
    return [(name, float(some), float(every)) for name, some, every in zip(names, *sums, strict=True)]

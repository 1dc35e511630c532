"""Ambiguity rate.

Question: how many questions cannot be answered as intended even with story and images together?
Formula: b(q) = 1 where the text+image verdict is not right; the rate is the mean of b (Eq. 20).
Input: verdicts per question, shape (seeds, conditions, questions); right, wrong or unjudged.
Output: in [0, 1], lower is better.
Undefined when: no question was judged under text+image evidence.
Source: KathaTrace, Eq. 10, 19-20, 43-44; Table 26.
Departures from the source: questions about an invalid generation were never asked, so that they are no part
    of the rate; their number stands beside it.
Example: ten questions, one of them wrong under text+image: 0.1.
"""

import numpy as np
from numpy.typing import NDArray

from .items import Items
from .pooling import Outcomes, per_story, seed_weights
from .recoverability import Rate

Floats = NDArray[np.float64]

METRIC = Rate(
    name="ambiguity", label="Ambiguity rate", direction="lower", range=(0, 1), needs=("question:text_image",),
    why="no question was judged under text+image evidence",
)  # fmt: skip


def ambiguity_columns(outcomes: Outcomes, items: Items) -> Floats:
    """Return per story and dimension how many questions are ambiguous, and of how many.

    Returns:
        Shape (stories, 2 x dimensions).
    """
    checked, ambiguous = per_story(outcomes.checked, items), per_story(outcomes.ambiguous, items)
    weight = seed_weights(np.asarray(checked.any(axis=-1)))[..., None]
    return np.concatenate([(ambiguous * weight).sum(axis=0), (checked * weight).sum(axis=0)], axis=-1)


def question_counts(outcomes: Outcomes) -> dict[str, int]:
    """Return how many questions went where, seeds counted apart; all but ``total`` add up to it.

    ``valid`` are those of filtered STG; ``unjudged`` lack a verdict under some condition.
    """
    total = int(outcomes.requested.sum())
    valid = int(outcomes.sets["filtered"].sum())
    ambiguous = int(outcomes.ambiguous.sum())
    invalid = int((outcomes.requested & ~outcomes.valid).sum())
    return {
        "total": total,
        "valid": valid,
        "ambiguous": ambiguous,
        "invalid_generation": invalid,
        "unjudged": total - valid - ambiguous - invalid,
    }

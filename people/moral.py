"""HMR@1 and HMR@3: how often people name the intended moral label first, and among their first three.

Question: do people recover the moral target of a story?
Formula: HMR@k = share of judgements (person, story) with the intended label among the first k (Eq. 52-53).
Input: lines of kind ``moral_label``; the moral label of each story.
Output: scores in [0, 1], higher is better; chance is k/12 for somebody who names k different labels blindly.
Undefined when: there is no judgement. Stories without a label of their own are left out and counted.
Source: KathaTrace, section F.2 and Table 37.
Departures: none. Who names one label only, or unclear, counts as naming no others.
Example: labels (kindness, wisdom) and (wisdom), intended kindness and patience: HMR@1 = 1/2, HMR@3 = 1/2.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ..schemas.human import HumanRow
from ..schemas.score import Score
from .answers import shown
from .resample import Resampling, estimate, ratio, scores

RANKS = (1, 3)
NOBODY = "nobody named a moral label under this condition"


def human_moral(
    rows: Sequence[HumanRow],
    morals: Mapping[str, str | None],
    condition: str,
    method: str,
    resampling: Resampling,
) -> dict[str, Score]:
    """Return ``HMR@1`` and ``HMR@3`` of a method under a condition, with participant-level intervals."""
    told = [
        row
        for row in rows
        if row.kind == "moral_label" and row.condition == condition and row.method == shown(condition, method)
        and not row.repeat
    ]  # fmt: skip
    scored = [row for row in told if morals.get(str(row.item)) is not None]
    people = sorted({row.rater for row in scored})
    hits, number = np.zeros((len(people), len(RANKS))), np.zeros((len(people), len(RANKS)))
    for row in scored:
        person = people.index(row.rater)
        number[person] += 1
        hits[person] += [morals[str(row.item)] in row.labels[:rank] for rank in RANKS]
    counts = {"judgements": len(scored), "without_intended_label": len(told) - len(scored)}
    found = scores(estimate(ratio(hits, number), len(people), resampling), NOBODY, [counts] * len(RANKS))
    return {f"HMR@{rank}": score for rank, score in zip(RANKS, found, strict=True)}

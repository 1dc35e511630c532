"""Preferences between two methods: mean, one-sided test with correction, effect size.

Question: do people prefer the storyboards of one method over those of the other, criterion by criterion?
Formula: mean preference (Eq. 69); Wilcoxon signed-rank test of median > 0 (Eq. 64, 70); Bonferroni over the
    criteria of the pair (Eq. 65, 71); rank-biserial correlation (W+ - W-) / (W+ + W-) (Eq. 66, 72).
Input: lines of kind ``preference``; values -2 to 2, positive for ``method``, negative for ``baseline``.
Output: a mean in [-2, 2], p-values in [0, 1], r in [-1, 1].
Undefined when: nobody gave a value. ``unclear`` is counted and left out; 0 (no preference) is a value, but
    drops out of the test, which ranks differences other than zero.
Source: KathaTrace, sections F.7, H.2-H.4, Tables 49-51.
Departures: the paper tests single judgements as if they were independent, which those of one person are not;
    the same test on one mean per person stands beside it (``by_person``).
Example: values 2, 1, 1, 0, -1: the ranks of 2, 1, 1, 1 are 4, 2, 2, 2, so W+ = 8, W- = 2 and r = 0.6. Of the
    16 assignments of signs four have W+ >= 8 (all plus, or one of the three 2s minus): p = 4/16.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation.stats.signed_rank import SignedRank, signed_rank
from ..schemas.human import HumanRow
from ..schemas.score import Score
from .ratings import mean_of
from .resample import Resampling

CRITERIA = {
    "Q1": "causality", "Q2": "causality", "Q3": "intention", "Q4": "intention", "Q5": "emotion",
    "Q6": "emotion", "Q7": "consequence", "Q8": "consequence", "Q9": "moral target", "Q10": "moral target",
    "Q11": "trajectory", "Q12": "overall recoverability", "Q13": "visual coherence",
    "Q14": "bridge repair", "Q15": "overall preference",
}  # fmt: skip
"""The paper's 15 criteria (Table 51) and what each is about; others are allowed."""


@dataclass(frozen=True)
class Preferred:
    """What people preferred between two methods by one criterion.

    Attributes:
        method: the one that positive values favour.
        baseline: the one that negative values favour.
        criterion: what they compared.
        mean: mean preference with its participant-level interval.
        values: how often each of -2, -1, 0, 1 and 2 was given.
        unclear: how often a person could not decide.
        test: over single judgements, as the paper does.
        by_person: over one mean per person.
        tests: how many criteria of this pair were tested; p-values are corrected for it.
        groups: group of participants -> their mean, where groups are named.
    """

    method: str
    baseline: str
    criterion: str
    mean: Score
    values: tuple[int, int, int, int, int]
    unclear: int
    test: SignedRank
    by_person: SignedRank
    tests: int
    groups: Mapping[str, Score]

    @property
    def corrected(self) -> float:
        """The test's p-value, corrected by Bonferroni (Eq. 65)."""
        return min(1.0, self.test.p_value * self.tests)

    @property
    def corrected_by_person(self) -> float:
        """The corrected p-value of the test over people."""
        return min(1.0, self.by_person.p_value * self.tests)


def preferences(rows: Sequence[HumanRow], resampling: Resampling) -> tuple[Preferred, ...]:
    """Return what people preferred, for each pair of methods and each criterion, in order."""
    told = [row for row in rows if row.kind == "preference" and not row.repeat]
    groups: dict[tuple[str, str], dict[str, list[HumanRow]]] = {}
    for row in told:
        pair = groups.setdefault((str(row.method), str(row.baseline)), {})
        pair.setdefault(str(row.criterion), []).append(row)
    return tuple(
        _preferred(given, len(criteria), resampling)
        for _, criteria in sorted(groups.items())
        for _, given in sorted(criteria.items(), key=lambda entry: _in_order(entry[0]))
    )


def _in_order(criterion: str) -> tuple[int, str]:
    """Return what criteria are sorted by: the paper's in its order, then all others."""
    known = list(CRITERIA)
    return (known.index(criterion) if criterion in CRITERIA else len(known), criterion)


def _preferred(rows: Sequence[HumanRow], tests: int, resampling: Resampling) -> Preferred:
    given = [row for row in rows if row.value is not None]
    values = np.array([row.value for row in given], dtype=np.float64)
    people: dict[str, list[float]] = {}
    for row, value in zip(given, values, strict=True):
        people.setdefault(row.rater, []).append(float(value))
    means = np.array([np.mean(one) for _, one in sorted(people.items())])
    one = rows[0]
    groups = sorted({row.group for row in given if row.group is not None})
    return Preferred(
        method=str(one.method), baseline=str(one.baseline), criterion=str(one.criterion),
        mean=mean_of(given, resampling, stories=len({row.item for row in given})),
        values=tuple(int((values == step).sum()) for step in (-2, -1, 0, 1, 2)),  # type: ignore[arg-type]
        unclear=len(rows) - len(given), test=signed_rank(values), by_person=signed_rank(means), tests=tests,
        groups={name: mean_of([row for row in given if row.group == name], resampling) for name in groups},
    )  # fmt: skip

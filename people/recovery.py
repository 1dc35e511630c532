"""Human recoverability and human STG.

Question: how much of a story's transition meaning do people recover from text, from pictures, from both?
Formula: M(i, q, z) = 1 if the normalised answer of person i is accepted (Eq. 56); R(k, z) = mean over the
    valid questions of dimension k of the mean of M over the people who answered (Eq. 57); R(z) = mean of
    R(k, z) over the dimensions (Eq. 58); STG = R(text) - R(image) (Eq. 59).
Input: lines of kind ``answer``; the questions of a release; the questions that are valid for the method.
Output: scores in [0, 1], higher is better; STG in [-1, 1], lower is better.
Undefined when: no valid question was answered under the condition.
Source: KathaTrace, section F.5 and Table 38.
Departures: a question that nobody answered under a condition is left out there and counted; STG uses the
    questions answered under both conditions, so that it compares like with like; R(z) is the mean over the
    dimensions that have an answered valid question. With complete data all of it is the paper's.
Example: one dimension, two questions, three people. Text: 3/3 and 2/3 right; image: 1/3 and 0/3.
    R(text) = (1 + 2/3) / 2 = 5/6, R(image) = (1/3 + 0) / 2 = 1/6, STG = 2/3.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation.stats.bootstrap import divided
from ..schemas.human import HumanRow
from ..schemas.katha import Question
from ..schemas.score import Score
from .answers import CONDITIONS, Answered, asked, tabulated
from .resample import Floats, Resampling, Statistic, estimate, scores

NOBODY = "no valid question was answered under this condition"
NOT_BOTH = "no valid question was answered both under text and under image"


@dataclass(frozen=True)
class HumanRecovery:
    """Human recoverability of one method.

    Attributes:
        recoverability: condition -> ``overall`` or dimension -> score.
        stg: ``overall`` or dimension -> the gap between text and image.
        valid: how many of the questions that were asked are valid.
    """

    recoverability: Mapping[str, Mapping[str, Score]]
    stg: Mapping[str, Score]
    valid: int


def human_recovery(
    rows: Sequence[HumanRow],
    questions: Mapping[str, Question],
    method: str,
    valid: Collection[str],
    resampling: Resampling,
) -> HumanRecovery:
    """Return human recoverability of a method over its valid questions, with participant-level intervals."""
    people = sorted({row.rater for row in rows if row.kind == "answer"})
    told = {condition: asked(rows, condition, method) for condition in CONDITIONS}
    items = sorted({str(row.item) for part in told.values() for row in part} & set(valid))
    names = sorted({questions[item].question_type for item in items})
    member = np.zeros((len(items), len(names)))
    for place, item in enumerate(items):
        member[place, names.index(questions[item].question_type)] = 1
    tables = {
        one: tabulated(part, questions, people, [(item,) for item in items]) for one, part in told.items()
    }
    keys = ("overall", *names)
    recoverability = {}
    for condition, table in tables.items():
        found = estimate(recoverability_of(table, member), len(people), resampling)
        recoverability[condition] = dict(
            zip(keys, scores(found, NOBODY, _coverage(table, member)), strict=True)
        )
    text, image = tables["text"], tables["image"]
    both = np.flatnonzero((text.given.sum(axis=0) > 0) & (image.given.sum(axis=0) > 0))
    gap = estimate(gap_of(text.of(both), image.of(both), member[both]), len(people), resampling)
    counts = [{"questions": int(size)} for size in (len(both), *member[both].sum(axis=0))]
    return HumanRecovery(
        recoverability, dict(zip(keys, scores(gap, NOT_BOTH, counts), strict=True)), len(items)
    )


def recoverability_of(table: Answered, member: Floats) -> Statistic:
    """Return recoverability as a function of the people's weights: overall, then each dimension.

    Args:
        table: who was right about what.
        member: shape (questions, dimensions), 1 where the question is of the dimension.
    """
    present = np.flatnonzero((table.given.sum(axis=0) > 0) @ member)

    def statistic(weights: Floats) -> Floats:
        given = weights @ table.given
        shares = np.nan_to_num(divided(weights @ table.right, given))
        dimensions = divided(shares @ member, (given > 0) @ member)
        overall = dimensions[:, present].mean(axis=1) if len(present) else np.full(len(weights), np.nan)
        return np.column_stack([overall, dimensions])

    return statistic


def gap_of(text: Answered, image: Answered, member: Floats) -> Statistic:
    """Return the semantic trajectory gap as a function of the people's weights: overall, then dimensions."""
    first, second = recoverability_of(text, member), recoverability_of(image, member)
    return lambda weights: first(weights) - second(weights)


def _coverage(table: Answered, member: Floats) -> list[dict[str, int]]:
    """Return counts for the overall score, then for each dimension."""
    answers = table.given.sum(axis=0)
    columns = np.column_stack([np.ones(len(member)), member])
    rows = [
        {"valid": int(valid), "answered": int(questions), "answers": int(number)}
        for valid, questions, number in zip(
            columns.sum(axis=0), (answers > 0) @ columns, answers @ columns, strict=True
        )
    ]
    rows[0]["dimensions"] = int((((answers > 0) @ member) > 0).sum())
    return rows

"""Human correlation: are storyboards that an evaluator finds easier to recover easier for people, too.

Question: do an evaluator and people put storyboards into the same order?
Formula: Spearman's correlation, over pairs of story and method, of the evaluator's image-only recoverability
    and people's: the mean over the questions answered of the share of people whose answer was accepted.
Input: one number of each for every pair of story and method.
Output: in [-1, 1], higher is better.
Undefined when: nobody has answered yet; fewer than three storyboards have both numbers; all are alike.
Source: KathaTrace, Eq. 46, 61 and 74; it does not say what is correlated for evaluators other than its own.
Departures: the interval is of resampled stories, with all storyboards of a story together, as storyboards of
    one story are alike. People answer the benchmark's own questions, whichever evaluator is measured.
Example: evaluator 0.2, 0.5, 0.9, people 0.1, 0.8, 0.6: ranks 1 2 3 and 1 3 2, correlation 0.5.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ....evaluation.metrics.metric import Quantity
from ....evaluation.stats.ranks import levelled
from ....evaluation.stats.uncertainty import Uncertainty
from ....people.recoverability import is_right
from ....schemas.judgement import HumanRow
from ....schemas.katha import Question
from ....schemas.values import Score
from ....validators.resampling import draws
from .views import View, end_of, story_values, undefined

Floats = NDArray[np.float64]
Boards = Mapping[tuple[str, str], float]
"""(story, method) -> a number."""

MEASURE = Quantity(name="human_correlation", label="Human correlation", direction="higher", range=(-1, 1))
NOBODY = "no person has answered yet"
FEWEST = 3
"""Fewest storyboards that can be ranked."""


def recovered(view: View, value: str = "image") -> dict[tuple[str, str], float]:
    """Return (story, method) -> an evaluator's recoverability, where it has one."""
    stories = [record.story_id for record in view.judged.items.records]
    return {
        (story, method.name): float(number)
        for method in view.judged.methods
        for story, number in zip(stories, story_values(view, method, value), strict=True)
        if not np.isnan(number)
    }


def recovered_by_people(
    rows: Iterable[HumanRow], questions: Mapping[str, Question], condition: str = "image"
) -> dict[tuple[str, str], float]:
    """Return (story, method) -> people's recoverability; answers to questions of unknown ids are left out."""
    votes: dict[tuple[str, str], dict[str, list[bool]]] = {}
    for row in rows:
        question = questions.get(str(row.item))
        answers = row.kind == "answer" and row.condition == condition and not row.repeat
        if answers and row.method is not None and question is not None:
            board = votes.setdefault((question.story_id, row.method), {})
            board.setdefault(question.question_id, []).append(is_right(row, question))
    return {key: float(np.mean([np.mean(right) for right in board.values()])) for key, board in votes.items()}


def human_correlation(ours: Boards, people: Boards | None, uncertainty: Uncertainty) -> Score:
    """Return the rank correlation of two numbers of the same storyboards; see the card."""
    if not people:
        return undefined(NOBODY)
    keys = sorted(ours.keys() & people.keys())
    pairs = np.array([(ours[key], people[key]) for key in keys], dtype=np.float64).reshape(-1, 2)
    names = sorted({story for story, _ in keys})
    counts = {"storyboards": len(keys), "stories": len(names)}
    if len(keys) < FEWEST:
        return undefined(f"{len(keys)} storyboards have both numbers; {FEWEST} are needed", **counts)
    value = weighted_spearman(pairs, np.ones((1, len(keys))))[0]
    if np.isnan(value):
        return undefined("all storyboards are alike", **counts)
    owner = np.array([names.index(story) for story, _ in keys], dtype=np.int64)
    resamples = uncertainty.resamples if len(names) > 1 else 0
    blocks = [
        weighted_spearman(pairs, weights[:, owner])
        for weights in draws(len(names), resamples, uncertainty.seed)
    ]
    drawn = np.concatenate([np.zeros(0), *blocks])
    low, high = uncertainty.ends(value, drawn, len(names), (-1.0, 1.0))
    return Score(
        value=float(value), status="ok", low=end_of(low), high=end_of(high), counts=counts
    )  # fmt: skip


def weighted_spearman(pairs: Floats, weights: Floats) -> Floats:
    """Return Spearman's correlation where each pair is there so many times, ties with their mean rank.

    ``pairs``: shape (pairs, 2). ``weights``: whole numbers from 0, shape (times, pairs).

    Returned: shape (times,); ``nan`` where a column is constant.
    """
    first, second = (_ranks(column, weights) for column in pairs.T)
    total = weights.sum(axis=1)
    means = [(weights * ranks).sum(axis=1) / total for ranks in (first, second)]
    first, second = first - means[0][:, None], second - means[1][:, None]
    product = (weights * first * second).sum(axis=1)
    scale = np.sqrt((weights * first**2).sum(axis=1) * (weights * second**2).sum(axis=1))
    values = np.full(len(weights), np.nan)
    np.divide(product, scale, out=values, where=scale > 1e-9)
    return values


def _ranks(column: Floats, weights: Floats) -> Floats:
    """Return the mean rank that each number has where it and the others are there so many times."""
    values, group = np.unique(levelled(column), return_inverse=True)
    sizes = np.zeros((len(weights), len(values)))
    np.add.at(sizes.T, group, weights.T)
    middle = np.cumsum(sizes, axis=1) - sizes + (sizes + 1) / 2
    ranks: Floats = middle[:, group]
    return ranks

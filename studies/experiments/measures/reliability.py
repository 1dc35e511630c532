"""Reliability of a value: do two halves of the questions put storyboards into the same order.

Question: how far is what a value says of storyboards due to the storyboards, and not to which questions were
    asked?
Formula: split-half. The questions of every story are divided at random into two halves; both halves give
    every storyboard a value; r = Pearson's correlation of the two over storyboards (story by method), mean
    over the divisions; reliability = 2 r / (1 + r), Spearman and Brown's correction to the full length.
Input: verdicts per question; the value: text, image or gap, over questions counted alike.
Output: at most 1, higher is better; below 0 where halves disagree.
Undefined when: fewer than three storyboards have two halves; all are alike; r is -1.
Source: KathaTrace names the reliability of STG in Table 59 without a formula. Spearman 1910, Brown 1910.
Departures: the definition is ours. Questions count alike within a half, as halves have too few of a dimension
    for rates of their own. The value from text is the same for all methods but for the filter. The interval
    is of resampled stories.
Example: values of a first half 0, 1, 2, of a second 0, 2, 1: r = 0.5, reliability 2 * 0.5 / 1.5 = 2/3.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....evaluation.metrics.metric import Quantity
from ....evaluation.recoverability.pooling import IMAGE, RIGHT_VERDICT, TEXT
from ....evaluation.stats.uncertainty import Uncertainty, levelled
from ....people.recoverability import is_right
from ....schemas.judgement import HumanRow
from ....schemas.katha import Question
from ....schemas.values import Score
from ....validators.resampling import divided, draws, resampled_sums
from ..study import MASTER_SEED
from .views import View, end_of, share_score, story_values, undefined

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
RELIABILITY = Quantity(name="reliability", label="Reliability", direction="higher", range=(-np.inf, 1))
SPLITS = 50
"""How many divisions of the questions are averaged."""
FEWEST = 3


def reliability(view: View, value: str, uncertainty: Uncertainty, splits: int = SPLITS) -> Score:
    """Return the split-half reliability of a value over storyboards."""
    pairs = np.stack([_halves(view, value, half) for half in _divisions(view, splits)])
    known = np.asarray(np.isfinite(pairs).all(axis=-1))
    boards = int(known.any(axis=0).sum())
    counts = {"storyboards": boards, "stories": int(known.any(axis=0).any(axis=0).sum()), "splits": splits}
    if boards < FEWEST:
        return undefined(f"{boards} storyboards have two halves; {FEWEST} are needed", **counts)
    columns = _moments(pairs, known)
    estimated = corrected(correlations(columns.sum(axis=0).reshape(splits, 6)))
    if np.isnan(estimated):
        return undefined("all storyboards are alike, or halves are opposites", **counts)
    stories = len(columns)
    drawn = resampled_sums(columns, uncertainty.resamples if stories > 1 else 0, uncertainty.seed)
    replicates = corrected(correlations(drawn.reshape(len(drawn), splits, 6)))
    low, high = uncertainty.ends(estimated, replicates, counts["stories"], (-np.inf, 1.0))
    return Score(
        value=float(estimated), status="ok", low=end_of(low), high=end_of(high), counts=counts
    )  # fmt: skip


def correlations(sums: Floats) -> Floats:
    """Return Pearson's correlation of sums.

    ``sums``: number, of x, of y, of x x, of y y, of x y; shape (..., 6).

    Returned: shape (...), ``nan`` where it has none.
    """
    number, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(number * xx - x**2, 0) * np.maximum(number * yy - y**2, 0)
    return divided(number * xy - x * y, np.where(spread > 1e-12, np.sqrt(spread), 0.0))


def corrected(halves: Floats) -> Floats:
    """Return the reliability of the full length from correlations of halves, mean over the last axis."""
    known = ~np.isnan(halves)
    mean = divided(np.where(known, halves, 0.0).sum(axis=-1), known.sum(axis=-1).astype(np.float64))
    return divided(2 * mean, 1 + mean)


def _divisions(view: View, splits: int) -> list[Mask]:
    """Return which questions are in the first half, for each division; shape (questions,)."""
    story = view.judged.items.story
    random = np.random.default_rng(MASTER_SEED)
    counted = np.flatnonzero(view.counted)
    sizes = np.bincount(story[counted], minlength=view.judged.items.stories)
    starts = np.cumsum(sizes) - sizes
    divisions = []
    for _ in range(splits):
        order = counted[np.lexsort((random.random(len(counted)), story[counted]))]
        rank = np.arange(len(order)) - starts[story[order]]
        first = np.zeros(len(story), dtype=bool)
        first[order[rank < sizes[story[order]] // 2]] = True
        divisions.append(first)
    return divisions


def _halves(view: View, value: str, first: Mask) -> Floats:
    """Return the value of both halves for each method and story, shape (methods, stories, 2)."""
    return np.stack([_value(view, value, half) for half in (first, ~first)], axis=-1)


def _value(view: View, value: str, half: Mask) -> Floats:
    items, rates = view.judged.items, []

    def per_story(mask: Mask) -> Floats:
        counts = np.bincount(items.story, mask.sum(axis=0).astype(np.float64), items.stories)
        return np.asarray(counts, dtype=np.float64)

    for method in view.judged.methods:
        scored = view.scored(method) & half
        right = method.outcomes.verdicts == RIGHT_VERDICT
        text, image = (
            divided(per_story(scored & hits), per_story(scored))
            for hits in (right[:, TEXT], right[:, IMAGE] & method.outcomes.valid)
        )
        rates.append({"text": text, "image": image, "gap": text - image}[value])
    return np.stack(rates)


def _moments(pairs: Floats, known: Mask) -> Floats:
    """Return the sums behind each division's correlation, per story; shape (stories, splits x 6)."""
    x, y = (np.where(known, pairs[..., half], 0.0) for half in (0, 1))
    parts = np.stack([known.astype(np.float64), x, y, x * x, y * y, x * y], axis=-1)  # split method story 6
    per_story: Floats = np.moveaxis(parts.sum(axis=1), 1, 0)
    return per_story.reshape(len(per_story), -1)


# -- Human correlation: are storyboards that an evaluator finds easier to recover easier for people, too
#
# Question: do an evaluator and people put storyboards into the same order?
# Formula: Spearman's correlation, over pairs of story and method, of the evaluator's image-only
# recoverability
#     and people's: the mean over the questions answered of the share of people whose answer was accepted.
# Input: one number of each for every pair of story and method.
# Output: in [-1, 1], higher is better.
# Undefined when: nobody has answered yet; fewer than three storyboards have both numbers; all are alike.
# Source: KathaTrace, Eq. 46, 61 and 74; it does not say what is correlated for evaluators other than its own.
# Departures: the interval is of resampled stories, with all storyboards of a story together, as storyboards
# of
#     one story are alike. People answer the benchmark's own questions, whichever evaluator is measured.
# Example: evaluator 0.2, 0.5, 0.9, people 0.1, 0.8, 0.6: ranks 1 2 3 and 1 3 2, correlation 0.5.

Boards = Mapping[tuple[str, str], float]
"""(story, method) -> a number."""

CORRELATION = Quantity(name="human_correlation", label="Human correlation", direction="higher", range=(-1, 1))
NOBODY = "no person has answered yet"


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
    low, high = uncertainty.ends(value, drawn, len(names), (-np.inf, 1.0))  # no mean: no exact interval
    return Score(
        value=float(value), status="ok", low=end_of(np.maximum(low, -1.0)), high=end_of(high), counts=counts
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


# -- Ambiguity leakage: how many defective questions stay in the score
#
# Question: of questions that are known to be defective, how many does a protocol still score?
# Formula: leakage = defective questions that are scored / defective questions that were judged;
#     contamination = defective questions that are scored / questions that are scored.
# Input: verdicts on a release with planted defects (:mod:`.defects`), which questions are defective.
# Output: in [0, 1], lower is better.
# Undefined when: no defective question was judged; for contamination, no question is scored.
# Source: KathaTrace, J.1 and Table 58, which names it without a formula or a way to know defective questions.
# Departures: defects are planted. Without the text+image filter everything that was judged is scored, so that
#     leakage is 1 by definition, where the paper has 15.4 %: its figure may be of all questions, as
#     contamination is. Questions of several seeds or methods count once for each.
# Example: 10 questions, 4 defective; the filter removes 3 of these and 1 other: leakage 1/4, contamination
# 1/6.

LEAKAGE = Quantity(name="leakage", label="Ambiguity leakage", direction="lower", range=(0, 1))
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


# -- Ambiguity detection: how many defective questions does the filter remove, and how many sound ones
#
# Question: does answering with story and pictures together find the questions that nobody can answer?
# Formula: detection = defective questions that are ambiguous (Eq. 19) / defective questions asked so;
#     false removals = other questions that are ambiguous / other questions asked so.
# Input: verdicts on a release with planted defects (:mod:`.defects`), which questions are defective.
# Output: in [0, 1]; detection higher is better, false removals lower.
# Undefined when: no defective, or no other, question was asked with story and pictures together.
# Source: KathaTrace, J.2 and Table 59, which names it without a formula.
# Departures: defects are planted. Other questions may have a defect of their own, or pictures that contradict
# the story, so that false removals are at most so many. Without the filter nothing is removed: both are 0.
# Example: 10 questions, 4 planted; 3 of these and 1 other are ambiguous: detection 3/4, false removals 1/6.

DETECTION = Quantity(name="detection", label="Ambiguity detection", direction="higher", range=(0, 1))


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

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

import numpy as np
from numpy.typing import NDArray

from ....evaluation.metrics.metric import Quantity
from ....evaluation.recoverability.pooling import IMAGE, RIGHT_VERDICT, TEXT
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.values import Score
from ....validators.resampling import divided, resampled_sums
from ..study import MASTER_SEED
from .views import View, end_of, undefined

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
MEASURE = Quantity(name="reliability", label="Reliability", direction="higher", range=(-np.inf, 1))
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

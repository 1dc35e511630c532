"""Contrastive pair accuracy, confusion, and the gap against contrastive trajectories.

Question: do the images tell the story, or could they as well tell one that looks alike and means another?
Formula: pair accuracy = pairs for which the source is chosen / pairs (Eq. 29); confusion = 1 - pair
    accuracy (Eq. 30). Gap against contrastive trajectories: share of pairs whose story's label is found from
    text, less share whose contrastive label is found from the images.
Input: choices per pair and labels per story, both of shape (seeds, conditions, items).
Output: accuracy in [0, 1], higher is better; the gap in [-1, 1], higher than the source's is better.
Undefined when: no pair was judged; for the gap, no pair has a contrastive label.
Source: KathaTrace, C.8, Eq. 29-30; section 4.2 and Table 4 for the gap.
Departures from the source: it does not say how STG on contrastive trajectories is computed. Ours needs no
    further question: the label that judges read from the images is held against the variant's label.
Example: of 4 pairs the source is chosen for 3, the variant for none, one is unclear: accuracy 0.75,
    confusion 0.25, of which chosen wrongly 0.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from .coverage import Generations
from .items import Items
from .pooling import IMAGE, TEXT, seed_weights
from .recoverability import Rate, gap, share
from .replies import CONTRASTIVE, SOURCE
from .votes import UNJUDGED, Verdicts

Floats = NDArray[np.float64]

NO_PAIR = "no contrastive pair was judged, or none has a label of its own"
_choice = partial(Rate, range=(0, 1), needs=("contrast:image",), why=NO_PAIR)
_label = partial(Rate, needs=("moral_label:text", "moral_label:image"), why=NO_PAIR)
METRICS = (
    _choice(name="accuracy", label="Pair accuracy", direction="higher", of=share(0, 2)),
    _choice(name="confusion", label="Confusion", direction="lower", of=lambda one: 1 - share(0, 2)(one)),
    _choice(name="contrastive_chosen", label="Contrastive chosen", direction="lower", of=share(1, 2)),
    _label(name="text", label="From text", direction="higher", range=(0, 1), of=share(3, 5), shown=False),
    _label(name="image", label="From images", direction="lower", range=(0, 1), of=share(4, 5), shown=False),
    _label(name="gap", label="Gap to contrastive labels", direction="higher", range=(-1, 1), of=gap(3, 4, 5)),
)
"""Of the columns of :func:`contrast_columns`."""


def contrast_columns(choices: Verdicts, labels: Verdicts, made: Generations, items: Items) -> Floats:
    """Return per story what was chosen, means over seeds.

    Args:
        choices: which trajectory the images show, shape (seeds, conditions, pairs).
        labels: label of each story, shape (seeds, conditions, stories).
        made: the method's generations.
        items: stories and pairs.

    Returns:
        Shape (stories, 6): source chosen, contrastive chosen, of how many pairs; story's label found from
        text, contrastive label found from images, of how many pairs.
    """
    story = items.pair_story
    chosen = choices[:, IMAGE]
    judged = made.valid[:, story] & (chosen != UNJUDGED)
    shown, told = labels[:, IMAGE][:, story], labels[:, TEXT][:, story]
    held = made.valid[:, story] & (shown != UNJUDGED) & (told != UNJUDGED)
    held &= (items.pair_moral >= 0) & (items.pair_moral != items.moral[story]) & (items.moral[story] >= 0)
    parts = [
        judged & (chosen == SOURCE), judged & (chosen == CONTRASTIVE), judged,
        held & (told == items.moral[story]), held & (shown == items.pair_moral), held,
    ]  # fmt: skip
    sums = [_per_story(part, items) for part in parts]
    weights = [seed_weights(sums[2] > 0)] * 3 + [seed_weights(sums[5] > 0)] * 3
    return np.stack([(one * weight).sum(axis=0) for one, weight in zip(sums, weights, strict=True)], axis=-1)


def _per_story(chosen: NDArray[np.bool_], items: Items) -> Floats:
    counts = [np.bincount(items.pair_story[row], minlength=items.stories) for row in chosen]
    return np.array(counts, dtype=np.float64)

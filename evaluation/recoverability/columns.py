"""Scores of storyboards beside recoverability: ambiguity, moral targets and contrastive pairs.

Ambiguity rate
--------------
Question: how many questions cannot be answered as intended even with story and images together?
Formula: b(q) = 1 where the text+image verdict is not right; the rate is the mean of b (Eq. 20).
Input: verdicts per question, shape (seeds, conditions, questions); right, wrong or unjudged.
Output: in [0, 1], lower is better.
Undefined when: no question was judged under text+image evidence.
Source: KathaTrace, Eq. 10, 19-20, 43-44; Table 26.
Departures from the source: questions about an invalid generation were never asked, so that they are no part
    of the rate; their number stands beside it.
Example: ten questions, one of them wrong under text+image: 0.1.

Moral-target recoverability
---------------------------
Question: do judges find the story's moral target among the twelve labels?
Formula: MTR_z = stories whose label under evidence z is the story's / stories (Eq. 39); gap: MTR_text -
    MTR_image (Eq. 40); chance 1/12 (Eq. 41); majority: share of the most frequent label (Eq. 42).
Input: labels per story, shape (seeds, conditions, stories); labels of the release.
Output: MTR in [0, 1], higher is better; gap in [-1, 1], lower is better.
Undefined when: no story with a label was asked about under both text-only and image-only evidence.
Source: KathaTrace, Eq. 39-42. It is not the scored dimension ``moral``, which has questions of its own.
Departures from the source: text and image rates stand on the same stories, those judged under both.
Example: 12 stories with 12 labels, 6 found from text and 3 from images: 0.5, 0.25, gap 0.25.

Contrastive pair accuracy, confusion, and the gap against contrastive trajectories
----------------------------------------------------------------------------------
Question: do the images tell the story, or could they as well tell one that looks alike and means another?
Formula: pair accuracy = pairs for which the source is chosen / pairs (Eq. 29); confusion = 1 - pair
    accuracy (Eq. 30). Gap against contrastive trajectories: share of pairs whose story's label is found from
    text, less share whose contrastive label is found from the images.
Input: choices per pair and labels per story, both of shape (seeds, conditions, items).
Output: accuracy in [0, 1], higher is better; the gap in [-1, 1], higher than the source's is better.
    Where a method also drew variants: variant accuracy, the share of their outputs for which the variant is
    chosen; and the share of pairs with both outputs for which both choices are right.
Undefined when: no pair was judged; for the gap, no pair has a contrastive label; no variant was drawn.
Source: KathaTrace, C.8, Eq. 29-30; section 4.2 and Table 4 for the gap.
Departures from the source: this gap needs no further question: the label that judges read from the images is
    held against the variant's label.
Example: of 4 pairs the source is chosen for 3, the variant for none, one is unclear: accuracy 0.75,
    confusion 0.25, of which chosen wrongly 0.

STG on contrastive trajectories
-------------------------------
Question: how much of what a variant tells is lost in pictures that were made of its base story?
Formula: Eq. 17-18 over the questions about variants: text is the variant's, images are the source's
    storyboard, of questions answered rightly from both together (the filter of Eq. 7 and 16).
Input: verdicts on the questions about variants, shape (seeds, conditions, questions).
Output: recoverability in [0, 1]; the gap in [-1, 1], above the source's where pictures tell their story.
Undefined when: no variant has questions of its own, or none of them was counted.
Source: KathaTrace, section 4.2 and Table 4: 41.2 beside 28.4 on source trajectories.
Departures from the source: it says neither what is asked nor what is shown. With a text and pictures that
    contradict it, a judge who trusts the pictures finds fewer questions valid; their number stands beside.
Example: two causal questions about variants, both right from the variants' texts and with the pictures, one
    from the pictures alone: text 1, images 0.5, gap 0.5.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from .matching import CONDITIONS, DIMENSIONS, LABELS, Items
from .pooling import IMAGE, TEXT, UNJUDGED, Outcomes, Sums, Verdicts, per_story, seed_weights, sums_of
from .recoverability import Of, Rate, Rates, gap, share
from .replies import CONTRASTIVE, SOURCE, Generations

Floats = NDArray[np.float64]

AMBIGUITY = Rate(
    name="ambiguity", label="Ambiguity rate", direction="lower", range=(0, 1), needs=("question:text_image",),
    why="no question was judged under text+image evidence",
)  # fmt: skip


def ambiguity_columns(outcomes: Outcomes, items: Items) -> Floats:
    """Return per story and dimension how many questions are ambiguous, and of how many.

    Returned: shape (stories, 2 x dimensions).
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


CHANCE = 1 / len(LABELS)
NO_LABEL = "no story was asked for its moral target under text and image evidence"
_rate = partial(Rate, needs=("moral_label:text", "moral_label:image"), why=NO_LABEL)
MORAL = (
    _rate(name="text", label="From text", direction="higher", range=(0, 1), of=share(0, 2)),
    _rate(name="image", label="From images", direction="higher", range=(0, 1), of=share(1, 2)),
    _rate(name="gap", label="Gap", direction="lower", range=(-1, 1), of=gap(0, 1, 2)),
    _rate(
        name="text_image",
        label="From both",
        direction="higher",
        range=(0, 1),
        of=share(3, 4),
        needs=("moral_label:text_image",),
    ),
)
"""Of the columns of :func:`moral_columns`."""
BESIDE = {"chance": "Chance", "majority": "Majority label"}
"""What stands beside them, and its label."""


def moral_columns(labels: Verdicts, made: Generations, items: Items) -> Floats:
    """Return per story what was found, means over seeds.

    Returned: shape (stories, 5): found from text, found from images, of how many; found from both, of how
    many.
    """
    target = items.moral >= 0
    judged = (labels != UNJUDGED) & target
    judged[:, 1:] &= made.valid[:, None, :]
    hits = judged & (labels == items.moral)
    compared = judged[:, 0] & judged[:, 1] & made.requested
    weight, weight_both = seed_weights(compared), seed_weights(judged[:, 2])
    parts = [
        (hits[:, 0] * weight), (hits[:, 1] * weight), (compared * weight),
        (hits[:, 2] * weight_both), (judged[:, 2] * weight_both),
    ]  # fmt: skip
    return np.stack([part.sum(axis=0) for part in parts], axis=-1)


def majority_share(items: Items, stories: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many of some stories have the most frequent label, and how many have one."""
    labels = items.moral[stories & (items.moral >= 0)]
    return (int(np.bincount(labels).max()), len(labels)) if len(labels) else (0, 0)


NO_PAIR = "no contrastive pair was judged, or none has a label of its own"
_choice = partial(Rate, range=(0, 1), needs=("contrast:image",), why=NO_PAIR)
_label = partial(Rate, needs=("moral_label:text", "moral_label:image"), why=NO_PAIR)
_twin = partial(
    Rate, direction="higher", range=(0, 1), needs=("variant:image",),
    why="the method made no outputs of variants, or none was judged",
)  # fmt: skip
TWINS = (
    _twin(name="variant_accuracy", label="Variant accuracy", of=share(6, 7)),
    _twin(name="both_accuracy", label="Both told apart", of=share(8, 9)),
)
"""Of the columns of :func:`twin_columns`, behind those of :func:`contrast_columns`."""
CONTRASTS = (
    _choice(name="accuracy", label="Pair accuracy", direction="higher", of=share(0, 2)),
    _choice(name="confusion", label="Confusion", direction="lower", of=lambda part: 1 - share(0, 2)(part)),
    _choice(name="contrastive_chosen", label="Contrastive chosen", direction="lower", of=share(1, 2)),
    _label(name="text", label="From text", direction="higher", range=(0, 1), of=share(3, 5), shown=False),
    _label(name="image", label="From images", direction="lower", range=(0, 1), of=share(4, 5), shown=False),
    _label(name="gap", label="Gap to contrastive labels", direction="higher", range=(-1, 1), of=gap(3, 4, 5)),
)
"""Of the columns of :func:`contrast_columns`."""
NO_VARIANT = "no variant has questions of its own, or none of them was counted"


def _trajectory(number: int) -> Of:
    return lambda sums: Rates.of(Sums.of(sums[..., _BEFORE:])).overall()[number]


_BEFORE = 10
"""How many columns stand before those of :func:`trajectory_columns`."""
_told = partial(Rate, needs=tuple(f"variant_question:{name}" for name in CONDITIONS), why=NO_VARIANT)
TRAJECTORIES = (
    _told(
        name="variant_text", label="From variants' texts", direction="higher", range=(0, 1), of=_trajectory(0)
    ),
    _told(
        name="variant_image", label="From images of the source", direction="lower", range=(0, 1),
        of=_trajectory(1),
    ),
    _told(name="variant_gap", label="STG on variants", direction="higher", range=(-1, 1), of=_trajectory(2)),
)  # fmt: skip
"""Of the columns of :func:`trajectory_columns`, behind those of :func:`twin_columns`."""
PAIRS = (*CONTRASTS, *TWINS, *TRAJECTORIES)
"""Of the columns of :func:`contrast_columns`, of :func:`twin_columns`, of :func:`trajectory_columns`."""


def trajectory_columns(outcomes: Outcomes | None, items: Items) -> Floats:
    """Return the sums per story over the questions about its variants, shape (stories, 3 x dimensions)."""
    if outcomes is None or items.contrast is None:
        return np.zeros((items.stories, 3 * len(DIMENSIONS)))
    return sums_of(outcomes, outcomes.sets["filtered"], items.contrast).columns()


def contrast_columns(choices: Verdicts, labels: Verdicts, made: Generations, items: Items) -> Floats:
    """Return per story what was chosen, means over seeds.

    ``choices``: which trajectory the images show, shape (seeds, conditions, pairs). ``labels``: label of each
    story, shape (seeds, conditions, stories).

    Returned: shape (stories, 6): source chosen, contrastive chosen, of how many pairs; story's label found
    from text, contrastive label found from images, of how many pairs.
    """
    story = items.pair_story
    chosen = choices[:, IMAGE]
    judged = made.valid[:, story] & (chosen != UNJUDGED)
    shown, read = labels[:, IMAGE][:, story], labels[:, TEXT][:, story]
    held = made.valid[:, story] & (shown != UNJUDGED) & (read != UNJUDGED)
    held &= (items.pair_moral >= 0) & (items.pair_moral != items.moral[story]) & (items.moral[story] >= 0)
    parts = [
        judged & (chosen == SOURCE), judged & (chosen == CONTRASTIVE), judged,
        held & (read == items.moral[story]), held & (shown == items.pair_moral), held,
    ]  # fmt: skip
    sums = [_per_story(part, items) for part in parts]
    weights = [seed_weights(sums[2] > 0)] * 3 + [seed_weights(sums[5] > 0)] * 3
    return np.stack(
        [(part * weight).sum(axis=0) for part, weight in zip(sums, weights, strict=True)], axis=-1
    )


def twin_columns(choices: Verdicts, variant: Verdicts, made: Generations, items: Items) -> Floats:
    """Return per story what was chosen where the variant was drawn, too; means over seeds.

    ``choices``: which trajectory the outputs of the story show, shape (seeds, conditions, pairs).

    Returned: shape (stories, 4): variant chosen for its own outputs, of how many; source chosen for the
    story's outputs and variant for its own, of how many pairs with both judged.
    """
    own, other = choices[:, IMAGE], variant[:, IMAGE]
    drawn = other != UNJUDGED
    both = drawn & made.valid[:, items.pair_story] & (own != UNJUDGED)
    right = drawn & (other == CONTRASTIVE)
    sums = [_per_story(part, items) for part in (right, drawn, both & right & (own == SOURCE), both)]
    weights = [seed_weights(sums[1] > 0)] * 2 + [seed_weights(sums[3] > 0)] * 2
    return np.stack(
        [(part * weight).sum(axis=0) for part, weight in zip(sums, weights, strict=True)], axis=-1
    )


def _per_story(chosen: NDArray[np.bool_], items: Items) -> Floats:
    counts = [np.bincount(items.pair_story[row], minlength=items.stories) for row in chosen]
    return np.array(counts, dtype=np.float64)

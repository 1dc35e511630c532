"""Moral-target recoverability.

Question: do judges find the story's moral target among the twelve labels?
Formula: MTR_z = stories whose label under evidence z is the story's / stories (Eq. 39); gap: MTR_text -
    MTR_image (Eq. 40); chance 1/12 (Eq. 41); majority: share of the most frequent label (Eq. 42).
Input: labels per story, shape (seeds, conditions, stories); labels of the release.
Output: MTR in [0, 1], higher is better; gap in [-1, 1], lower is better.
Undefined when: no story with a label was asked about under both text-only and image-only evidence.
Source: KathaTrace, Eq. 39-42. It is not the scored dimension ``moral``, which has questions of its own.
Departures from the source: text and image rates stand on the same stories, those judged under both.
Example: 12 stories with 12 labels, 6 found from text and 3 from images: 0.5, 0.25, gap 0.25.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from .coverage import Generations
from .items import LABELS, Items
from .pooling import seed_weights
from .recoverability import Rate, gap, share
from .votes import UNJUDGED, Verdicts

Floats = NDArray[np.float64]

CHANCE = 1 / len(LABELS)
NO_LABEL = "no story was asked for its moral target under text and image evidence"
_rate = partial(Rate, needs=("moral_label:text", "moral_label:image"), why=NO_LABEL)
METRICS = (
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

    Returns:
        Shape (stories, 5): found from text, found from images, of how many; found from both, of how many.
    """
    target = items.moral >= 0
    judged = (labels != UNJUDGED) & target
    judged[:, 1:] &= made.valid[:, None, :]
    found = judged & (labels == items.moral)
    compared = judged[:, 0] & judged[:, 1] & made.requested
    weight, weight_both = seed_weights(compared), seed_weights(judged[:, 2])
    parts = [
        (found[:, 0] * weight), (found[:, 1] * weight), (compared * weight),
        (found[:, 2] * weight_both), (judged[:, 2] * weight_both),
    ]  # fmt: skip
    return np.stack([part.sum(axis=0) for part in parts], axis=-1)


def majority_share(items: Items, stories: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many of some stories have the most frequent label, and how many have one."""
    labels = items.moral[stories & (items.moral >= 0)]
    return (int(np.bincount(labels).max()), len(labels)) if len(labels) else (0, 0)

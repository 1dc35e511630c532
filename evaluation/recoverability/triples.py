"""The eight outcome triples of the three evidence conditions (Table 30), counted.

The table names five; the other three can happen too, and say that judging was not stable.
"""

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from .pooling import BOTH, IMAGE, TEXT, Outcomes
from .votes import RIGHT_VERDICT, UNJUDGED

MEANINGS: dict[tuple[bool, bool, bool], str] = {
    (True, True, True): "recovered from text and from images",
    (True, False, True): "lost on the way to the images",
    (False, False, True): "recovered only from text and images together",
    (False, True, True): "recovered from images, not from text: a negative gap, to be inspected",
    (True, False, False): "recovered from text, not with the images beside it: images contradict or mislead",
    (False, False, False): "never recovered: a defective or underspecified question",
    (True, True, False): "recovered from either, not from both together: judging is not stable",
    (False, True, False): "recovered from images alone: judging is not stable",
}


@dataclass(frozen=True)
class Triple:
    """How often one combination of verdicts occurred.

    Attributes:
        text: whether the answer was right under text-only evidence.
        image: whether it was under image-only evidence.
        text_image: whether it was under both.
        count: of how many questions that was so, seeds counted apart.
        included: whether such questions are part of filtered STG.
        in_table_30: whether the paper's table has this combination.
        meaning: what it says.
    """

    text: bool
    image: bool
    text_image: bool
    count: int
    included: bool
    in_table_30: bool
    meaning: str

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)


def triples_of(outcomes: Outcomes) -> tuple[Triple, ...]:
    """Return the eight combinations with their counts, over questions judged under all three conditions."""
    judged = outcomes.valid & (outcomes.verdicts != UNJUDGED).all(axis=1)
    right = outcomes.verdicts == RIGHT_VERDICT
    codes = (right[:, TEXT] * 4 + right[:, IMAGE] * 2 + right[:, BOTH])[judged]
    counts = np.bincount(codes.astype(np.int64), minlength=8)
    found = []
    for text, image, both in product((True, False), repeat=3):
        unlisted = (image and not text) or (image and not both)
        count = int(counts[4 * text + 2 * image + both])
        meaning = MEANINGS[text, image, both]
        found.append(Triple(text, image, both, count, both, not unlisted, meaning))
    return tuple(found)

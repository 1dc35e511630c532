"""Which questions count, and their sums per story: what every rate and its interval are made of.

Three **sets** of questions, per method:

- ``raw``: all that were judged under text-only evidence and either judged under image-only evidence or could
  not be, because the generation is invalid; those count as not recovered.
- ``filtered``: those of raw whose generation is valid and whose intended answer is recovered under text+image
  evidence (Eq. 7 and 16).
- ``common``: those of filtered that are filtered for every method and every seed.

Two **levels**: at ``question`` level each question has the same weight in its dimension (Eq. 17); at
``story`` level each story has, with the share of its questions of that dimension. Several seeds of a story
are one story: its sums are means over the seeds that have a question in the set (Table 44).

Of the eight outcome triples of the three evidence conditions, Table 30 names five; the other three say that
judging was not stable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...validators.resampling import divided
from .coverage import Generations
from .items import DIMENSIONS, Items
from .votes import RIGHT_VERDICT, UNJUDGED, Verdicts

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SetName = Literal["raw", "filtered", "common"]
Level = Literal["question", "story"]
SETS: tuple[SetName, ...] = ("raw", "filtered", "common")
LEVELS: tuple[Level, ...] = ("question", "story")
TEXT, IMAGE, BOTH = 0, 1, 2


@dataclass(frozen=True)
class Outcomes:
    """The verdicts on every question for one method, and which set each belongs to."""

    verdicts: Verdicts = field(repr=False)  # right, wrong or unjudged, shape (seeds, conditions, questions)
    # name -> which questions are in it, shape (seeds, questions)
    sets: Mapping[SetName, Mask] = field(repr=False)
    # whether the question's generation was asked for, shape (seeds, questions)
    requested: Mask = field(repr=False)
    valid: Mask = field(repr=False)  # whether the question's generation is valid, shape (seeds, questions)

    @property
    def checked(self) -> Mask:
        """Which questions have a text+image verdict on a valid generation, shape (seeds, questions)."""
        checked: Mask = self.valid & (self.verdicts[:, BOTH] != UNJUDGED)
        return checked

    @property
    def ambiguous(self) -> Mask:
        """Which of them are not recovered even so (Eq. 19), shape (seeds, questions)."""
        ambiguous: Mask = self.checked & (self.verdicts[:, BOTH] != RIGHT_VERDICT)
        return ambiguous


def outcomes_of(
    verdicts: Mapping[str, Verdicts], made: Mapping[str, Generations], items: Items
) -> dict[str, Outcomes]:
    """Return method -> its outcomes.

    ``verdicts``: method -> verdicts, shape (seeds, conditions, questions). ``made``: method -> its
    generations.
    """
    outcomes: dict[str, Outcomes] = {}
    common = np.ones(items.questions, dtype=bool)
    for method, board in verdicts.items():
        requested = made[method].requested[:, items.story]
        valid = made[method].valid[:, items.story]
        shown = valid & (board[:, IMAGE] != UNJUDGED)
        raw = requested & (board[:, TEXT] != UNJUDGED) & (shown | ~valid)
        filtered = raw & shown & (board[:, BOTH] == RIGHT_VERDICT)
        common &= (filtered | ~requested).all(axis=0)
        outcomes[method] = Outcomes(board, {"raw": raw, "filtered": filtered}, requested, valid)
    return {
        method: Outcomes(
            outcome.verdicts,
            {**outcome.sets, "common": outcome.sets["filtered"] & common},
            outcome.requested,
            outcome.valid,
        )
        for method, outcome in outcomes.items()
    }


@dataclass(frozen=True)
class Sums:
    """Per story and dimension: what was recovered and of how many; or any sums of that."""

    text: Floats = field(repr=False)  # recovered under text-only evidence, shape (..., dimensions)
    image: Floats = field(repr=False)  # recovered under image-only evidence, shape (..., dimensions)
    # how many questions, or stories, were counted, shape (..., dimensions)
    counted: Floats = field(repr=False)

    def columns(self) -> Floats:
        """Return the three side by side, shape (..., 3 x dimensions)."""
        return np.concatenate([self.text, self.image, self.counted], axis=-1)

    @classmethod
    def of(cls, columns: Floats) -> "Sums":
        """Return what :meth:`columns` put side by side."""
        return cls(*np.split(columns, 3, axis=-1))

    def total(self) -> "Sums":
        """Return the sums over stories, shape (dimensions,)."""
        return Sums(self.text.sum(axis=0), self.image.sum(axis=0), self.counted.sum(axis=0))


def sums_of(outcomes: Outcomes, chosen: Mask, items: Items, level: Level = "question") -> Sums:
    """Return the sums per story over the chosen questions.

    ``chosen``: which questions count, shape (seeds, questions).

    Returned: arrays of shape (stories, dimensions).
    """
    text = per_story(chosen & (outcomes.verdicts[:, TEXT] == RIGHT_VERDICT), items)
    image = per_story(chosen & outcomes.valid & (outcomes.verdicts[:, IMAGE] == RIGHT_VERDICT), items)
    counted = per_story(chosen, items)
    if level == "story":
        text, image = (np.nan_to_num(divided(part, counted)) for part in (text, image))
        counted = (counted > 0).astype(np.float64)
        weight = 1 / np.maximum(counted.sum(axis=0), 1)  # seeds in which the dimension is counted
        return Sums((text * weight).sum(axis=0), (image * weight).sum(axis=0), (counted * weight).sum(axis=0))
    weight = seed_weights(np.asarray(counted.any(axis=-1)))[..., None]
    return Sums((text * weight).sum(axis=0), (image * weight).sum(axis=0), (counted * weight).sum(axis=0))


def seed_weights(there: Mask) -> Floats:
    """Return 1 / number of seeds that a story has, 0 where it has none; shape as given (seeds, stories)."""
    number = there.sum(axis=0)
    return np.where(there, 1 / np.maximum(number, 1), 0.0)


def per_story(chosen: Mask, items: Items) -> Floats:
    """Return how many chosen questions each story has per dimension.

    ``chosen``: shape (seeds, questions).

    Returned: shape (seeds, stories, dimensions).
    """
    width = items.stories * len(DIMENSIONS)
    places = items.story * len(DIMENSIONS) + items.dimension
    counts = [np.bincount(places[row], minlength=width) for row in chosen]
    return np.array(counts, dtype=np.float64).reshape(len(chosen), items.stories, len(DIMENSIONS))


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
    """How often one combination of verdicts occurred."""

    text: bool  # whether the answer was right under text-only evidence
    image: bool  # whether it was under image-only evidence
    text_image: bool  # whether it was under both
    count: int  # of how many questions that was so, seeds counted apart
    included: bool  # whether such questions are part of filtered STG
    in_table_30: bool  # whether the paper's table has this combination
    meaning: str  # what it says


def triples_of(outcomes: Outcomes) -> tuple[Triple, ...]:
    """Return the eight combinations with their counts, over questions judged under all three conditions."""
    judged = outcomes.valid & (outcomes.verdicts != UNJUDGED).all(axis=1)
    right = outcomes.verdicts == RIGHT_VERDICT
    codes = (right[:, TEXT] * 4 + right[:, IMAGE] * 2 + right[:, BOTH])[judged]
    counts = np.bincount(codes.astype(np.int64), minlength=8)
    triples = []
    for text, image, both in product((True, False), repeat=3):
        unlisted = (image and not text) or (image and not both)
        count = int(counts[4 * text + 2 * image + both])
        meaning = MEANINGS[text, image, both]
        triples.append(Triple(text, image, both, count, both, not unlisted, meaning))
    return tuple(triples)

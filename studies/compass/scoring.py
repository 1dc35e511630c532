"""Semantic Compass: the score that selects a storyboard, and where it is repaired.

Question: which of a story's candidate storyboards shows its transitions best, and which transition least?
Formula: score = w_r R + w_t C - w_p P (Eq. 24).
    R: the mean over scored dimensions of the share of selection questions that are answered rightly from the
    pictures alone (Eq. 17 and 18 on one storyboard).
    C: the share of annotated transitions for which a frame between its two scenes, both included, is nearer
    to the annotation than delta (Eq. 25).
    P: the share of neighbouring frames that are nearer to each other than gamma (Eq. 26).
    Weakest transition: the one with the lowest R over the questions about it (Eq. 27).
    Bridge: one frame between the two frames of a transition (Eq. 28).
Input: verdicts per question; cosines in [-1, 1] of frames and annotations, shape (frames, transitions), and
    of neighbouring frames, shape (frames - 1,); thresholds; weights from 0.
Output: R, C and P in [0, 1]; the score in [-w_p, w_r + w_t], higher is better.
Undefined when: R: no selection question was judged. C: no annotation has a text, or it is not known which
    frames show which scene. P: there is one frame. C and P: no frame has a vector; a pair of frames without
    one is left out of P. Weakest transition: no transition has a judged question.
    A term that is undefined for one of the candidates is left out for all of them, so that they are compared
    by the same; without any term the first candidate is taken.
Source: KathaTrace, 3.9, B.5-B.6, Eq. 14-15 and 24-28, Algorithm 1.
Departures from the source: R counts every judged selection question: Eq. 16's filter by text and images
    together differs from candidate to candidate, and a candidate must not gain by making a question
    ambiguous. An annotation without text is left out of both sides of C. A comparison with a threshold is
    strict, as printed. With a bridge C keeps the number of transitions as its denominator, and the repaired
    one has three frames; P runs over five neighbours instead of four. Ties go to the earliest candidate in
    the order of seeds, and to the earliest transition. Scores are compared to nine digits.
Example: R = 0.5, C = 0.75, P = 0.25 with weights 0.4, 0.4, 0.2: 0.2 + 0.3 - 0.05 = 0.45.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...schemas.values import Own, Score

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Term: TypeAlias = Literal["recoverability", "coverage", "copies"]
TERMS: tuple[Term, ...] = ("recoverability", "coverage", "copies")
T = TypeVar("T")

NO_QUESTION = "no selection question was judged"
NO_TEXT = "no transition has an annotation with text"
NO_SCENES = "it is not known which frames show which scene"
ONE_FRAME = "there is one frame"
NO_VECTOR = "the encoder has no vector for any of the frames"
DIGITS = 9
"""To so many digits scores are compared: the order of additions must not decide."""


class Weights(Own):
    """How much each term of Eq. 24 counts."""

    recoverability: float  # w_r, from 0
    coverage: float  # w_t, from 0
    copies: float  # w_p, from 0; subtracted

    def only(self, terms: Collection[Term]) -> "Weights":
        """Return the weights with those of other terms at 0."""
        return Weights(**{name: getattr(self, name) if name in terms else 0.0 for name in TERMS})

    def signed(self) -> Floats:
        """Return them with the sign that each term has in Eq. 24, shape (3,)."""
        return np.array([self.recoverability, self.coverage, -self.copies], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one storyboard; each may be undefined."""

    recoverability: Score  # R of Eq. 24.
    coverage: Score  # C of Eq. 25.
    copies: Score  # P of Eq. 26.

    def values(self) -> Floats:
        """Return the three values, ``nan`` where undefined; shape (3,)."""
        values = [getattr(self, name).value for name in TERMS]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def recoverability(verdicts: Mapping[str, Sequence[bool]]) -> Score:
    """Return R of one storyboard.

    ``verdicts``: dimension -> whether each judged selection question was answered rightly from images alone.
    """
    shares = [sum(rights) / len(rights) for _, rights in sorted(verdicts.items()) if len(rights)]
    judged = sum(len(rights) for rights in verdicts.values())
    return Score.ratio(sum(shares), len(shares), NO_QUESTION, questions=judged)


def transition_coverage(
    likeness: Floats, spans: Sequence[Sequence[int]], with_text: Sequence[bool], delta: float
) -> Score:
    """Return C of one storyboard (Eq. 25).

    ``likeness``: cosine of each frame and each annotation, shape (frames, transitions). ``spans``: of each
    transition the frames between its scenes, from 0; a bridge makes three of two. None of them: it is not
    known which frames show it. ``delta``: what a cosine must be above.
    """
    counted = [index for index, there in enumerate(with_text) if there]
    if counted and not all(len(spans[index]) for index in counted):
        return Score(value=None, status="undefined", reason=NO_SCENES)
    if counted and np.isnan(likeness[:, counted]).all():
        return Score(value=None, status="undefined", reason=NO_VECTOR)
    shown = sum(bool((likeness[list(spans[index]), index] > delta).any()) for index in counted)
    return Score.ratio(shown, len(counted), NO_TEXT, transitions=len(with_text))


def copy_penalty(neighbours: Floats, gamma: float) -> Score:
    """Return P of one storyboard (Eq. 26).

    ``neighbours``: cosine of each frame and the next, shape (frames - 1,); ``nan`` where one has no vector.
    ``gamma``: what a cosine must be above.
    """
    known = neighbours[~np.isnan(neighbours)]
    return Score.ratio(
        int((known > gamma).sum()), len(known), NO_VECTOR if len(neighbours) else ONE_FRAME,
        pairs=len(neighbours),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of one story against each other."""

    scores: tuple[float, ...]  # of each, by the terms that are defined for all
    best: int  # place of the best, from 0
    terms: tuple[Term, ...]  # which terms were compared by; none where none with a weight is defined for all


def ranked(candidates: Sequence[Terms], weights: Weights) -> Ranking:
    """Rank the candidates of one story by Eq. 24.

    ``candidates``: at least one, in the order of seeds.
    """
    values = np.stack([candidate.values() for candidate in candidates])
    scores = scores_of(values[None], weights)[0]
    used = usable(values[None], weights)[0]
    return Ranking(
        tuple(float(score) for score in scores),
        int(best_of(scores[None])[0]),
        tuple(name for name, there in zip(TERMS, used, strict=True) if there),
    )


def usable(values: Floats, weights: Weights) -> Mask:
    """Return which terms have a weight and are defined for all candidates of a story.

    ``values``: terms, ``nan`` where undefined, shape (stories, candidates, 3).

    Returns:
        Shape (stories, 3).
    """
    there: Mask = ~np.isnan(values).any(axis=1) & (weights.signed() != 0)
    return there


def scores_of(values: Floats, weights: Weights) -> Floats:
    """Return Eq. 24 by the usable terms; see :func:`usable`. Shape (stories, candidates)."""
    used = usable(values, weights)[:, None, :]
    weighted = np.where(used, np.nan_to_num(values) * weights.signed(), 0.0)
    scores: Floats = np.round(weighted.sum(axis=-1), DIGITS)
    return scores


def best_of(scores: Floats) -> NDArray[np.int64]:
    """Return the place of the highest score of each story, the first of several; shape (stories,)."""
    places: NDArray[np.int64] = scores.argmax(axis=-1)
    return places


def weakest_transition(values: Sequence[Score]) -> int | None:
    """Return the place of the transition with the lowest R (Eq. 27), from 0; None where none has a value."""
    known = [(score.value, index) for index, score in enumerate(values) if score.value is not None]
    return min(known)[1] if known else None


def inserted(frames: Sequence[T], after: int, frame: T) -> tuple[T, ...]:
    """Return frames with one more behind the ``after``-th, counted from 1 (Eq. 28)."""
    if not 1 <= after < len(frames):
        raise ValueError(f"a bridge stands behind frame 1 to {len(frames) - 1}, not behind {after}")
    return (*frames[:after], frame, *frames[after:])


def resembles(neighbours: Floats, gamma: float) -> bool:
    """Whether a bridge is a copy of one of its neighbours: a cosine above gamma (Algorithm 1, line 13)."""
    return bool((neighbours > gamma).any())

"""How well tracks and identities agree with the truth: IDF1 and identity switches, as in tracking benchmarks.

Rows are boxes with the number of their frame and the name of whom they belong to.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..builders.entities.tracking import overlaps

Box4 = tuple[float, float, float, float]
Named = tuple[int, Hashable, Box4]
"""Frame, name, box."""


@dataclass(frozen=True, slots=True)
class IdentityScores:
    """Counts of boxes, and what follows from them (Ristani et al., 2016)."""

    right: int  # boxes of both sides that belong together under the best one-to-one matching of names
    found: int  # boxes of the tracks
    true: int  # boxes of the truth

    @property
    def precision(self) -> float | None:
        """Share of found boxes that are right; None where there are none."""
        return self.right / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """Share of true boxes that were found under the right name; None where there are none."""
        return self.right / self.true if self.true else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both, IDF1; None where there are no boxes at all."""
        return 2 * self.right / (self.found + self.true) if self.found + self.true else None


def identity_scores(truth: Sequence[Named], found: Sequence[Named], least: float = 0.5) -> IdentityScores:
    """Return how many boxes bear the right name, under the best one-to-one matching of names.

    A true and a found box go together where they overlap by ``least`` or more.
    """
    from scipy.optimize import linear_sum_assignment

    together = Counter(
        (one, other)
        for ours, theirs in _frames(truth, found)
        for one, other in _touching(ours, theirs, least)
    )
    if not together:
        return IdentityScores(0, len(found), len(truth))
    names = [sorted({pair[side] for pair in together}, key=repr) for side in (0, 1)]
    table = np.zeros((len(names[0]), len(names[1])))
    for (one, other), count in together.items():
        table[names[0].index(one), names[1].index(other)] = count
    rows, columns = linear_sum_assignment(-table)
    return IdentityScores(int(table[rows, columns].sum()), len(found), len(truth))


def identity_switches(truth: Sequence[Named], found: Sequence[Named], least: float = 0.5) -> int:
    """Return how often somebody is found under another name than last time (CLEAR MOT).

    In every frame pairs go on as they were as long as they overlap; the others are matched for most overlap.
    """
    from scipy.optimize import linear_sum_assignment

    last: dict[Hashable, Hashable] = {}
    switches = 0
    for ours, theirs in _frames(truth, found):
        if not ours or not theirs:
            continue
        shared = overlaps(np.array([box for _, box in ours]), np.array([box for _, box in theirs]))
        kept = [[last.get(one) == other for other, _ in theirs] for one, _ in ours]
        gains = np.where(shared >= least, shared + 10 * np.array(kept), 0.0)
        for row, column in zip(*linear_sum_assignment(-gains), strict=True):
            if gains[row, column] > 0:
                one, other = ours[row][0], theirs[column][0]
                switches += one in last and last[one] != other
                last[one] = other
    return switches


def overlaps_of(
    truth: Sequence[Named], found: Sequence[Named], least: float = 0.5
) -> list[tuple[Hashable, Hashable]]:
    """Return the names of every true and found box of one frame that overlap by ``least`` or more."""
    return [pair for ours, theirs in _frames(truth, found) for pair in _touching(ours, theirs, least)]


def _frames(
    truth: Sequence[Named], found: Sequence[Named]
) -> list[tuple[list[tuple[Hashable, Box4]], list[tuple[Hashable, Box4]]]]:
    """Return the boxes of both sides frame by frame."""
    frames: dict[int, tuple[list[tuple[Hashable, Box4]], list[tuple[Hashable, Box4]]]] = {}
    for side, rows in enumerate((truth, found)):
        for frame, name, box in rows:
            frames.setdefault(frame, ([], []))[side].append((name, box))
    return [frames[frame] for frame in sorted(frames)]


def _touching(
    ours: Sequence[tuple[Hashable, Box4]], theirs: Sequence[tuple[Hashable, Box4]], least: float
) -> list[tuple[Hashable, Hashable]]:
    if not ours or not theirs:
        return []
    shared = overlaps(np.array([box for _, box in ours]), np.array([box for _, box in theirs]))
    return [
        (ours[row][0], theirs[column][0]) for row, column in zip(*np.nonzero(shared >= least), strict=True)
    ]

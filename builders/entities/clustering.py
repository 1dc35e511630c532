"""Average-linkage clustering under constraints, exact and deterministic, of a few thousand tracklets.

Always the two clusters of least average distance are merged, as long as that is at most a threshold and no
pair across them is forbidden. The merging is scipy's. A forbidden pair is so far apart that no average with
it comes near the threshold, and distances of merges never fall in average linkage, so the merges up to the
threshold are those of the constrained problem.

Of equal distances, that of the pair of items that comes first in order counts as smaller, by less than the
precision of float32. So the caller's order decides ties, and the callers here sort by id.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Distances = NDArray[np.float32]
APART = np.float32(np.inf)
"""The distance of what must not be together."""
_TIES = 3e-8
"""What the last pair of items is farther apart than the first, where their distances are the same."""


@dataclass(frozen=True, slots=True)
class Join:
    """Two clusters that became one, each named by its smallest member.

    Attributes:
        one: the smaller; the cluster goes on under its name.
        other: the larger.
        distance: average over all pairs of their members, to six digits.
    """

    one: int
    other: int
    distance: float


@dataclass(frozen=True, slots=True)
class Grouping:
    """What clustering made.

    Attributes:
        labels: for every item, the smallest member of its cluster.
        joins: in order.
    """

    labels: tuple[int, ...]
    joins: tuple[Join, ...]

    def groups(self) -> list[list[int]]:
        """Return the members of each cluster, by smallest member."""
        found: dict[int, list[int]] = {}
        for item, label in enumerate(self.labels):
            found.setdefault(label, []).append(item)
        return [found[label] for label in sorted(found)]


def cluster(distances: Distances, threshold: float) -> Grouping:
    """Return clusters of average linkage.

    Args:
        distances: shape (n, n), symmetric, not negative, infinite where two must not be together.
        threshold: highest average distance of two clusters that are merged.

    Raises:
        ValueError: the matrix is not square, not symmetric, or holds ``nan`` or negative numbers.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    count = len(distances)
    _check(distances)
    labels = np.arange(count)
    if count < 2:
        return Grouping(tuple(labels.tolist()), ())
    pairs = squareform(distances, checks=False).astype(np.float64)
    apart = np.isinf(pairs)
    highest = min(threshold, float(pairs.max(initial=0.0, where=~apart))) + 2 * _TIES
    pairs[apart] = (highest + 1) * count**2  # so that no average with it is below the highest
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        block += np.arange(start, start + len(block)) * (_TIES / len(pairs))
    names, joins = list(range(count)), []
    for first, second, distance, _ in linkage(pairs, method="average"):
        one, other = sorted((names[int(first)], names[int(second)]))
        names.append(one)
        if distance <= highest:
            joins.append(Join(one, other, round(float(distance), 6)))
    for join in reversed(joins):
        labels[join.other] = labels[join.one]
    return Grouping(tuple(labels.tolist()), tuple(joins))


def forbid(distances: Distances, pairs: Iterable[tuple[int, int]]) -> int:
    """Set the distances of pairs that must not be together to infinite, in place; return how many."""
    count = 0
    for one, other in pairs:
        distances[one, other] = distances[other, one] = APART
        count += 1
    return count


def overlapping(places: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of tracklets that are seen at the same time, each once, the smaller first.

    Args:
        places: shot, first and last frame of each.
    """
    by_shot: dict[int, list[int]] = {}
    for item, (shot, _, _) in enumerate(places):
        by_shot.setdefault(shot, []).append(item)
    for items in by_shot.values():
        for at, one in enumerate(items):
            for other in items[at + 1 :]:
                if places[one][1] <= places[other][2] and places[other][1] <= places[one][2]:
                    yield one, other


def _check(distances: Distances) -> None:
    count = len(distances)
    if distances.shape != (count, count) or distances.dtype != np.float32:
        raise ValueError(f"a square matrix of float32 is needed, not {distances.shape} of {distances.dtype}")
    for start in range(0, count, _ROWS):
        some = distances[start : start + _ROWS]
        if np.isnan(some).any() or (some < 0).any():
            raise ValueError("distances are numbers from 0 on")
        if not np.array_equal(some, distances[:, start : start + _ROWS].T):
            raise ValueError("distances are the same in both directions")


_ROWS = 256
_BLOCK = 1_000_000

"""Average-linkage clustering under constraints, exact and deterministic, of a few thousand tracklets.

Always the two clusters of least average distance are merged, as long as that is at most a threshold and no
pair across them is forbidden. Of equal distances, the pair with the smallest first member goes first, then
that with the smallest second one; a cluster counts as its smallest member. So the caller's order decides
ties, and the callers here sort by id.

A forbidden pair is an infinite distance. The average of anything with it is infinite again, so the update
of Lance and Williams carries constraints from members to clusters by itself, and because it never brings two
clusters nearer than the nearer of their parts, distances of merges never fall and one threshold ends it all.

Memory is one matrix of float32. Each cluster knows its nearest neighbour, or a lower bound of its distance
where the neighbour was merged away; only when that bound is the least of all is its row looked through again.
A merge changes one row and one column, so time grows with the square of the number of tracklets, but for rows
that are looked through more often than once in a while.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Distances = NDArray[np.float32]
APART = np.float32(np.inf)
"""The distance of what must not be together."""


@dataclass(frozen=True, slots=True)
class Join:
    """Two clusters that became one, each named by its smallest member.

    Attributes:
        one: the smaller; the cluster goes on under its name.
        other: the larger.
        distance: average over all pairs of their members.
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


@dataclass(slots=True)
class _Linkage:
    """Clustering under way.

    Attributes:
        distances: between clusters that are there, by smallest member; infinite in all other places.
        sizes: members of each.
        nearest: of each cluster, its nearest one, the smallest of several.
        least: the distance to it; a lower bound of that where ``stale``.
    """

    distances: Distances
    sizes: NDArray[np.int64]
    nearest: NDArray[np.int64] = field(init=False)
    least: Distances = field(init=False)
    stale: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.sizes)
        self.nearest = self.distances.argmin(axis=1)
        self.least = self.distances[np.arange(count), self.nearest]
        self.stale = np.zeros(count, dtype=np.bool_)

    def joins(self, threshold: float) -> Iterator[Join]:
        """Merge until nothing may be merged any more."""
        while True:
            one = int(self.least.argmin())
            distance = self.least[one]
            if not distance <= threshold or distance == APART:
                return
            if self.stale[one]:
                self._look_through(one)
                continue
            other = int(self.nearest[one])
            self._merge(one, other)
            yield Join(one, other, float(distance))

    def _look_through(self, row: int) -> None:
        self.nearest[row] = self.distances[row].argmin()
        self.least[row] = self.distances[row, self.nearest[row]]
        self.stale[row] = False

    def _merge(self, one: int, other: int) -> None:
        """Put the larger cluster, ``other``, into ``one``."""
        first, second = (self.sizes[place].astype(np.float64) for place in (one, other))
        row = (first * self.distances[one] + second * self.distances[other]) / (first + second)
        merged = row.astype(np.float32)
        merged[[one, other]] = APART
        self.distances[other], self.distances[:, other] = APART, APART
        self.distances[one], self.distances[:, one] = merged, merged
        self.sizes[one] += self.sizes[other]
        self.least[other], self.stale[other] = APART, False
        # Who was nearest to one of the two has another nearest now, which is no nearer than that was.
        self.stale |= (self.nearest == one) | (self.nearest == other)
        self.stale[other] = False
        nearer = (merged < self.least) | ((merged == self.least) & (one < self.nearest) & ~self.stale)
        nearer &= merged < APART
        self.nearest[nearer], self.least[nearer], self.stale[nearer] = one, merged[nearer], False
        self._look_through(one)


def cluster(distances: Distances, threshold: float) -> Grouping:
    """Return clusters of average linkage.

    Args:
        distances: shape (n, n), symmetric, not negative, infinite where two must not be together. It is
            worked in: what is in it afterwards means nothing.
        threshold: highest average distance of two clusters that are merged.

    Raises:
        ValueError: the matrix is not square, not symmetric, or holds ``nan`` or negative numbers.
    """
    count = len(distances)
    _check(distances)
    labels = np.arange(count)
    if count < 2:
        return Grouping(tuple(labels.tolist()), ())
    np.fill_diagonal(distances, APART)
    joins = tuple(_Linkage(distances, np.ones(count, dtype=np.int64)).joins(threshold))
    for join in reversed(joins):
        labels[join.other] = labels[join.one]
    return Grouping(tuple(labels.tolist()), joins)


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

"""How far two tracklets are apart, and their clusters under constraints; exact, on every machine the same.

    d = (w_face * d_face / limit_face + w_body * d_body / limit_body) / (w_face + w_body)

with d_face and d_body one minus cosine, over what both tracklets have. A limit is the distance at which a
pair is as likely the same person as not. Two tracklets with nothing in common are :data:`UNKNOWN` apart: not
merged by themselves, and with little weight in an average. Components of vectors become whole numbers of
2^-24, whose sums float64 holds exactly in any order.

The clusters of least average distance are merged as long as that is at most a threshold and no pair across
them is forbidden: a forbidden pair is so far apart that no average with it comes near the threshold. Of equal
distances, that of the pair of items that comes first counts as smaller, by less than float32 shows.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...schemas.canonical import Json

Rows = NDArray[np.float32]


def packed(vector: Rows) -> str:
    """Return a vector, shape (dimensions,), as text."""
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")


def unpacked(text: str) -> Rows:
    """Return the vector that :func:`packed` wrote."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


def packed_rows(rows: Sequence[Rows | None]) -> Json:
    """Return vectors of one length, some of which may be missing, as plain JSON."""
    return [None if row is None else packed(row) for row in rows]


def mean_vector(rows: Sequence[Rows]) -> Rows | None:
    """Return the unit vector in the direction of the mean of unit vectors.

    Rows with ``nan`` stand for pictures in which there was nothing to encode, and are left out.

    Returns:
        Shape (dimensions,); None where no row is left, or where they cancel each other out.
    """
    there = [row.astype(np.float64) for row in rows if np.isfinite(row).all()]
    if not there:
        return None
    mean = np.mean(there, axis=0)
    length = float(np.sqrt((mean * mean).sum()))
    return (mean / length).astype(np.float32) if length > 1e-6 else None


Distances = NDArray[np.float32]
APART = np.float32(np.inf)
"""The distance of what must not be together."""
_TIES = 3e-8
"""What the last pair of items is farther apart than the first, where their distances are the same."""


@dataclass(frozen=True, slots=True)
class Join:
    """Two clusters that became one, each named by its smallest member."""

    one: int  # the smaller; the cluster goes on under its name
    other: int  # the larger
    distance: float  # average over all pairs of their members, to six digits


@dataclass(frozen=True, slots=True)
class Grouping:
    """What clustering made."""

    labels: tuple[int, ...]  # for every item, the smallest member of its cluster
    joins: tuple[Join, ...]  # in order

    def groups(self) -> list[list[int]]:
        """Return the members of each cluster, by smallest member."""
        groups: dict[int, list[int]] = {}
        for item, label in enumerate(self.labels):
            groups.setdefault(label, []).append(item)
        return [groups[label] for label in sorted(groups)]


def cluster(distances: Distances, threshold: float) -> Grouping:
    """Return clusters of average linkage.

    ``distances``: shape (n, n), symmetric, not negative, infinite where two must not be together.
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
        first_name, other = sorted((names[int(first)], names[int(second)]))
        names.append(first_name)
        if distance <= highest:
            joins.append(Join(first_name, other, round(float(distance), 6)))
    for join in reversed(joins):
        labels[join.other] = labels[join.one]
    return Grouping(tuple(labels.tolist()), tuple(joins))


def forbid(distances: Distances, pairs: Iterable[tuple[int, int]]) -> int:
    """Set the distances of pairs that must not be together to infinite, in place; return how many."""
    count = 0
    for row, other in pairs:
        distances[row, other] = distances[other, row] = APART
        count += 1
    return count


def overlapping(places: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of tracklets that are seen at the same time, each once, the smaller first."""
    by_shot: dict[int, list[int]] = {}
    for item, (shot, _, _) in enumerate(places):
        by_shot.setdefault(shot, []).append(item)
    for items in by_shot.values():
        for at, span in enumerate(items):
            for other in items[at + 1 :]:
                if places[span][1] <= places[other][2] and places[other][1] <= places[span][2]:
                    yield span, other


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


_BLOCK = 1_000_000


UNKNOWN = 1.25
_WHOLE = float(2**24)
_ROWS = 256


@dataclass(frozen=True, slots=True)
class Weighed:
    """One kind of vectors of some tracklets."""

    rows: Sequence[Rows | None]  # unit vectors, all of one length; None where a tracklet has none
    limit: float  # cosine distance that counts as 1
    weight: float  # against the other kind


def fused(kinds: Sequence[Weighed]) -> Distances:
    """Return the distances of all pairs, shape (n, n), float32, exactly symmetric."""
    count = len(kinds[0].rows)
    made = np.empty((count, count), dtype=np.float32)
    whole = [(_whole(kind.rows), kind) for kind in kinds]
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        sums, weights = np.zeros((stop - start, count)), np.zeros((stop - start, count))
        for (table, there), kind in whole:
            both = np.outer(there[start:stop], there) * kind.weight
            cosines = np.clip(table[start:stop] @ table.T / _WHOLE**2, -1.0, 1.0)
            sums += both * ((1.0 - cosines) / kind.limit)
            weights += both
        known = weights > 0
        block = np.divide(sums, weights, out=np.full_like(sums, UNKNOWN), where=known)
        made[start:stop] = block.astype(np.float32)
    return made


def _whole(rows: Sequence[Rows | None]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return vectors in whole numbers, 0 where there is none, and 1 for each that is there, else 0."""
    lengths = {len(row) for row in rows if row is not None}
    if len(lengths) > 1:
        raise ValueError(f"vectors of one kind have the same length, not {sorted(lengths)}")
    table = np.zeros((len(rows), next(iter(lengths), 1)))
    for index, row in enumerate(rows):
        if row is not None:
            table[index] = np.rint(row.astype(np.float64) * _WHOLE)
    return table, np.array([float(row is not None) for row in rows])

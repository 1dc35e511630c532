"""Stage: which tracklets of an episode are one person (EntityBench section 3.1).

Agglomerative clustering with average linkage within the episode; tracklets that are seen at the same time in
the same shot are never together. A tracklet without vectors stays a person of its own and is counted.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.values import Own
from .names import Merge, Person, Tracklet

# -- How far two tracklets are apart, and their clusters under constraints; exact, on every machine the same
#
#     d = (w_face * d_face / limit_face + w_body * d_body / limit_body) / (w_face + w_body)
#
# with d_face and d_body one minus cosine, over what both tracklets have. A limit is the distance at which a
# pair is as likely the same person as not. Two tracklets with nothing in common are :data:`UNKNOWN` apart:
# not merged by themselves, and with little weight in an average. Components of vectors become whole numbers
# of 2^-24, whose sums float64 holds exactly in any order.
#
# The clusters of least average distance are merged as long as that is at most a threshold and no pair across
# them is forbidden: a forbidden pair is so far apart that no average with it comes near the threshold. Of
# equal distances, that of the pair of items that comes first counts as smaller, by less than float32 shows.

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

    Returned: shape (dimensions,); None where no row is left, or where they cancel each other out.
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


# -- Which tracklets of an episode are one person (EntityBench section 3.1)

BY = "clustering"


class Settings(Own):
    """How tracklets become people. The limits are our choice and were not fitted to any film."""

    threshold: float = Field(
        default=1.0, gt=0, description="Highest average distance of two groups that are merged, in limits."
    )
    face_limit: float = Field(
        default=0.6, gt=0, le=2, description="Cosine distance of two faces that counts as 1."
    )
    body_limit: float = Field(
        default=0.35, gt=0, le=2, description="Cosine distance of two bodies that counts as 1."
    )
    face_weight: float = Field(default=0.7, ge=0, description="Weight of faces, where both have one.")
    body_weight: float = Field(default=0.3, ge=0, description="Weight of bodies, where both have one.")
    constraints: bool = Field(
        default=True, description="Whether tracklets seen at the same time are kept apart."
    )


SPEC = StageSpec(
    name="cluster_people",
    version=2,
    shape="map",
    reads=("video", "shots"),
    writes=("people", "clustering"),
    libraries=("numpy", "scipy"),
    settings=Settings,
    patience=20,
)


@dataclass(frozen=True, slots=True)
class Clustered:
    """What clustering made of the tracklets of an episode."""

    people: tuple[Person, ...]  # by first appearance
    without: tuple[str, ...]  # ids of tracklets without vectors
    apart: int  # pairs of tracklets that were kept apart


def run(item: Item, tools: Tools) -> Outcome:
    """Return the people of an episode, and how they were told apart."""
    settings = tools.own(Settings)
    tracklets = tracklets_of(item["shots"])
    made = people_of(tracklets, settings)
    about: dict[str, Json] = {
        "tracklets": len(tracklets), "people": len(made.people), "apart": made.apart,
        "without_vectors": list(made.without), "threshold": settings.threshold,
    }  # fmt: skip
    return Made({"people": [person.as_json() for person in made.people], "clustering": about})


def tracklets_of(shots: Sequence[Json]) -> list[Tracklet]:
    """Return the tracklets of all shots of an episode, by id."""
    tracklets = [Tracklet.model_validate(tracklet) for shot in shots for tracklet in shot["tracklets"]]
    return sorted(tracklets, key=lambda tracklet: tracklet.tracklet_id)


def people_of(tracklets: Sequence[Tracklet], settings: Settings) -> Clustered:
    """Return the people that tracklets are; the order in which they are given does not matter."""
    ordered = sorted(tracklets, key=lambda tracklet: tracklet.tracklet_id)
    if len({tracklet.tracklet_id for tracklet in ordered}) != len(ordered):
        raise ValueError("two tracklets have the same id")
    known = [tracklet for tracklet in ordered if tracklet.face is not None or tracklet.body is not None]
    unknown = [tracklet for tracklet in ordered if tracklet.face is None and tracklet.body is None]
    groups, joins, apart = [[tracklet] for tracklet in unknown], _no_joins(), 0
    if known:
        distances = fused(_kinds(known, settings))
        if settings.constraints:
            apart = forbid(distances, overlapping([(tracklet.shot, *tracklet.span) for tracklet in known]))
        made = cluster(distances, settings.threshold)
        groups += [[known[member] for member in members] for members in made.groups()]
        joins = {known[join.one].tracklet_id: [] for join in made.joins}
        for join in made.joins:
            joins[known[made.labels[join.one]].tracklet_id].append(_merge(join, known, settings.threshold))
    return Clustered(
        numbered((members, joins.get(members[0].tracklet_id, [])) for members in groups),
        tuple(tracklet.tracklet_id for tracklet in unknown),
        apart,
    )


def numbered(groups: "Iterator[tuple[list[Tracklet], Sequence[Merge]]]") -> tuple[Person, ...]:
    """Return groups of tracklets as people, numbered by first appearance."""
    ordered = [(sorted(members, key=appearance), merges) for members, merges in groups]
    ordered.sort(key=lambda group: appearance(group[0][0]))
    return tuple(
        Person(
            person_id=f"p{number:03d}",
            tracklets=tuple(member.tracklet_id for member in members),
            shots=tuple(sorted({member.shot for member in members})),
            merges=tuple(merges),
        )
        for number, (members, merges) in enumerate(ordered, start=1)
    )


def appearance(tracklet: Tracklet) -> tuple[int, int, str]:
    """Return when a tracklet begins: shot, frame, and its id among those that begin at once."""
    return tracklet.shot, tracklet.span[0], tracklet.tracklet_id


def _kinds(known: Sequence[Tracklet], settings: Settings) -> list[Weighed]:
    faces = [None if tracklet.face is None else unpacked(tracklet.face) for tracklet in known]
    bodies = [None if tracklet.body is None else unpacked(tracklet.body) for tracklet in known]
    return [
        Weighed(faces, settings.face_limit, settings.face_weight),
        Weighed(bodies, settings.body_limit, settings.body_weight),
    ]


def _merge(join: Join, known: Sequence[Tracklet], threshold: float) -> Merge:
    distance = float(np.float32(join.distance))
    return Merge(
        one=known[join.one].tracklet_id,
        other=known[join.other].tracklet_id,
        by=BY,
        reason=f"average distance {distance:.4f}, at most {threshold:g}",
    )


def _no_joins() -> dict[str, list[Merge]]:
    return {}

"""How alike appearances of an entity are by the number of shots between them (EntityBench, B.4.5 and F.5).

Question: does an entity change the more, the longer it was away?
Formula: the mean similarity of pairs of appearances whose gap falls in a bin. Three signals: ``judged``, what
the judge said of the anchor beside each other shot (Tables 19 and 21); ``centroid``, neighbours,
each pair with the mean of their similarities to the centroid (Tables 20 and 21); ``crops``, the cosine of the
crops of every pair (Eq. 44).
Input: admitted appearances, as the gate left them.
Output: per bin a mean in [-1, 1] (``judged``: [0, 1]), the number of pairs, a 95 % interval over sources.
Undefined when: a bin has no pair.
Source: EntityBench, B.4.5, F.5, Tables 19 to 21.
Departures from the source: the paper's words count the shots between two appearances, its tables differences
of shot index; the index is the default, and with ``intervening`` bin 0 is printed, which its bins lack.
What is more than 50 apart gets a bin of its own.
Example: shots 3 and 5 of an episode have a gap of 2 by index and of 1 by intervening shots.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ....schemas.entities import TYPES, EntityType
from ....schemas.values import Score
from ..facts import EpisodeFacts, ShotFacts, appearance_of
from .aggregate import Definitions, GapUnit
from .instances import pairs_of_entity, similarities_to_centroid, vectors_of_pool

Signal = Literal["judged", "centroid", "crops"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
BINS = ((1, 2), (3, 5), (6, 10), (11, 20), (21, 50))
"""First and last gap of each bin (Tables 19 to 21)."""


class GapPair(NamedTuple):
    """Two appearances of an entity."""

    signal: Signal  # what compares them
    type: EntityType  # of the entity
    entity: str  # its key
    gap: int  # difference of their shots' indices
    similarity: float  # how alike they are
    # keys of the two; of a judged pair the anchor stands last. Empty where nobody says.
    shots: tuple[str, ...] = ()


def gap_pairs(facts: EpisodeFacts) -> Iterator[GapPair]:
    """Yield every pair of an episode under every signal."""
    index = {shot.key: shot.index for shot in facts.shots}
    for kind in TYPES:
        for entity, shots in facts.recurring(kind):
            for each in pairs_of_entity(facts, entity, shots, "similarity"):
                if each.value is not None and each.other is not None:
                    gap = abs(index[each.shot] - index[each.other])
                    yield GapPair("judged", kind, entity, gap, each.value, (each.shot, each.other))
            if kind != "location":
                yield from _encoded(facts, kind, entity)


def _encoded(facts: EpisodeFacts, kind: EntityType, entity: str) -> Iterator[GapPair]:
    known = vectors_of_pool(facts, entity)
    near = None if known is None else similarities_to_centroid(known[1])
    if known is None or near is None:
        return
    shots, rows = known
    for (left, one_near), (right, other_near) in pairwise(zip(shots, near, strict=True)):
        mean = float(one_near + other_near) / 2
        both = (left.key, right.key)
        yield GapPair("centroid", kind, entity, right.index - left.index, mean, both)
    cosines = rows @ rows.T
    for left_row, right_row in combinations(range(len(shots)), 2):
        left, right = shots[left_row], shots[right_row]
        cosine = float(cosines[left_row, right_row])
        yield GapPair("crops", kind, entity, right.index - left.index, cosine, (left.key, right.key))


@dataclass(frozen=True)
class GapCurve:
    """One signal for the entities of one type."""

    signal: Signal  # what compares appearances
    type: EntityType  # of the entities
    # label of a bin, such as ``3-5`` -> mean similarity; ``counts`` holds ``pairs`` and ``sources``
    bins: dict[str, Score]


def bin_of(gap: int, unit: GapUnit = "index") -> str:
    """Return the label of the bin of a gap.

    ``gap``: difference of shot indices, from 1.
    """
    size = gap if unit == "index" else gap - 1
    for first, last in BINS:
        if first <= size <= last:
            return f"{first}-{last}"
    return "0" if size < BINS[0][0] else f"{BINS[-1][1] + 1}+"


def labels_of(unit: GapUnit) -> tuple[str, ...]:
    """Return the labels of the bins that are always shown, in order."""
    return (*(["0"] if unit == "intervening" else []), *(f"{first}-{last}" for first, last in BINS))


def gap_curves(
    pairs: Sequence[tuple[str, GapPair]],
    signals: Sequence[tuple[Signal, EntityType]],
    definitions: Definitions,
) -> tuple[GapCurve, ...]:
    """Return the curves of the signals that are asked for, with intervals over drawn sources."""
    sources = {source: index for index, source in enumerate(dict.fromkeys(source for source, _ in pairs))}
    bins = {gap: bin_of(gap, definitions.gap) for gap in {pair.gap for _, pair in pairs}}
    labels = list(dict.fromkeys((*labels_of(definitions.gap), *bins.values())))
    columns = [(*signal, label) for signal in signals for label in labels]
    order = {column: index for index, column in enumerate(columns)}
    sums, counts = np.zeros((2, len(sources), len(columns)))
    for source, pair in pairs:
        column = order.get((pair.signal, pair.type, bins[pair.gap]))
        if column is not None:
            sums[sources[source], column] += pair.similarity
            counts[sources[source], column] += 1
    scores = _scores(sums, counts, definitions)
    return tuple(
        GapCurve(signal, kind, {label: scores[order[signal, kind, label]] for label in labels})
        for signal, kind in signals
    )


def _scores(
    sums: np.ndarray[Any, np.dtype[np.float64]],
    counts: np.ndarray[Any, np.dtype[np.float64]],
    definitions: Definitions,
) -> list[Score]:
    """Return the mean of each column with its interval; both arrays are of shape (sources, columns)."""
    columns = zip(sums.sum(axis=0), counts.sum(axis=0), (counts > 0).sum(axis=0), strict=True)
    scores = [
        Score.ratio(
            float(total), float(pairs), "no pair so far apart", pairs=int(pairs), sources=int(sources)
        )
        for total, pairs, sources in columns
    ]
    return definitions.with_ends(scores, sums, counts)


# -- Each recurring entity by itself: how near its appearances are to each other (EntityBench, B.4.2)


@dataclass(frozen=True, slots=True)
class ShotDetail:
    """One scheduled shot of an entity."""

    shot: str  # its key
    # ``present``, ``weak``, ``absent``, ``missing`` without a video, or None where nobody looked
    status: str | None
    admitted: bool  # whether it is compared across shots
    clip: float | None  # similarity of crop and description
    fidelity: float | None  # overall fidelity
    to_centroid: float | None  # similarity to the centroid
    same: float | None  # the judge's verdict beside the anchor
    similarity: float | None  # the judge's score beside the anchor


@dataclass(frozen=True, slots=True)
class EntityDetail:
    """One recurring entity of one episode."""

    entity: str  # its key
    type: str  # its type
    shots: tuple[ShotDetail, ...]  # every shot that schedules it
    anchor: str | None  # the shot that all others were compared with
    # mean similarity to the centroid; None without one, and of locations, as are those below
    mean: float | None
    least: float | None  # of the shot that is farthest from it
    most: float | None  # of the nearest
    median_of_pairs: float | None  # median cosine of all pairs of crops
    worst: str | None  # the shot that is farthest
    representative: str | None  # the nearest
    judged: int  # pairs with a verdict
    # share of them that the judge calls the same; of a location judged as a whole, its verdict
    accuracy: float | None


def entity_details(facts: EpisodeFacts) -> Iterator[EntityDetail]:
    """Yield every entity that is scheduled in two shots or more, by type."""
    for kind in TYPES:
        for entity, shots in facts.recurring(kind):
            yield _detail(facts, entity, kind, shots)


def _detail(facts: EpisodeFacts, entity: str, kind: str, shots: tuple[ShotFacts, ...]) -> EntityDetail:
    near, median = (None, None) if kind == "location" else _nearness(facts, entity)
    verdicts, scores = (
        {each.shot: each.value for each in pairs_of_entity(facts, entity, shots, name)}
        for name in ("same", "similarity")
    )
    whole = facts.locations.get(entity)
    known = [value for value in verdicts.values() if value is not None]
    accuracy = whole.of("consistent") if whole is not None else sum(known) / len(known) if known else None
    gate = (facts.gate or {}).get(entity)
    details = []
    for shot in shots:
        seen = appearance_of(shot, entity)
        status = seen.status if shot.reached else "missing"
        details.append(
            ShotDetail(
                shot.key, status, shot.key in facts.pool(entity), seen.clip,
                None if seen.fidelity is None else seen.fidelity.of("overall"), (near or {}).get(shot.key),
                verdicts.get(shot.key), scores.get(shot.key),
            )
        )  # fmt: skip
    worst = min(near, key=near.__getitem__) if near else None
    best = max(near, key=lambda key: round((near or {})[key], 12)) if near else None
    return EntityDetail(
        entity, kind, tuple(details), None if gate is None else gate.anchor,
        sum(near.values()) / len(near) if near else None, near[worst] if near and worst else None,
        near[best] if near and best else None, median, worst, best, len(known), accuracy,
    )  # fmt: skip


def _nearness(facts: EpisodeFacts, entity: str) -> tuple[dict[str, float] | None, float | None]:
    """Return shot -> similarity to the centroid, and the median cosine of pairs; None without a centroid."""
    known = vectors_of_pool(facts, entity)
    near = None if known is None else similarities_to_centroid(known[1])
    if known is None or near is None:
        return None, None
    cosines = known[1] @ known[1].T
    median = float(np.median([cosines[pair] for pair in combinations(range(len(near)), 2)]))
    return {shot.key: float(value) for shot, value in zip(known[0], near, strict=True)}, median

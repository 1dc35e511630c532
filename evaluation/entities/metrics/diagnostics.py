"""Each recurring entity by itself: how near its appearances are to each other (EntityBench, B.4.2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ....schemas.entities import TYPES
from ..facts import EpisodeFacts, ShotFacts, appearance_of
from ..gate import similarities_to_centroid
from .instances import pairs_of_entity, vectors_of_pool


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

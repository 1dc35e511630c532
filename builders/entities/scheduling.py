"""Entities in order: numbered by first appearance within their kind, and as slots of shots."""

from collections.abc import Iterable, Mapping, Sequence

from ...schemas.entities import LABELS, TYPES
from .drafts import Entity, Script
from .window_score import ShotSlots


def in_order(entities: Iterable[Entity]) -> tuple[list[Entity], dict[str, str]]:
    """Return entities by kind and first appearance with new labels, and old label -> new label.

    An entity that is scheduled nowhere is left out. Those that appear together keep the order they come in.
    """
    given = [entity for entity in entities if entity.shots]
    ordered, labels = [], {}
    for kind in TYPES:
        same = sorted((one for one in given if one.kind == kind), key=lambda entity: entity.shots[0])
        for number, entity in enumerate(same, 1):
            labels[entity.label] = f"{LABELS[kind]} {number}"
            ordered.append(entity.model_copy(update={"label": labels[entity.label]}))
    return ordered, labels


def slots_of(script: Script, entities: Sequence[Entity]) -> list[ShotSlots]:
    """Return what counts of each shot of a script."""
    held: Mapping[int, set[tuple[str, str]]] = {shot.number: set() for shot in script.shots}
    for entity in entities:
        for number in entity.shots:
            if number in held:
                held[number].add((entity.kind, entity.label))
    return [ShotSlots(shot.scene, frozenset(held[shot.number]), len(shot.action)) for shot in script.shots]


def without_slots(entity: Entity, shots: Iterable[int]) -> Entity:
    """Return an entity that is not scheduled in some shots any more."""
    gone = frozenset(shots)
    return entity.model_copy(update={"shots": tuple(shot for shot in entity.shots if shot not in gone)})


def with_slots(entity: Entity, shots: Iterable[int]) -> Entity:
    """Return an entity that is scheduled in some more shots."""
    return entity.model_copy(update={"shots": tuple(sorted({*entity.shots, *shots}))})


def within(entity: Entity, shots: Iterable[int]) -> Entity:
    """Return an entity that is scheduled in some shots only."""
    kept = frozenset(shots)
    return entity.model_copy(update={"shots": tuple(shot for shot in entity.shots if shot in kept)})

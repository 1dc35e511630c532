"""What holds of every script at the end, whoever wrote it; what had to be changed for it is recorded.

Every slot is of a registered entity and mentioned in the action, else it is dropped. Every entity of the
registry has a slot and a description. Entities are numbered without holes. What cannot be put right without a
model is noted as left: a name in an action that nobody scheduled, one that is not written as in the registry
(as at the start of a sentence), descriptions that are alike, empty shots.
"""

from collections.abc import Iterable, Mapping, Sequence

from ...schemas.entities import LABELS, TYPES
from ...schemas.values import Own
from .drafts import Entity, Repair, Script
from .names import mentions, spelled, unmentioned
from .windows import ShotSlots


def in_order(entities: Iterable[Entity]) -> tuple[list[Entity], dict[str, str]]:
    """Return entities by kind and first appearance with new labels, and old label -> new label.

    An entity that is scheduled nowhere is left out. Those that appear together keep the order they come in.
    """
    given = [entity for entity in entities if entity.shots]
    ordered, labels = [], {}
    for kind in TYPES:
        same = sorted((entity for entity in given if entity.kind == kind), key=lambda entity: entity.shots[0])
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


_PLAIN = {"character": "A person", "location": "A place", "object": "A thing"}


class Checked(Own):
    """A script and its registry, verified."""

    script: Script
    entities: tuple[Entity, ...]


def settle(script: Script, entities: Iterable[Entity]) -> Checked:
    """Return script and registry as they are to stand, with what was done added to the script's repairs."""
    registry = list(entities)
    repairs = list(script.repairs)
    script = _spelled(script, registry, repairs)
    registry = _without_unmentioned(script, registry, repairs)
    registry = _described(registry, repairs)
    repairs += [
        _repair("never-scheduled", None, entity, "is in no shot any more", "dropped")
        for entity in registry
        if not entity.shots
    ]
    for shot in script.shots:
        shown = {entity.label for entity in registry if shot.number in entity.shots}
        named = mentions(shot.action, registry)
        repairs += [
            _repair("unscheduled-mention", shot.number, entity, "is named and not scheduled", "left")
            for entity in registry
            if entity.label in named and entity.label not in shown
        ]
        if not shown:
            said = "nothing is scheduled"
            repairs.append(Repair(code="empty-shot", shot=shot.number, entity=None, found=said, done="left"))
    ordered, labels = in_order(registry)
    known = tuple(dict.fromkeys(_relabelled(repair, labels) for repair in repairs))
    return Checked(script=script.model_copy(update={"repairs": known}), entities=tuple(ordered))


def _spelled(script: Script, registry: Sequence[Entity], repairs: list[Repair]) -> Script:
    """Return the script with each scheduled entity that goes by another name named letter for letter."""
    shots = []
    for shot in script.shots:
        action = shot.action
        for entity in registry:
            how = mentions(action, registry).get(entity.label) if shot.number in entity.shots else None
            text = spelled(action, entity) if how in ("alias", "folded") else action
            # Kept only if nobody else loses a mention by it.
            if text != action and mentions(action, registry).keys() <= mentions(text, registry).keys():
                repairs.append(
                    _repair("other-name", shot.number, entity, "went by another name", "rewritten")
                )
                action = text
            elif how in ("alias", "folded"):
                repairs.append(
                    _repair("other-name", shot.number, entity, "is not named letter for letter", "left")
                )
        shots.append(shot.model_copy(update={"action": action}))
    return script.model_copy(update={"shots": tuple(shots)})


def _without_unmentioned(script: Script, registry: Sequence[Entity], repairs: list[Repair]) -> list[Entity]:
    dropped: dict[str, list[int]] = {}
    for shot in script.shots:
        scheduled = [entity for entity in registry if shot.number in entity.shots]
        for entity in unmentioned(shot.action, scheduled, registry):
            dropped.setdefault(entity.label, []).append(shot.number)
            repairs.append(
                _repair("unmentioned", shot.number, entity, "is not named in the action", "dropped")
            )
    return [without_slots(entity, dropped.get(entity.label, ())) for entity in registry]


def _described(registry: Sequence[Entity], repairs: list[Repair]) -> list[Entity]:
    """Return the registry with a description for all that is scheduled; those that are alike are noted."""
    made: list[Entity] = []
    seen: dict[str, str] = {}
    for entity in registry:
        text = entity.description.strip()
        if entity.shots and not text:
            repairs.append(_repair("no-description", None, entity, "has no description", "added"))
            text = f"{_PLAIN[entity.kind]} of this story, called {entity.name}."
        if entity.shots and seen.setdefault(text, entity.name) != entity.name:
            repairs.append(
                _repair("same-description", None, entity, f"is described as {seen[text]} is", "left")
            )
        made.append(entity.model_copy(update={"description": text}))
    return made


def _repair(code: str, shot: int | None, entity: Entity, said: str, done: str) -> Repair:
    return Repair.model_validate(
        {"code": code, "shot": shot, "entity": entity.label, "found": f"{entity.name} {said}", "done": done}
    )


def _relabelled(repair: Repair, labels: dict[str, str]) -> Repair:
    """Return a repair with the new label of its entity; None for one that is gone."""
    if repair.entity is None:
        return repair
    return repair.model_copy(update={"entity": labels.get(repair.entity)})

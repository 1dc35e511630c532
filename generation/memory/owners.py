"""Which objects need a picture of their own, by rules: sorts of things by word lists, owners by the script.

Clothes and marks of a body are shown in a character's portrait, furniture and fixtures in a location's
panorama; creatures, vehicles and things that are carried about stand alone (EntityBench, C.1).
"""

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ...schemas.entities import EntityType
from ...schemas.values import Own
from .bank import Owner
from .scripts import MemoryScript, ScriptEntity, shots_with, together
from .words import Sort, head_phrase, sort_of, words_of

OWNED_BY: dict[Sort, Literal["character", "location"]] = {
    "wearable": "character",
    "mark": "character",
    "fixture": "location",
}
"""Sort of thing -> whose picture shows it; every other sort stands alone."""
RULES = "rules@1"
_SMALL = frozenset(
    ("the", "a", "an", "of", "and", "with", "in", "on", "his", "her", "its", "their", "is", "are")
)


class Classified(Own):
    """What was decided of an object."""

    name: str = Field(description="The object.")
    owner: Owner | None = Field(description="Whose picture shows it; null: it stands alone.")
    reason: str = Field(description="Why, in one line.")
    by: str = Field(description="Who decided: rules, or a model and its prompt.")


def classify_by_rules(entity: ScriptEntity, script: MemoryScript) -> Classified:
    """Return whether an object stands alone, and else whose picture shows it.

    Something worn belongs to the character whose description or name has most of its words, then to the one
    that shares most shots with it, then to the one that actions name nearest before it; a fixture to the
    location that shares most shots with it. Nobody owns what shares no shot with anybody.
    """
    known = sort_of(entity.name)
    if known is None:
        return _alone(entity, "no word of its name is in our lists")
    sort, word = known
    kind = OWNED_BY.get(sort)
    if kind is None:
        return _alone(entity, f"{word} is a {sort}")
    owner = _owner(entity, script, kind)
    if owner is None:
        return _alone(entity, f"{word} is a {sort}, and no {kind} shares a shot with it")
    return Classified(
        name=entity.name, owner=Owner(type=kind, name=owner.name), reason=f"{word} is a {sort}", by=RULES
    )


def _alone(entity: ScriptEntity, reason: str) -> Classified:
    return Classified(name=entity.name, owner=None, reason=reason, by=RULES)


def _owner(entity: ScriptEntity, script: MemoryScript, kind: EntityType) -> ScriptEntity | None:
    candidates = [other for other in script.of(kind) if frozenset(other.shots) & frozenset(entity.shots)]
    if not candidates:
        return None
    shared = together(entity, candidates)
    near = _mentions_before(entity, script, candidates)

    def rank(other: ScriptEntity) -> tuple[int, int, int, int, int]:
        named = int(_names(entity, other))
        likeness = _likeness(entity, other) if kind == "character" else 0
        return named, likeness, shared[other.key], near[other.key], -candidates.index(other)

    return max(candidates, key=rank)


def _names(entity: ScriptEntity, other: ScriptEntity) -> bool:
    texts = f"{entity.name} {entity.description}".lower()
    return re.search(rf"(?<!\w){re.escape(other.name.lower())}(?!\w)", texts) is not None


def _likeness(entity: ScriptEntity, other: ScriptEntity) -> int:
    """Return how many words of an object stand in somebody's description; none without its head noun."""
    described = set(words_of(other.description))
    head = head_phrase(entity.name)
    if not head or head[-1] not in described:
        return 0
    own = set(words_of(entity.name)) | set(words_of(entity.description))
    return len((own - _SMALL) & described)


def _mentions_before(
    entity: ScriptEntity, script: MemoryScript, candidates: Sequence[ScriptEntity]
) -> dict[str, int]:
    """Return in how many actions each candidate is the last one named before the object."""
    counts = {other.key: 0 for other in candidates}
    for shot in shots_with(script, entity):
        at = shot.action.lower().find(entity.name.lower().removeprefix("the "))
        before = [(shot.action.rfind(other.name, 0, at), other.key) for other in candidates] if at > 0 else []
        nearest = max(before, default=(-1, ""))
        if nearest[0] >= 0:
            counts[nearest[1]] += 1
    return counts

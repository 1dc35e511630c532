"""Keys of entities, and what judges look at in an entity of each type (EntityBench, B.3.3)."""

import re
from collections.abc import Iterable, Mapping

from ...errors import InputError, mismatch
from ...schemas.entities import TYPES, EntityType

PROTOCOL = "episodes"
"""What archives of such evaluations bear as their name."""
EPISODES = "episodes.jsonl"
"""One line per method and episode: its schedule, and what was seen of each shot."""

CRITERIA: Mapping[EntityType, tuple[str, ...]] = {
    "character": ("face", "hair", "clothing", "build"),
    "object": ("shape", "color_texture", "proportions", "details"),
    "location": ("layout", "color_mood", "landmarks", "perspective"),
}
"""Type -> the criteria of fidelity and of consistency across shots, in the order of the paper's tables."""

ACTION_CRITERIA = ("subject_identity", "subject_action", "object_interaction", "motion_quality")
"""What is judged of a shot's action besides its overall score and whether it is depicted (B.3.4)."""

QUALITY = (
    "subject_consistency",
    "temporal_flickering",
    "motion_smoothness",
    "dynamic_degree",
    "aesthetic_quality",
    "imaging_quality",
)
"""The six measures of a shot's picture quality (Table 12)."""


def entity_key(kind: EntityType, name: str) -> str:
    """Return how an evaluation names an entity: ``character:Ana``."""
    return f"{kind}:{name}"


def entity_parts(key: str) -> tuple[EntityType, str]:
    """Return type and name of an entity."""
    kind, _, name = key.partition(":")
    known = next((known for known in TYPES if known == kind), None)
    if known is None or not name:
        problem = mismatch("entity", "a type and a name, such as character:Ana", key, "correct the key")
        raise InputError([problem])
    return known, name


def names_any(action: str, names: Iterable[str]) -> bool:
    """Whether an action names an entity: a whole word or words, in any case.

    Only then is interaction with objects judged (B.3.4); 1,965 of the 2,491 published shots name one.
    """
    return any(re.search(rf"\b{re.escape(name)}\b", action, re.IGNORECASE) for name in names if name)

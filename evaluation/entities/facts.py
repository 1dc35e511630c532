"""What an evaluation of episodes knows of each episode: the one input of every number.

Facts come from the archive: ``episodes.jsonl`` holds what was seen, ``judgements.jsonl`` what was judged. A
score of 1 to 10 is divided by 10; a reply, or a value of it, that could not be used is None.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...errors import InputError, mismatch
from ...schemas.entities import TYPES, EntityType
from ..metrics.vectors import Floats


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to one question."""

    outcome: str  # ``answered``, or why there is no answer, as in the archive
    # what was asked -> value in [0, 1], verdicts 0 or 1; None where the reply has none
    values: Mapping[str, float | None] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()  # criteria of which the reply says that they cannot be seen: null

    def of(self, name: str) -> float | None:
        """Return a value; None where there is none."""
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Appearance:
    """One scheduled entity in one shot."""

    entity: str  # key of the entity
    type: EntityType  # of the entity, as the schedule has it
    name: str  # of the entity
    status: str | None = None  # ``present``, ``weak`` or ``absent``; None where nobody looked
    clip: float | None = None  # similarity of the canonical crop with the description; None without a crop
    # what the encoder made of the crop, shape (dimensions,); None without one
    vector: Floats | None = field(default=None, repr=False)
    fidelity: Answer | None = None  # what a judge said of the crop; None where nobody was asked


@dataclass(frozen=True, slots=True)
class ShotFacts:
    """One scheduled shot."""

    key: str  # ``<scene>:<shot>``
    index: int  # place in the episode, from 0
    scene: int  # number of its scene
    cut: bool  # whether it begins anew; false where it continues the shot before it
    reached: bool  # whether its video could be read
    acts: bool = True  # whether the script says what happens in it
    names_object: bool = False  # whether that names an object that is scheduled
    appearances: tuple[Appearance, ...] = ()  # the scheduled entities, in order
    quality: Mapping[str, float | None] | None = None  # measure -> value; None where nobody measured
    action: Answer | None = None  # what a judge said of the action; None where nobody was asked
    # what the encoder made of the first frame; None without one
    first: Floats | None = field(default=None, repr=False)
    last: Floats | None = field(default=None, repr=False)  # the same of the last frame


@dataclass(frozen=True, slots=True)
class Gate:
    """Which appearances of one entity are compared across shots."""

    pool: tuple[str, ...] = ()  # keys of the shots whose appearance was admitted, in story order
    gated: tuple[str, ...] = ()  # of those that are present and were held back
    unscored: tuple[str, ...] = ()  # of those in the pool that have no fidelity
    anchor: str | None = None  # the shot that all others are compared with; None where there is none


@dataclass(frozen=True)
class EpisodeFacts:
    """One episode of one method."""

    method: str  # whose videos
    episode_id: str  # the episode; what stands before ``__`` names its source
    tier: str | None  # of the episode; None where nobody said
    shots: tuple[ShotFacts, ...]  # every scheduled shot, in story order, with a video or without
    gate: Mapping[str, Gate] | None = None  # entity -> its gate; None where nothing was compared across shots
    # entity and shot -> how that shot compares with the entity's anchor
    pairs: Mapping[tuple[str, str], Answer] = field(default_factory=dict)
    # location -> what was said of all its shots at once
    locations: Mapping[str, Answer] = field(default_factory=dict)
    # which pillars were evaluated: 1 quality, 2 prompt following, 3 across shots
    pillars: frozenset[int] = frozenset((1, 2, 3))

    @property
    def source(self) -> str:
        """The film that it was made from: the part of its id before ``__``."""
        return self.episode_id.partition("__")[0]

    @cached_property
    def _scheduled(self) -> Mapping[EntityType, Mapping[str, tuple[ShotFacts, ...]]]:
        shots: dict[EntityType, dict[str, list[ShotFacts]]] = {kind: {} for kind in TYPES}
        for shot in self.shots:
            for appearance in shot.appearances:
                shots[appearance.type].setdefault(appearance.entity, []).append(shot)
        return {kind: {key: tuple(shown) for key, shown in some.items()} for kind, some in shots.items()}

    def recurring(self, kind: EntityType) -> Iterator[tuple[str, tuple[ShotFacts, ...]]]:
        """Yield every entity of a type that is scheduled in two shots or more, with these."""
        yield from ((key, shots) for key, shots in self._scheduled[kind].items() if len(shots) > 1)

    def continuations(self) -> Iterator[tuple[ShotFacts, ShotFacts]]:
        """Yield every shot that continues the one before it in its scene, after that one."""
        for before, shot in zip(self.shots, self.shots[1:], strict=False):
            if not shot.cut and shot.scene == before.scene:
                yield before, shot

    def pool(self, entity: str) -> tuple[str, ...]:
        """Return the shots whose appearance of an entity is compared, in story order."""
        gate = None if self.gate is None else self.gate.get(entity)
        return () if gate is None else gate.pool


def appearance_of(shot: ShotFacts, entity: str) -> Appearance:
    """Return a scheduled entity in a shot."""
    for appearance in shot.appearances:
        if appearance.entity == entity:
            return appearance
    raise KeyError(entity)


# -- Keys of entities, and what judges look at in an entity of each type (EntityBench, B.3.3)

PROTOCOL = "episodes"
"""What archives of such evaluations bear as their name."""
UNREAD = "unread"
"""Where a reply says which of its values could not be used, and what stood there, as JSON."""
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

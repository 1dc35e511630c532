"""What an evaluation of episodes knows of each episode: the one input of every number.

Facts come from the archive: ``episodes.jsonl`` holds what was seen, ``judgements.jsonl`` what was judged. A
score of 1 to 10 is divided by 10; a reply, or a value of it, that could not be used is None.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...schemas.entities import TYPES, EntityType
from ..metrics.vectors import Floats


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to one question.

    Attributes:
        outcome: ``answered``, or why there is no answer, as in the archive.
        values: what was asked -> value in [0, 1], verdicts 0 or 1; None where the reply has none.
    """

    outcome: str
    values: Mapping[str, float | None] = field(default_factory=dict)

    def of(self, name: str) -> float | None:
        """Return a value; None where there is none."""
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Appearance:
    """One scheduled entity in one shot.

    Attributes:
        entity: key of the entity.
        type: of the entity, as the schedule has it.
        name: of the entity.
        status: ``present``, ``weak`` or ``absent``; None where nobody looked.
        clip: similarity of the canonical crop with the description; None without a crop.
        vector: what the encoder made of the crop, shape (dimensions,); None without one.
        fidelity: what a judge said of the crop; None where nobody was asked.
    """

    entity: str
    type: EntityType
    name: str
    status: str | None = None
    clip: float | None = None
    vector: Floats | None = field(default=None, repr=False)
    fidelity: Answer | None = None


@dataclass(frozen=True, slots=True)
class ShotFacts:
    """One scheduled shot.

    Attributes:
        key: ``<scene>:<shot>``.
        index: place in the episode, from 0.
        scene: number of its scene.
        cut: whether it begins anew; false where it continues the shot before it.
        reached: whether its video could be read.
        acts: whether the script says what happens in it.
        names_object: whether that names an object that is scheduled.
        appearances: the scheduled entities, in order.
        quality: measure -> value; None where nobody measured.
        action: what a judge said of the action; None where nobody was asked.
        first: what the encoder made of the first frame; None without one.
        last: the same of the last frame.
    """

    key: str
    index: int
    scene: int
    cut: bool
    reached: bool
    acts: bool = True
    names_object: bool = False
    appearances: tuple[Appearance, ...] = ()
    quality: Mapping[str, float | None] | None = None
    action: Answer | None = None
    first: Floats | None = field(default=None, repr=False)
    last: Floats | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Gate:
    """Which appearances of one entity are compared across shots.

    Attributes:
        pool: keys of the shots whose appearance was admitted, in story order.
        gated: of those that are present and were held back.
        unscored: of those in the pool that have no fidelity.
        anchor: the shot that all others are compared with; None where there is none.
    """

    pool: tuple[str, ...] = ()
    gated: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()
    anchor: str | None = None


@dataclass(frozen=True)
class EpisodeFacts:
    """One episode of one method.

    Attributes:
        method: whose videos.
        episode_id: the episode; what stands before ``__`` names its source.
        tier: of the episode; None where nobody said.
        shots: every scheduled shot, in story order, with a video or without.
        gate: entity -> its gate; None where nothing was compared across shots.
        pairs: entity and shot -> how that shot compares with the entity's anchor.
        locations: location -> what was said of all its shots at once.
        pillars: which pillars were evaluated: 1 quality, 2 prompt following, 3 across shots.
    """

    method: str
    episode_id: str
    tier: str | None
    shots: tuple[ShotFacts, ...]
    gate: Mapping[str, Gate] | None = None
    pairs: Mapping[tuple[str, str], Answer] = field(default_factory=dict)
    locations: Mapping[str, Answer] = field(default_factory=dict)
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
    """Return a scheduled entity in a shot.

    Raises:
        KeyError: it is not scheduled there.
    """
    for appearance in shot.appearances:
        if appearance.entity == entity:
            return appearance
    raise KeyError(entity)

"""What drafts the parts of episodes: a protocol, and the planners that there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import Field

from ...engine.stage import Item, Tools
from ...schemas.base import Own
from ...schemas.canonical import Json
from ..replies import Drafted
from ..step import PlannerSettings
from .drafts import Entity, Merge, Person, Repair, Script
from .registries import LocalRegistry
from .views import Views

__all__ = [
    "Checked", "Drafted", "Episode", "Film", "Identities", "Planner", "PlannerSettings", "planner_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Film:
    """A video as far as it is known: its kept shots in order, who is in them, and pictures.

    Attributes:
        numbers: of the kept shots, ascending.
        opens: number of a shot -> how it begins: ``start``, ``cut`` or ``gradual``.
        cast: the people.
        views: pictures of shots and people.
    """

    numbers: tuple[int, ...]
    opens: Mapping[int, str]
    cast: tuple[Person, ...]
    views: Views

    @classmethod
    def of(cls, item: Item) -> "Film":
        """Return the film that an item with ``shots``, ``cast`` and ``views`` is."""
        shots = [entry["shot"] for entry in item["shots"]]
        return cls(
            tuple(shot["number"] for shot in shots),
            {shot["number"]: shot["opens"] for shot in shots},
            tuple(Person.model_validate(person) for person in item["cast"]),
            Views.model_validate(item["views"]),
        )

    def people_in(self, shot: int) -> list[Person]:
        """Return who is seen in a shot, in the order of the cast."""
        return [person for person in self.cast if shot in person.shots]


class Identities(Own):
    """The entities of a video, and how they came about.

    Attributes:
        entities: characters, locations and objects, each numbered by first appearance.
        merges: people whom a model took for one character, and those whom it was not allowed to.
        repairs: what was found on the way.
        members: label of an entity -> ids of the persons, or of the local entities, that it is made of.
    """

    entities: tuple[Entity, ...]
    merges: tuple[Merge, ...] = ()
    repairs: tuple[Repair, ...] = ()
    members: dict[str, tuple[str, ...]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """A window of shots that becomes an episode.

    Attributes:
        script: its shots, in order; numbers are those of the video, scenes count from 1.
        entities: those that are scheduled in it.
        views: pictures of its shots and people.
    """

    script: Script
    entities: tuple[Entity, ...]
    views: Views

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its shots."""
        return tuple(shot.number for shot in self.script.shots)

    def scheduled(self, shot: int) -> list[Entity]:
        """Return what a shot shows, in the order of the registry."""
        return [entity for entity in self.entities if shot in entity.shots]

    def with_script(self, script: Script) -> "Episode":
        """Return the episode with another script."""
        return replace(self, script=script)


class Checked(Own):
    """A script and its registry, verified."""

    script: Script
    entities: tuple[Entity, ...]


class Planner(Protocol):
    """Drafts the parts of episodes. Values are plain JSON of the types that the methods name.

    The same call with the same answers of the model gives the same value. Every method may raise
    :class:`~fabula.engine.asking.NoAnswer`.
    """

    async def registries(self, film: Film) -> Drafted[Json]:
        """Return the local registries of the film's chunks, in order (:class:`LocalRegistry`)."""
        ...

    async def identities(self, film: Film, registries: Sequence[LocalRegistry]) -> Drafted[Json]:
        """Return the entities of the film (:class:`Identities`)."""
        ...

    async def script(
        self, film: Film, registries: Sequence[LocalRegistry], entities: Sequence[Entity]
    ) -> Drafted[Json]:
        """Return scenes, cut flags and plain actions of all shots (:class:`.drafts.Script`)."""
        ...

    async def overview(self, episode: Episode) -> Drafted[Json]:
        """Return the story of an episode in two to four sentences."""
        ...

    async def descriptions(self, episode: Episode) -> Drafted[Json]:
        """Return what each entity looks like: label -> text, and repairs as ``[texts, repairs]``."""
        ...

    async def actions(self, episode: Episode) -> Drafted[Json]:
        """Return the script with its actions told in full (:class:`.drafts.Script`)."""
        ...

    async def verify(self, episode: Episode) -> Drafted[Json]:
        """Return script and registry with what was wrong put right (:class:`Checked`)."""
        ...


def planner_of(tools: Tools) -> Planner:
    """Return the planner that a stage's settings name."""
    settings = tools.settings
    assert isinstance(settings, PlannerSettings)
    if settings.planner == "model":
        from .model.planner import EntityModelPlanner

        return EntityModelPlanner(tools)
    from .rules.planner import EntityRulesPlanner

    return EntityRulesPlanner(settings)

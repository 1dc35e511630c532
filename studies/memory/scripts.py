"""What the memory knows of an episode: its entities in order of appearance, as they are introduced."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from ...schemas.entities import TYPES, EntityEpisode, EntityType
from ...schemas.values import Own
from ...validators.entities.view import EpisodeView, view_of
from .bank import DescribedBy


class ScriptEntity(Own):
    """One scheduled entity."""

    type: EntityType = Field(description="Type, as the schedule lists it.")
    name: str = Field(description="Name, as the schedule has it.")
    label: str | None = Field(
        description="Its key in the registry; null where the registry has no such name."
    )
    shots: tuple[int, ...] = Field(description="Places of the shots that schedule it, from 0.")
    description: str = Field(description="What it looks like, as it is introduced.")
    described_by: DescribedBy = Field(description="Where that is from.")

    @property
    def key(self) -> str:
        """How it is called beside others: ``object:the red cup``."""
        return f"{self.type}:{self.name}"


class ScriptShot(Own):
    """One shot."""

    key: str = Field(description="``<scene>:<shot>``.")
    action: str = Field(description="What happens in it.")


class MemoryScript(Own):
    """One episode, as far as references are made from it."""

    episode_id: str = Field(description="The episode.")
    overview: str = Field(description="The story, as its script tells it.")
    shots: tuple[ScriptShot, ...] = Field(description="Its shots, in story order.")
    entities: tuple[ScriptEntity, ...] = Field(
        description="Scheduled entities: characters, locations, objects, each in order of appearance."
    )
    unscheduled: tuple[str, ...] = Field(description="Entities of the registry without a shot, as type:name.")

    @property
    def unregistered(self) -> tuple[str, ...]:
        """The scheduled entities that the registry does not have, as type:name."""
        return tuple(entity.key for entity in self.entities if entity.described_by == "name")

    def of(self, kind: EntityType) -> tuple[ScriptEntity, ...]:
        """Return the entities of a type."""
        return tuple(entity for entity in self.entities if entity.type == kind)


def script_of(episode_id: str, script: EntityEpisode) -> MemoryScript:
    """Return what the memory knows of an episode.

    An entity is described by the first header line that introduces it, wherever that stands; without one by
    the registry; one that the registry does not have, by nothing but its name.
    """
    view = view_of(episode_id, script)
    introduced = {
        line.name: line.description.strip()
        for header in reversed(view.headers)
        for line in header.lines
        if line.name is not None and line.description.strip()
    }
    order = sorted(view.appearances.items(), key=lambda row: (TYPES.index(row[0][0]), row[1][0]))
    entities = []
    for (kind, name), shots in order:
        description, source = _described(view, introduced, name)
        labels = view.labels.get(name, ())
        entities.append(
            ScriptEntity(
                type=kind, name=name, label=labels[-1] if labels else None,
                shots=tuple(number - 1 for number in shots), description=description, described_by=source,
            )
        )  # fmt: skip
    return MemoryScript(
        episode_id=episode_id,
        overview=(script.story_overview or "").strip(),
        shots=tuple(ScriptShot(key=shot.key, action=shot.action) for shot in view.shots),
        entities=tuple(entities),
        unscheduled=tuple(
            f"{view.type_of(name) or 'entity'}:{name}" for name in view.labels if name not in view.scheduled
        ),
    )


def _described(view: EpisodeView, introduced: dict[str, str], name: str) -> tuple[str, DescribedBy]:
    if name in introduced:
        return introduced[name], "header"
    registered = view.descriptions.get(name, "").strip()
    return (registered, "registry") if registered else (name, "name")


def shots_with(script: MemoryScript, entity: ScriptEntity) -> Iterator[ScriptShot]:
    """Yield the shots that schedule an entity, in story order."""
    return (script.shots[number] for number in entity.shots)


def together(entity: ScriptEntity, others: Sequence[ScriptEntity]) -> dict[str, int]:
    """Return for each of some entities, by key, how many shots it shares with another one."""
    own = frozenset(entity.shots)
    return {other.key: len(own & frozenset(other.shots)) for other in others}

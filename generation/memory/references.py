"""What reference an entity needs, put together from script, classification and style: one for each entity."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from pydantic import Field

from ...schemas.canonical import Json
from ...schemas.entities import EntityType
from ...schemas.values import Own
from .bank import Cropped, DescribedBy, Made, Owner
from .owners import Classified
from .scripts import MemoryScript, ScriptEntity

Needs: TypeAlias = Literal["portrait", "panorama"]


class Part(Own):
    """An object that somebody's or some place's picture shows."""

    name: str = Field(description="Its name.")
    description: str = Field(description="What it looks like.")


class Source(Own):
    """A video that a reference may be cut from."""

    where: Cropped = Field(description="Whose video of which shot, and where in its frame.")
    path: str = Field(description="Where the video lies.")
    sha256: str = Field(description="Of the video.")
    start: int = Field(ge=0, description="Its first frame of the shot.")


class Reference(Own):
    """What is to be made of one entity."""

    episode_id: str = Field(description="The episode.")
    type: EntityType = Field(description="Type, as the schedule lists it.")
    name: str = Field(description="Name, as the schedule has it.")
    label: str | None = Field(description="Its key in the registry; null where that has no such name.")
    first_shot: str = Field(description="Key of the first shot that schedules it.")
    description: str = Field(description="What it looks like, as it is introduced.")
    described_by: DescribedBy = Field(description="Where that is from.")
    classified: Classified | None = Field(default=None, description="Of an object: what was decided.")
    parts: tuple[Part, ...] = Field(default=(), description="Objects that its picture shows, too.")
    style: str = Field(description="Style of the episode's pictures.")
    made: Made = Field(description="How its reference comes about.")
    needs: Needs | None = Field(description="The picture that it needs; null for none of its own.")
    kept: bool = Field(default=False, description="Whether a person saw to its picture: nobody is asked.")
    source: Source | None = Field(default=None, description="The video that it is cut from.")

    @property
    def owner(self) -> Owner | None:
        """The entity whose picture shows it."""
        return None if self.classified is None else self.classified.owner

    @property
    def key(self) -> str:
        """How it is called in its episode: ``object:the red cup``."""
        return f"{self.type}:{self.name}"

    @property
    def shown(self) -> str:
        """Everything that its picture shows, in words: itself, then its parts."""
        return " ".join([self.description, *(f"{part.name}: {part.description}" for part in self.parts)])


def references_of(
    script: MemoryScript, classified: Sequence[Classified], style: str, outputs: Json, made: Made
) -> Iterator[Reference]:
    """Yield what is to be made of each entity of an episode, in order of appearance.

    Args:
        script: the episode.
        classified: what was decided of each object.
        style: of its pictures.
        outputs: what a method made of the episode, as :mod:`.load_scripts` writes it; None without outputs.
        made: how references come about.
    """
    decided = {row.name: row for row in classified}
    objects = {entity.name: entity for entity in script.of("object")}
    parts: dict[tuple[str, str], list[Part]] = {}
    for row in classified:
        if row.owner is not None:
            part = Part(name=row.name, description=objects[row.name].description)
            parts.setdefault((row.owner.type, row.owner.name), []).append(part)
    for entity in script.entities:
        about = decided.get(entity.name) if entity.type == "object" else None
        yield Reference(
            episode_id=script.episode_id, type=entity.type, name=entity.name, label=entity.label,
            first_shot=script.shots[entity.shots[0]].key, description=entity.description,
            described_by=entity.described_by, classified=about,
            parts=tuple(parts.get((entity.type, entity.name), ())), style=style, made=made,
            needs=None if made == "words" else _needs(entity, about),
            source=None if outputs is None else _source(entity, script, outputs),
        )  # fmt: skip


def _needs(entity: ScriptEntity, about: Classified | None) -> Needs | None:
    if entity.type == "location":
        return "panorama"
    return "portrait" if about is None or about.owner is None else None


def _source(entity: ScriptEntity, script: MemoryScript, outputs: Mapping[str, Json]) -> Source | None:
    """Return the first video that should show an entity; None where none of these shots has one."""
    for number in entity.shots:
        shot = script.shots[number].key
        video = outputs["videos"].get(shot)
        if video is None:
            continue
        box = next(
            (row["box"] for row in outputs["boxes"]
             if (row["shot"], row["type"], row["name"]) == (shot, entity.type, entity.name)),
            None,
        )  # fmt: skip
        where = Cropped(
            method=outputs["method"], shot=shot, file=str(video["file"]).rpartition("/")[2], box=box
        )
        return Source(where=where, path=video["file"], sha256=video["sha256"], start=video["start"])
    return None

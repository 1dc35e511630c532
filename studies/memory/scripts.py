"""What the memory knows of an episode: its entities in order of appearance, as they are introduced."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, model_validator

from ...engine.stage import Child, Item, Made, OneStage, Tools
from ...errors import InputError, UserError
from ...evaluation.entities.load_episodes import chosen_episodes
from ...evaluation.entities.looking.settings import EpisodeSelection
from ...evaluation.outputs.entities import CheckOptions, check_episodes
from ...releases.entities.tree import EntitySet, read_entity_set
from ...schemas.canonical import Json, sha256_file
from ...schemas.entities import TYPES, EntityEpisode, EntityType
from ...schemas.plain_files import read_plain, reason_of
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


# -- Stage: one item per episode, with its script, and where its videos are if references come from outputs
#
# A file of boxes: where entities are in the first frames of a method's shots, one line of JSON each.
#
# ::
#
#     {"episode_id": "e1", "shot": "1:1", "type": "character", "name": "Ana", "box": [0.1, 0.2, 0.4, 0.9]}
#
# A box is left, top, right, bottom, as shares of the frame.


class EntityBox(Own):
    """Where one entity is in the first frame of a shot."""

    episode_id: str = Field(description="The episode.")
    shot: str = Field(description="Key of the shot.")
    type: EntityType = Field(description="Type of the entity.")
    name: str = Field(description="Name of the entity.")
    box: tuple[float, float, float, float] = Field(
        description="Left, top, right, bottom as shares of the frame."
    )

    @model_validator(mode="after")
    def _has_an_inside(self) -> "EntityBox":
        left, top, right, bottom = self.box
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            raise ValueError("a box has left < right and top < bottom, all from 0 to 1")
        return self


def read_boxes(path: Path) -> Mapping[str, tuple[EntityBox, ...]]:
    """Return the boxes in a file, by episode."""
    try:
        lines = read_plain(path, follow=True).splitlines()
    except OSError as error:
        what = f"it cannot be read: {error.strerror}"
        raise InputError.one(str(path), what=what, fix="check the path") from error
    problems: list[UserError] = []
    boxes: dict[str, list[EntityBox]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            box = EntityBox.model_validate_json(line)
        except ValueError as error:
            what = f"no box of an entity: {reason_of(error)[:300]}"
            problems.append(UserError(f"{path}:{number}", what=what, fix="correct or remove the line"))
            continue
        boxes.setdefault(box.episode_id, []).append(box)
    if problems:
        raise InputError(problems)
    return {episode: tuple(some) for episode, some in boxes.items()}


EPISODES, OUTPUTS, BOXES = "episodes", "outputs", "boxes"
"""Roles of the sources: the set, a method's videos, boxes of entities in these."""


def load_scripts(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per episode."""
    settings = tools.own(EpisodeSelection)
    roles = [source["role"] for source in item["sources"]]
    paths = dict(zip(roles, tools.paths, strict=True))
    whole, _ = read_entity_set(paths[EPISODES], rules=False)
    chosen = chosen_episodes(whole, settings)
    outputs = _outputs(paths, chosen, settings)
    for episode in chosen.episodes:
        script = script_of(episode.episode_id, episode.script)
        videos = outputs.get(episode.episode_id)
        yield Child(episode.episode_id, Made({"script": script.as_json(), "outputs": videos}))


LOAD_SCRIPTS = OneStage(
    name="load_scripts", version=2, shape="expand", reads=("sources",), writes=("script", "outputs"),
    settings=EpisodeSelection, run=load_scripts,
)  # fmt: skip


def _outputs(paths: dict[str, Path], chosen: EntitySet, settings: EpisodeSelection) -> dict[str, Json]:
    """Return what a method made of each episode; nothing where references are not made of outputs."""
    if OUTPUTS not in paths:
        return {}
    options = CheckOptions(settings.cuts_by, settings.device, decode=False)
    checked = check_episodes(paths[OUTPUTS], chosen, chosen, options)
    boxes = read_boxes(paths[BOXES]) if BOXES in paths else {}
    made: dict[str, Json] = {}
    hashes: dict[Path, str] = {}
    for output in checked.outputs:
        videos = {}
        for shot in output.shots:
            if shot.code is not None or shot.file is None or not shot.file.is_file():
                continue
            sha256 = hashes.setdefault(shot.file, sha256_file(shot.file))
            videos[shot.key] = {
                "file": str(shot.file.absolute()), "sha256": sha256,
                "start": 0 if shot.span is None else shot.span[0],
            }  # fmt: skip
        made[output.unit] = {
            "method": checked.method,
            "videos": videos,
            "boxes": [box.as_json() for box in boxes.get(output.unit, ())],
        }
    return made


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an episode the same episode."""
    return fields["script"]["episode_id"]

"""Stage: one item per episode, with its script, and where its videos are if references come from outputs.

A file of boxes: where entities are in the first frames of a method's shots, one line of JSON each.

::

    {"episode_id": "e1", "shot": "1:1", "type": "character", "name": "Ana", "box": [0.1, 0.2, 0.4, 0.9]}

A box is left, top, right, bottom, as shares of the frame.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field, model_validator

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError, UserError
from ...evaluation.entities.load_episodes import chosen_episodes
from ...evaluation.entities.looking.settings import EpisodeSelection
from ...evaluation.outputs.entities import CheckOptions, check_episodes
from ...releases.entities.tree import EntitySet, read_entity_set
from ...schemas.canonical import Json, sha256_file
from ...schemas.entities import EntityType
from ...schemas.plain_files import read_plain, reason_of
from ...schemas.values import Own
from .scripts import script_of


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

SPEC = StageSpec(
    name="load_scripts", version=2, shape="expand", reads=("sources",), writes=("script", "outputs"),
    settings=EpisodeSelection,
)  # fmt: skip


def run(item: Item, tools: Tools) -> Iterator[Child]:
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

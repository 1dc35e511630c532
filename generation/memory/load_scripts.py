"""Stage: one item per episode, with its script, and where its videos are if references come from outputs."""

from collections.abc import Iterator
from pathlib import Path

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...evaluation.entities.load_episodes import chosen_episodes
from ...evaluation.entities.looking.settings import EpisodeSelection
from ...evaluation.outputs.entities import CheckOptions, check_episodes
from ...releases.entities.tree import EntitySet, read_entity_set
from ...schemas.canonical import Json, sha256_file
from .boxes import read_boxes
from .scripts import script_of

EPISODES, OUTPUTS, BOXES = "episodes", "outputs", "boxes"
"""Roles of the sources: the set, a method's videos, boxes of entities in these."""

SPEC = StageSpec(
    name="load_scripts", version=2, shape="expand", reads=("sources",), writes=("script", "outputs"),
    settings=EpisodeSelection,
)  # fmt: skip


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per episode.

    Raises:
        InputError: the set, the outputs or the boxes cannot be used; every problem is listed.
        ConfigError: nothing is chosen.
    """
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

"""The episodes that are scored: their shots before any is looked at, and as one item again afterwards."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from ...engine.stage import Child, Failed, Item, Made, Outcome, Tools, stage
from ...errors import ConfigError
from ...releases.entities.tree import EntitySet, Episode, read_entity_set
from ...schemas.canonical import Json, digest, sha256_file
from ...schemas.entities import ALL
from ...schemas.values import Own
from ..metrics.vectors import packed
from ..outputs.entities import (
    FATAL,
    CheckOptions,
    EpisodeOutput,
    EpisodeOutputs,
    check_episodes,
    shot_video_name,
)
from ..outputs.layout import require_shots
from ..outputs.named import require_distinct
from .archived import entity_parts
from .looking import EpisodeSelection, scheduled

# -- Stage: one item per method and episode, with its script and where the video of each shot is
#
# An episode without any video is an item too: what is missing is counted. Videos are opened later, but for
# those of whole episodes, whose shots are found here where there is no cut list.

EPISODES, OUTPUTS = "episodes", "outputs"
"""Roles of the sources."""


@stage(
    version=3, shape="expand", reads=("sources",), writes=("episode", "outputs"), settings=EpisodeSelection
)
def load_episodes(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per method and episode, by method."""
    settings = tools.own(EpisodeSelection)
    whole, _ = read_entity_set(tools.of_role(item, EPISODES)[0], rules=False)
    chosen = chosen_episodes(whole, settings)
    tiers = tiers_of(whole, settings.split)
    scope = None if len(chosen.episodes) == len(whole.episodes) else list(chosen.by_id)
    for checked in checked_outputs(tools.of_role(item, OUTPUTS), chosen, whole, settings):
        about = {
            "method": checked.method,
            "accounting": checked.accounting(),
            "codes": dict(checked.counts),
            "release": {"sha256": whole.sha256, "episodes": len(whole.episodes)},
            "episodes": scope,
        }
        for episode in chosen.episodes:
            videos = _videos(checked.by_id[episode.episode_id])
            script = {**_episode(episode), "tier": tiers.get(episode.episode_id)}
            fields = {"episode": script, "outputs": {**about, **videos}}
            yield Child(f"{checked.method}/{episode.episode_id}", Made(fields))


def chosen_episodes(entity_set: EntitySet, settings: EpisodeSelection) -> EntitySet:
    """Return the episodes that the settings choose, in the order of the set."""
    tiers = entity_set.tiers(settings.split)
    _known("--episode", "episode", settings.episodes, list(entity_set.by_id))
    _known("--tier", "tier", settings.tier, list(tiers))
    wanted = (
        {name for tier in settings.tier for name in tiers[tier]} if settings.tier else entity_set.by_id.keys()
    )
    kept = [
        episode
        for episode in entity_set.episodes
        if episode.episode_id in wanted and (not settings.episodes or episode.episode_id in settings.episodes)
    ][: settings.limit]
    if not kept:
        raise ConfigError("--episode", what="no episode is chosen", fix="leave out --episode or --tier")
    return EntitySet(tuple(kept), entity_set.splits)


def tiers_of(entity_set: EntitySet, split: str | None) -> dict[str, str]:
    """Return the tier of each episode, by its id; episodes that only ``all`` names have none."""
    named = entity_set.tiers(split)
    return {episode_id: tier for tier, ids in reversed(named.items()) if tier != ALL for episode_id in ids}


def checked_outputs(
    folders: Sequence[Path], chosen: EntitySet, whole: EntitySet, settings: EpisodeSelection
) -> tuple[EpisodeOutputs, ...]:
    """Return the outputs of every method, checked, by method; videos of shots are not opened."""
    require_distinct([folder.resolve().name for folder in folders])
    options = CheckOptions(settings.cuts_by, settings.device, decode=False)
    ordered = sorted(folders, key=lambda path: path.name)
    checked = [check_episodes(folder, chosen, whole, options) for folder in ordered]
    require_shots(checked, FATAL, "video")
    return tuple(checked)


def _known(option: str, noun: str, given: Sequence[str], there: Sequence[str]) -> None:
    unknown = sorted(set(given) - set(there))
    if unknown:
        what = f"the set has no {noun} {', '.join(unknown)}"
        some = ", ".join(there[:3])
        raise ConfigError(option, what=what, fix=f"check the spelling; it has for instance {some}")


def _episode(episode: Episode) -> Json:
    """Return what an evaluation knows of an episode; the later of two registry entries of a name counts."""
    script = episode.script
    described = {entry.name: entry.description for entry in script.entity_descriptions.values()}
    shots = list(script.shots())
    keys = dict.fromkeys(key for shot in shots for key in scheduled(shot))
    registry = {}
    for key in keys:
        kind, name = entity_parts(key)
        text = (described.get(name) or "").strip()
        registry[key] = {"name": name, "type": kind, "description": text or name, "registered": bool(text)}
    return {
        "episode_id": episode.episode_id,
        "shots": [
            {
                "key": shot.key, "index": index, "scene": shot.scene, "number": shot.number,
                "cut": shot.cut, "action": shot.action, "entities": list(scheduled(shot)),
            }
            for index, shot in enumerate(shots)
        ],
        "registry": registry,
    }  # fmt: skip


def _videos(output: EpisodeOutput) -> Json:
    """Return where the video of each shot is, and what identifies all of them."""
    hashes: dict[Path, str] = {}
    videos = {}
    for shot in output.shots:
        file = shot.file if shot.file is not None and shot.file.is_file() else None
        if file is not None and file not in hashes:
            hashes[file] = sha256_file(file)
        start, stop = (None, None) if shot.span is None else shot.span
        videos[shot.key] = {
            "file": None if file is None else str(file.absolute()),
            "sha256": None if file is None else hashes[file],
            "start": start, "stop": stop, "code": shot.code,
        }  # fmt: skip
    identified = [[key, video["sha256"], video["start"], video["stop"]] for key, video in videos.items()]
    return {
        "layout": output.layout,
        "cuts": None if output.cuts is None else output.cuts.source,
        "videos": videos,
        "sha256": digest(identified),
    }


# -- Stage: one item per shot of a method's episode: its script, its entities and its video


@stage(version=1, shape="expand", reads=("episode", "outputs"), writes=("shot", "story"))
def list_shots(item: Item, _tools: Tools) -> Iterator[Child]:
    """Yield one child per scheduled shot, in story order, whether it has a video or not."""
    episode, outputs = item["episode"], item["outputs"]
    about = {name: value for name, value in outputs.items() if name != "videos"}
    story = {"episode": episode, "outputs": about}  # for when the shots are one item again
    for shot in episode["shots"]:
        video = outputs["videos"][shot["key"]]
        entities = [{"key": key, **episode["registry"][key]} for key in shot["entities"]]
        fields = {
            **shot,
            "method": outputs["method"],
            "episode_id": episode["episode_id"],
            "video": {name: video[name] for name in ("file", "sha256", "start", "stop")},
            "code": video["code"],
            "entities": entities,
        }
        yield Child(
            f"{item.id}/{shot_video_name(shot['scene'], shot['number'])}",
            Made({"shot": fields, "story": story}),
        )


# -- Stage of an estimate: every scheduled entity of a shot that has a video is taken to be seen in it
#
# It stands for the stages that open videos and look at pictures, so that what judges will be asked at most
# can be told at once. What it writes is never judged.


class AssumeSettings(Own):
    """What is taken to be seen."""

    entities: bool = Field(default=True, description="Whether entities are looked for.")
    actions: bool = Field(default=True, description="Whether grids of actions are drawn.")
    across: bool = Field(default=True, description="Whether appearances are compared across shots.")


@stage(
    version=1,
    reads=("shot",),
    writes=("frames", "quality", "grounded", "vectors", "grid"),
    settings=AssumeSettings,
)
def assume_shots(item: Item, tools: Tools) -> Outcome:
    """Return what a flawless shot would give, with names of pictures that are not there."""
    settings, shot = tools.own(AssumeSettings), item["shot"]
    code = shot["code"] or (None if shot["video"]["file"] else "missing")
    keys = [entity["key"] for entity in shot["entities"]] if code is None else []
    pictures = {str(index): _assumed_file(item.id, index) for index in range(8)} if code is None else {}
    crops = {key: {"status": "present", "canonical": {"file": _assumed_file(item.id, key)}} for key in keys}
    seen, compared = settings.entities, settings.across
    drawn = settings.actions and code is None
    return Made(
        {
            "frames": {"invalid": code, "pictures": pictures, "scene": [int(index) for index in pictures]},
            "quality": None,
            "grounded": {"models": {}, "entities": crops} if seen else None,
            "vectors": {
                "model": None,
                "crops": {key: packed(np.ones((1, 1), dtype=np.float32)) for key in keys},
            }
            if compared
            else None,
            "grid": {"file": _assumed_file(item.id, "grid"), "legend": _legend(shot)} if drawn else None,
        }
    )


def _legend(shot: Json) -> list[Json]:
    """Return a colour and a name for everybody who would be marked."""
    marked = (entity for entity in shot["entities"] if entity["type"] != "location")
    return [{"key": entity["key"], "name": entity["name"], "color": "orange"} for entity in marked]


def _assumed_file(*names: object) -> str:
    return f"{digest([str(name) for name in names])}.png"


# -- Stage: the shots of an episode with all that was found and judged in them, as one item again

Pillar = Literal[1, 2, 3]

PARTS = ("shot", "frames", "quality", "grounded", "vectors", "grid", "fidelity", "actions")
"""What is kept of each shot."""


class GroupSettings(Own):
    """What is evaluated."""

    pillars: tuple[Pillar, ...] = Field(
        default=(1, 2, 3), description="1 quality, 2 prompt following, 3 consistency across shots."
    )


@stage(version=1, shape="group", reads=("story", *PARTS), writes=("whole", "shots"), settings=GroupSettings)
def group_episodes(members: Iterable[Item], tools: Tools) -> Outcome:
    """Return the episode and its shots in order.

    Shots that could not be looked at through a fault of ours are not there: an episode that lacks one fails,
    as it would be scored as if the method had left the shot out.
    """
    del tools
    whole, shots = None, []
    for member in sorted(members, key=lambda item: int(item["shot"]["index"])):
        whole = member["story"]
        shots.append({name: member[name] for name in PARTS})
    assert whole is not None
    lost = len(whole["episode"]["shots"]) - len(shots)
    if lost:
        return Failed(
            "shots_failed", f"{lost} of its shots failed; give the same command again with --retry-failed"
        )
    return Made({"whole": whole, "shots": shots})

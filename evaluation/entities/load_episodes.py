"""Stage: one item per method and episode, with its script and where the video of each shot is.

An episode without any video is an item too: what is missing is counted. Videos are opened later, but for
those of whole episodes, whose shots are found here where there is no cut list.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import ConfigError
from ...releases.entities.tree import EntitySet, Episode, read_entity_set
from ...schemas.canonical import Json, digest, sha256_file
from ...schemas.entities import ALL
from ..outputs.entities import FATAL, CheckOptions, EpisodeOutput, EpisodeOutputs, check_episodes
from ..outputs.layout import require_shots
from ..outputs.named import require_distinct
from .archived import entity_parts
from .looking.settings import EpisodeSelection, scheduled

EPISODES, OUTPUTS = "episodes", "outputs"
"""Roles of the sources."""

SPEC = StageSpec(
    name="load_episodes",
    version=3,
    shape="expand",
    reads=("sources",),
    writes=("episode", "outputs"),
    settings=EpisodeSelection,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
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

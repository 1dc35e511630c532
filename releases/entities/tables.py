"""The flat tables of released episodes: episodes, scenes, shots, entities, and slots of the schedule."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypedDict

from ...schemas.canonical import Json
from ...schemas.entities import ALL, LISTS, TYPES, EntityEpisode, EpisodeShot, type_of_label
from ...validators.entities.view import EpisodeView, view_of
from ..tables import PictureCell, PlacedRow, Table, read_lines, row_of, table_of
from .pictures import PICTURES as PICTURE_LINES
from .tree import EPISODES as EPISODE_LINES

SPLIT = "test"
"""The one split that ``datasets`` sees: nothing in it is for training. Tiers are a column."""

Part = tuple[Table, dict[str, Json]]


_OfEpisode = Annotated[str, "The episode."]
_Shot = Annotated[int, "Number of the shot in the episode, from 1."]
_OF_EPISODE = {"episode_id": ("episodes", "episode_id")}


class EpisodeRow(TypedDict):
    """One row per episode."""

    episode_id: Annotated[str, "Id of the episode, which names its files."]
    tier: Annotated[str, "Its tier in the split file that names most episodes; null in none."]
    splits: Annotated[list[str], "Every split file and tier that names it, as file:tier."]
    story_overview: Annotated[str, "The story in two to four sentences."]
    scenes: Annotated[int, "How many scenes it has."]
    shots: Annotated[int, "How many shots."]
    characters: Annotated[int, "Labels of characters in its registry."]
    locations: Annotated[int, "Labels of locations in its registry."]
    objects: Annotated[int, "Labels of objects in its registry."]
    slots: Annotated[int, "Slots of its schedule."]
    source: Annotated[str, "What it was made from, by name; null where nobody said."]
    window_shot_ids: Annotated[list[str], "Ids of the source's shots, one per shot."]


class SceneRow(TypedDict):
    """One row per scene."""

    episode_id: _OfEpisode
    scene: Annotated[int, "Number of the scene, from 1."]
    first_shot: Annotated[int, "Number of its first shot in the episode."]
    shots: Annotated[int, "How many shots it has."]
    cuts: Annotated[int, "How many of them are cuts."]


class ShotRow(TypedDict):
    """One row per shot."""

    episode_id: _OfEpisode
    shot: _Shot
    key: Annotated[str, "The shot as the schedule names it: scene:shot, both from 1."]
    scene: Annotated[int, "Number of its scene."]
    cut: Annotated[bool, "Whether it begins anew; false where it continues the one before."]
    action_description: Annotated[str, "What happens in it."]
    video_prompt: Annotated[str, "What a generator is given."]
    header: Annotated[bool, "Whether the prompt describes entities before the action."]
    characters: Annotated[list[str], "Names of the characters that it shows."]
    places: Annotated[list[str], "Names of the locations that it shows."]
    objects: Annotated[list[str], "Names of the objects that it shows."]


class EntityRow(TypedDict):
    """One row per entity of a registry."""

    episode_id: _OfEpisode
    label: Annotated[str, "Its label, such as Object 7."]
    type: Annotated[str, "character, location or object; null where neither label nor schedule tell."]
    name: Annotated[str, "How texts and the schedule name it."]
    description: Annotated[str, "What it looks like."]
    appearances: Annotated[int, "Shots that schedule its name."]
    first_shot: Annotated[int, "The first of them; null for one that is never scheduled."]
    max_gap: Annotated[int, "Widest difference of numbers of consecutive ones; null below two."]


class SlotRow(TypedDict):
    """One row per entity that a shot shows."""

    episode_id: _OfEpisode
    shot: _Shot
    list: Annotated[str, "The list of the schedule: characters, places or objects."]
    place: Annotated[int, "Its place in the list, from 1."]
    name: Annotated[str, "Name of the entity."]
    label: Annotated[str, "Its label in the registry; null where the registry has no such name."]
    gap: Annotated[int, "Difference to the number of the shot before that shows it; null at first."]
    described: Annotated[bool, "Whether the prompt of the shot describes it under its name."]


class PictureRow(TypedDict):
    """One row per keyframe of a shot, and per crop of a person, as far as they may be given away."""

    episode_id: _OfEpisode
    kind: Annotated[str, "keyframe or crop."]
    shot: Annotated[int, "Number of the shot in the episode, from 1; null outside it."]
    label: Annotated[str, "Label of the entity that a crop shows."]
    number: Annotated[int, "Its place among those of its shot or entity, from 1."]
    file: Annotated[str, "Path of the picture in the release."]
    video: Annotated[str, "The video that it is from, by name."]
    rights: Annotated[str, "On what ground it may be used."]
    image: Annotated[PictureCell, "The picture, byte for byte."]


class ThumbnailRow(TypedDict):
    """One row per episode with pictures: a small one of its first shot, and the video by name."""

    episode_id: _OfEpisode
    file: Annotated[str, "Path of the picture in the release."]
    video: Annotated[str, "The video that the episode is from, by name; the release does not hold it."]
    rights: Annotated[str, "On what ground the picture may be used."]
    image: Annotated[PictureCell, "The picture, byte for byte."]


EPISODES = table_of("episodes", EpisodeRow, ("episode_id",))
SCENES = table_of("scenes", SceneRow, ("episode_id", "scene"), _OF_EPISODE)
SHOTS = table_of("shots", ShotRow, ("episode_id", "shot"), _OF_EPISODE)
ENTITIES = table_of("entities", EntityRow, ("episode_id", "label"), _OF_EPISODE)
SLOTS = table_of("slots", SlotRow, ("episode_id", "shot", "list", "place"), _OF_EPISODE)
PICTURES = table_of("pictures", PictureRow, ("episode_id", "file"), _OF_EPISODE, optional=True)
THUMBNAILS = table_of("thumbnails", ThumbnailRow, ("episode_id",), _OF_EPISODE, optional=True)
TABLES = (EPISODES, SCENES, SHOTS, ENTITIES, SLOTS, PICTURES, THUMBNAILS)


def tiers_of(records: Sequence[Json]) -> dict[str, str | None]:
    """Return id of an episode -> its tier in the split file that names most of them.

    Of split files that name equally many, and of tiers of one file, the first by name counts; ``all`` aside.
    """
    named = Counter(name for record in records for name in record["tiers"])
    chosen = min(named, key=lambda name: (-named[name], name), default=None)
    found: dict[str, str | None] = {}
    for record in records:
        tiers = [tier for tier in record["tiers"].get(chosen, ()) if tier != ALL]
        found[record["episode_id"]] = min(tiers, default=None)
    return found


def set_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the lines of ``episodes.jsonl`` ask for, with its table and split."""
    tiers = tiers_of(list(read_lines(folder / EPISODE_LINES)))
    for record in read_lines(folder / EPISODE_LINES):
        for table, row in episode_rows(record, tiers[record["episode_id"]]):
            yield SPLIT, table, row
    if (folder / PICTURE_LINES).is_file():
        for line in read_lines(folder / PICTURE_LINES):
            table = THUMBNAILS if line["kind"] == "thumbnail" else PICTURES
            picture: PictureCell = {"path": line["file"], "sha256": line["sha256"]}
            yield SPLIT, table, row_of(table, {**line, "image": picture})


def episode_rows(record: Json, tier: str | None) -> Iterator[Part]:
    """Yield the rows that a line of ``episodes.jsonl`` adds to the tables, with their table."""
    script = EntityEpisode.model_validate(record["entry"])
    view = view_of(str(record["episode_id"]), script)
    for table, part in _parts(view, record, tier):
        yield table, row_of(table, {"episode_id": view.episode_id, **part})


def _parts(view: EpisodeView, record: Json, tier: str | None) -> Iterator[Part]:
    labels = [type_of_label(label) for label in view.script.entity_descriptions]
    yield (
        EPISODES,
        {
            "tier": tier,
            "splits": [
                f"{name}:{one}" for name, tiers in sorted(record["tiers"].items()) for one in sorted(tiers)
            ],
            "story_overview": view.script.story_overview,
            "scenes": len(view.script.scenes),
            "shots": len(view.shots),
            **{name: labels.count(kind) for name, kind in zip(_COUNTS, TYPES, strict=True)},
            "slots": sum(len(shot.scheduled.names(kind)) for shot in view.shots for kind in TYPES),
            "source": record["source"],
            "window_shot_ids": list(view.script.window_shot_ids or ()),
        },
    )
    yield from _scenes(view)
    numbers = {key: dict(zip(shots[1:], shots, strict=False)) for key, shots in view.appearances.items()}
    for number, shot in enumerate(view.shots, 1):
        yield SHOTS, _shot(view, number, shot)
    yield from _entities(view)
    for number, shot in enumerate(view.shots, 1):
        described = {line.name for line in view.headers[number - 1].lines if not line.decorated}
        for name, kind in LISTS.items():
            for place, entity in enumerate(shot.scheduled.names(kind), 1):
                before = numbers[kind, entity].get(number)
                yield (
                    SLOTS,
                    {
                        "shot": number,
                        "list": name,
                        "place": place,
                        "name": entity,
                        "label": next(iter(view.labels.get(entity, ())), None),
                        "gap": None if before is None else number - before,
                        "described": entity in described,
                    },
                )


_COUNTS = ("characters", "locations", "objects")


def _scenes(view: EpisodeView) -> Iterator[Part]:
    first = 1
    for place, scene in enumerate(view.script.scenes, 1):
        shots = max(len(scene.action_descriptions), len(scene.video_prompts))
        yield (
            SCENES,
            {
                "scene": place if scene.scene_num is None else scene.scene_num,
                "first_shot": first,
                "shots": shots,
                "cuts": sum(scene.cut),
            },
        )
        first += shots


def _shot(view: EpisodeView, number: int, shot: EpisodeShot) -> dict[str, Json]:
    return {
        "shot": number,
        "key": shot.key,
        "scene": shot.scene,
        "cut": shot.cut,
        "action_description": shot.action,
        "video_prompt": shot.prompt,
        "header": bool(view.headers[number - 1].lines),
        **{name: list(shot.scheduled.names(kind)) for name, kind in LISTS.items()},
    }


def _entities(view: EpisodeView) -> Iterator[Part]:
    shown: dict[str, list[int]] = {}
    for (_, name), numbers in view.appearances.items():
        shown[name] = sorted({*shown.get(name, ()), *numbers})
    for label, entry in sorted(view.script.entity_descriptions.items(), key=lambda one: _rank(one[0])):
        name = entry.name or ""
        shots = shown.get(name, [])
        steps = [after - before for before, after in pairwise(shots)]
        row = {
            "label": label,
            "type": type_of_label(label) or view.type_of(name),
            "name": entry.name,
            "description": entry.description,
            "appearances": len(shots),
            "first_shot": min(shots, default=None),
            "max_gap": max(steps, default=None),
        }
        yield ENTITIES, row


def _rank(label: str) -> tuple[int, int, str]:
    """Sort labels by type and number; labels of another form come last."""
    kind = type_of_label(label)
    return (
        (len(TYPES), 0, label) if kind is None else (TYPES.index(kind), int(label.partition(" ")[2]), label)
    )

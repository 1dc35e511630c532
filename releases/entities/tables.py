"""The flat tables of released episodes: episodes, scenes, shots, entities, and slots of the schedule."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...schemas.canonical import Json
from ...schemas.entities import ALL, LISTS, TYPES, EntityEpisode, type_of_label
from ...validators.entities.view import EpisodeView, view_of
from ..tables import Declared, PictureCell, PlacedRow, Table, read_lines, row_of, table
from .pictures import PICTURES as PICTURE_LINES
from .tree import EPISODES as EPISODE_LINES

SPLIT = "test"
"""The one split that ``datasets`` sees: nothing in it is for training. Tiers are a column."""

Part = tuple[Table, dict[str, Any]]


_OF_EPISODE = {"episode_id": ("episodes", "episode_id")}
_EPISODE: Declared = ("episode_id", "text", "The episode.")
_SHOT: Declared = ("shot", "integer", "Number of the shot in the episode, from 1.")

EPISODES = table(
    "episodes", "One row per episode.", "episode_id",
    ("episode_id", "text", "Id of the episode, which names its files."),
    ("tier", "text", "Its tier in the split file that names most episodes; null in none."),
    ("splits", "texts", "Every split file and tier that names it, as file:tier."),
    ("story_overview", "text", "The story in two to four sentences.", "script.story_overview"),
    ("scenes", "integer", "How many scenes it has."),
    ("shots", "integer", "How many shots."),
    ("characters", "integer", "Labels of characters in its registry."),
    ("locations", "integer", "Labels of locations in its registry."),
    ("objects", "integer", "Labels of objects in its registry."),
    ("slots", "integer", "Slots of its schedule."),
    ("source", "text", "What it was made from, by name; null where nobody said."),
    ("window_shot_ids", "texts", "Ids of the source's shots, one per shot."),
)  # fmt: skip
SCENES = table(
    "scenes", "One row per scene.", "episode_id scene",
    _EPISODE,
    ("scene", "integer", "Number of the scene, from 1."),
    ("first_shot", "integer", "Number of its first shot in the episode."),
    ("shots", "integer", "How many shots it has."),
    ("cuts", "integer", "How many of them are cuts."),
    references=_OF_EPISODE,
)  # fmt: skip
SHOTS = table(
    "shots", "One row per shot.", "episode_id shot",
    _EPISODE,
    _SHOT,
    ("key", "text", "The shot as the schedule names it: scene:shot, both from 1.", "shown.key"),
    ("scene", "integer", "Number of its scene.", "shown.scene"),
    ("cut", "boolean", "Whether it begins anew; false where it continues the one before.", "shown.cut"),
    ("action_description", "text", "What happens in it.", "shown.action"),
    ("video_prompt", "text", "What a generator is given.", "shown.prompt"),
    ("header", "boolean", "Whether the prompt describes entities before the action."),
    ("characters", "texts", "Names of the characters that it shows."),
    ("places", "texts", "Names of the locations that it shows."),
    ("objects", "texts", "Names of the objects that it shows."),
    references=_OF_EPISODE,
)  # fmt: skip
ENTITIES = table(
    "entities", "One row per entity of a registry.", "episode_id label",
    _EPISODE,
    ("label", "text", "Its label, such as Object 7."),
    ("type", "text", "character, location or object; null where neither label nor schedule tell."),
    ("name", "text", "How texts and the schedule name it.", "entry.name"),
    ("description", "text", "What it looks like.", "entry.description"),
    ("appearances", "integer", "Shots that schedule its name."),
    ("first_shot", "integer", "The first of them; null for one that is never scheduled."),
    ("max_gap", "integer", "Widest difference of numbers of consecutive ones; null below two."),
    references=_OF_EPISODE,
)  # fmt: skip
SLOTS = table(
    "slots", "One row per entity that a shot shows.", "episode_id shot list place",
    _EPISODE,
    _SHOT,
    ("list", "text", "The list of the schedule: characters, places or objects."),
    ("place", "integer", "Its place in the list, from 1."),
    ("name", "text", "Name of the entity."),
    ("label", "text", "Its label in the registry; null where the registry has no such name."),
    ("gap", "integer", "Difference to the number of the shot before that shows it; null at first."),
    ("described", "boolean", "Whether the prompt of the shot describes it under its name."),
    references=_OF_EPISODE,
)  # fmt: skip
PICTURES = table(
    "pictures", "One row per keyframe of a shot, and per crop of a person, as far as they may be given away.",
    "episode_id file",
    _EPISODE,
    ("kind", "text", "keyframe or crop."),
    ("shot", "integer", "Number of the shot in the episode, from 1; null outside it."),
    ("label", "text", "Label of the entity that a crop shows."),
    ("number", "integer", "Its place among those of its shot or entity, from 1."),
    ("file", "text", "Path of the picture in the release."),
    ("video", "text", "The video that it is from, by name."),
    ("rights", "text", "On what ground it may be used."),
    ("image", "picture", "The picture, byte for byte."),
    references=_OF_EPISODE, optional=True,
)  # fmt: skip
THUMBNAILS = table(
    "thumbnails", "One row per episode with pictures: a small one of its first shot, and the video by name.",
    "episode_id",
    _EPISODE,
    ("file", "text", "Path of the picture in the release."),
    ("video", "text", "The video that the episode is from, by name; the release does not hold it."),
    ("rights", "text", "On what ground the picture may be used."),
    ("image", "picture", "The picture, byte for byte."),
    references=_OF_EPISODE, optional=True,
)  # fmt: skip
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
        for made, row in episode_rows(record, tiers[record["episode_id"]]):
            yield SPLIT, made, row
    if (folder / PICTURE_LINES).is_file():
        for line in read_lines(folder / PICTURE_LINES):
            made = THUMBNAILS if line["kind"] == "thumbnail" else PICTURES
            picture: PictureCell = {"path": line["file"], "sha256": line["sha256"]}
            yield SPLIT, made, row_of(made, {**line, "image": picture})


def episode_rows(record: Json, tier: str | None) -> Iterator[Part]:
    """Yield the rows that a line of ``episodes.jsonl`` adds to the tables, with their table."""
    script = EntityEpisode.model_validate(record["entry"])
    view = view_of(str(record["episode_id"]), script)
    for made, part in _parts(view, record, tier):
        yield made, row_of(made, {"episode_id": view.episode_id, **part})


def _parts(view: EpisodeView, record: Json, tier: str | None) -> Iterator[Part]:
    """Yield what makes each row of an episode."""
    labels = [type_of_label(label) for label in view.script.entity_descriptions]
    episode = {
        "tier": tier,
        "splits": [
            f"{name}:{one}" for name, tiers in sorted(record["tiers"].items()) for one in sorted(tiers)
        ],
        "script": view.script,
        "scenes": len(view.script.scenes),
        "shots": len(view.shots),
        **{name: labels.count(kind) for name, kind in zip(_COUNTS, TYPES, strict=True)},
        "slots": sum(len(shot.scheduled.names(kind)) for shot in view.shots for kind in TYPES),
        "source": record["source"],
        "window_shot_ids": list(view.script.window_shot_ids or ()),
    }
    yield EPISODES, episode
    first = 1
    for place, scene in enumerate(view.script.scenes, 1):
        shots = max(len(scene.action_descriptions), len(scene.video_prompts))
        number = place if scene.scene_num is None else scene.scene_num
        yield SCENES, {"scene": number, "first_shot": first, "shots": shots, "cuts": sum(scene.cut)}
        first += shots
    for number, shot in enumerate(view.shots, 1):
        names = {name: list(shot.scheduled.names(kind)) for name, kind in LISTS.items()}
        yield SHOTS, {"shot": number, "shown": shot, "header": bool(view.headers[number - 1].lines), **names}
    yield from _entities(view)
    yield from _slots(view)


_COUNTS = ("characters", "locations", "objects")


def _entities(view: EpisodeView) -> Iterator[Part]:
    shown: dict[str, list[int]] = {}
    for (_, name), numbers in view.appearances.items():
        shown[name] = sorted({*shown.get(name, ()), *numbers})
    for label, entry in sorted(view.script.entity_descriptions.items(), key=lambda one: _rank(one[0])):
        name = entry.name or ""
        shots = shown.get(name, [])
        steps = [after - before for before, after in pairwise(shots)]
        kind = type_of_label(label) or view.type_of(name)
        counts = {"first_shot": min(shots, default=None), "max_gap": max(steps, default=None)}
        yield ENTITIES, {"label": label, "type": kind, "entry": entry, "appearances": len(shots), **counts}


def _slots(view: EpisodeView) -> Iterator[Part]:
    numbers = {key: dict(zip(shots[1:], shots, strict=False)) for key, shots in view.appearances.items()}
    for number, shot in enumerate(view.shots, 1):
        described = {line.name for line in view.headers[number - 1].lines if not line.decorated}
        for name, kind in LISTS.items():
            for place, entity in enumerate(shot.scheduled.names(kind), 1):
                before = numbers[kind, entity].get(number)
                slot = {"shot": number, "list": name, "place": place, "name": entity}
                label = next(iter(view.labels.get(entity, ())), None)
                gap = None if before is None else number - before
                yield SLOTS, {**slot, "label": label, "gap": gap, "described": entity in described}


def _rank(label: str) -> tuple[int, int, str]:
    """Sort labels by type and number; labels of another form come last."""
    kind = type_of_label(label)
    return (
        (len(TYPES), 0, label) if kind is None else (TYPES.index(kind), int(label.partition(" ")[2]), label)
    )

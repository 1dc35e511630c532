"""A bank of drawn entities for tests of what is made of banks: every picture is known, no model is asked.

It is written as ``fabula memory build`` leaves one. What is a part of something else the caller says; all
else has pictures of its own.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..models.generators.drawn.figures import draw_scene
from ..models.generators.drawn.scene import DrawnScene, Mark, MarkKind
from ..releases.entities.tree import read_entity_set
from ..schemas.canonical import pretty_bytes, sha256_bytes
from ..studies.memory.bank import (
    BANK,
    CUTOUT,
    ENTITY,
    EPISODE,
    LABELLED,
    PANORAMA,
    PORTRAIT,
    EntityRecord,
    EpisodeRecord,
    Owner,
)
from ..studies.memory.pictures import cut_by_colour, png_bytes, thirds_of
from ..studies.memory.scripts import ScriptEntity, script_of

if TYPE_CHECKING:
    from PIL.Image import Image

GREEN = (0, 177, 64)
SIDE = 256
"""Sides of a portrait, in pixels."""


def write_bank(
    episodes: Path, folder: Path, owners: Mapping[str, Owner] | None = None,
    without: Collection[str] = (),
) -> Path:  # fmt: skip
    """Write the bank of a set of episodes into a folder, and return that folder.

    ``owners``: name of an object -> whose picture shows it.
    """
    entity_set, _ = read_entity_set(episodes, rules=False)
    for episode in entity_set.episodes:
        script = script_of(episode.episode_id, episode.script)
        root = folder / BANK / episode.episode_id
        names = []
        for number, entity in enumerate(script.entities, 1):
            names.append(f"{number:02d}")
            owner = (owners or {}).get(entity.name)
            wanted = owner is None and entity.name not in without
            pictures = draw_entity(entity) if wanted else {}
            _write(root / names[-1], episode.episode_id, entity, owner, pictures)
        record = EpisodeRecord(
            episode_id=episode.episode_id, overview=script.overview, entities=tuple(names),
            unregistered=script.unregistered, unscheduled=script.unscheduled,
        )  # fmt: skip
        (root / EPISODE).write_bytes(pretty_bytes(record.as_json()))
    return folder


def draw_entity(entity: ScriptEntity) -> "dict[str, Image]":
    """Return the pictures of an entity, by the names of their files."""
    kind: MarkKind = "place" if entity.type == "location" else entity.type
    mark = Mark(kind=kind, text=entity.name)
    if entity.type == "location":
        panorama = draw_scene(DrawnScene(form="panorama", marks=(mark,)), (1536, 512)).canvas.image
        return {PANORAMA: panorama, **{f"{view}.png": third for view, third in thirds_of(panorama).items()}}
    scene = DrawnScene(form="portrait", marks=(mark,), ground="#00b140")
    portrait = draw_scene(scene, (SIDE, SIDE)).canvas.image
    labelled = portrait.copy()
    return {PORTRAIT: portrait, LABELLED: labelled, CUTOUT: cut_by_colour(portrait, GREEN).image}


def _write(
    folder: Path, episode_id: str, entity: ScriptEntity, owner: Owner | None, pictures: "Mapping[str, Image]"
) -> None:
    folder.mkdir(parents=True)
    hashes = {}
    for name, image in pictures.items():
        data = png_bytes(image)
        (folder / name).write_bytes(data)
        hashes[name] = sha256_bytes(data)
    cutout = pictures.get(CUTOUT)
    status = "verified" if pictures else "part_of" if owner is not None else "text_only"
    record = EntityRecord(
        episode_id=episode_id, type=entity.type, name=entity.name, label=entity.label, owner=owner,
        first_shot="1:1", description=entity.description, described_by=entity.described_by,
        made="generated" if pictures else "words", status=status,
        bounds=None if cutout is None else cutout.getchannel("A").getbbox(), files=hashes,
    )  # fmt: skip
    (folder / ENTITY).write_bytes(pretty_bytes(record.as_json()))

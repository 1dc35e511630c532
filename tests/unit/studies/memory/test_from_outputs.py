"""References cut from a method's own videos, instead of being made before."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.builders.entities.building import EntityOptions, build_entities
from fabula.models.generators.drawn.codes import code_of
from fabula.models.generators.drawn.reading import codes_in
from fabula.releases.entities.tree import read_entity_set
from fabula.studies.memory.bank import Bank, read_bank
from fabula.studies.memory.pipeline import MemoryOptions, build_memory
from fabula.studies.memory.shots.exports import read_packets
from fabula.studies.memory.shots.generate_shots import last_frame
from fabula.studies.memory.shots.generating import ShotOptions, generate_shots, place_videos
from fabula.studies.memory.shots.packets import EntityInPacket
from fabula.studies.memory.shots.pipeline import PacketOptions, make_packets
from fabula.testing.drawn_episode import write_episode
from fabula.testing.drawn_videos import write_frames
from fabula.testing.written_episodes import SHOTS, write_episodes, written_episode

if TYPE_CHECKING:
    from PIL.Image import Image

pytest.importorskip("av")
COLOURS = {"001_002": (200, 40, 40), "002_001": (40, 40, 200), "002_002": (40, 160, 40)}
"""Shots that have a video, and the colour of their first frame; the first shot has none."""


def first(colour: tuple[int, int, int]) -> "Image":
    """A frame of a colour whose left half is half as bright."""
    from PIL import Image

    image = Image.new("RGB", (192, 64), colour)
    image.paste(tuple(part // 2 for part in colour), (0, 0, 96, 64))
    return image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from PIL import Image

    write_episodes(tmp_path / "set", [written_episode("ep_a", SHOTS[:4])])
    videos = tmp_path / "my-model" / "ep_a"
    videos.mkdir(parents=True)
    for name, colour in COLOURS.items():
        frames = [first(colour), *[Image.new("RGB", (192, 64))] * 5]
        write_frames(videos / f"{name}.mp4", [np.asarray(frame) for frame in frames])
    return tmp_path


def built(folder: Path, **given: Any) -> Bank:
    options = MemoryOptions(
        from_outputs=folder / "my-model", workers=0, created_at="2026-01-01T00:00:00Z", **given
    )
    build_memory(folder / "set", folder / "run", options)
    return read_bank(folder / "run")


def colour_of(bank: Bank, kind: str, name: str, file: str = "portrait.png") -> tuple[int, ...]:
    from PIL import Image

    entry = bank.entry("ep_a", kind, name)  # type: ignore[arg-type]
    assert entry is not None
    path = entry.file(file)
    assert path is not None, entry.record.reason
    with Image.open(path) as image:
        pixel = image.getpixel((image.width - 8, image.height // 2))
    assert isinstance(pixel, tuple)
    return tuple(int(part) for part in pixel)


def near(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Videos do not keep colours exactly."""
    return all(abs(one - other) <= 12 for one, other in zip(found, wanted, strict=True))


def test_reference_when_outputs_are_given_is_the_first_frame_of_the_first_shot_that_has_a_video(
    folder: Path,
) -> None:
    bank = built(folder)
    # Shot 1:1, Ana's first, has no video: hers is from 1:2, as Ben's is, whose first it is.
    for name in ("Ana", "Ben"):
        assert near(colour_of(bank, "character", name), COLOURS["001_002"])
    garden = bank.entry("ep_a", "location", "The Garden")
    assert garden is not None and garden.record.cropped is not None
    assert garden.record.cropped.shot == "2:1" and garden.record.cropped.method == "my-model"
    assert {"panorama.png", "left.png", "centre.png", "right.png"} == set(garden.record.files)
    assert near(colour_of(bank, "location", "The Garden", "right.png"), COLOURS["002_001"])
    assert garden.record.status == "unverified" and garden.record.made == "outputs"


def test_reference_when_a_box_is_given_is_cut_by_it(folder: Path) -> None:
    from PIL import Image

    boxes = folder / "boxes.jsonl"
    row = {"episode_id": "ep_a", "shot": "1:2", "type": "character", "name": "Ana", "box": [0, 0.25, 0.5, 1]}
    boxes.write_text(json.dumps(row) + "\n", "utf-8")
    bank = built(folder, boxes=boxes)
    ana = bank.entry("ep_a", "character", "Ana")
    assert ana is not None and ana.record.cropped is not None and ana.record.cropped.box == (0, 0.25, 0.5, 1)
    with Image.open(ana.folder / "portrait.png") as image:
        assert image.size == (96, 48)
    assert near(colour_of(bank, "character", "Ana"), tuple(part // 2 for part in COLOURS["001_002"]))


# From a drawn film to an episode, its bank, its packets and its videos: everybody is in every shot.

pytest.importorskip("av")
FILM_SHOTS = ("AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1", "BC2", "A3", "D1", "AD2")
CREATED = "2026-01-01T00:00:00Z"


def name_of(entity: EntityInPacket) -> str:
    return entity.entity.partition(":")[2]


@pytest.mark.slow
def test_film_when_taken_through_the_memory_has_everybody_in_every_packet_and_video(tmp_path: Path) -> None:
    write_episode(tmp_path, FILM_SHOTS)
    film, built = tmp_path / "film.mp4", tmp_path / "episodes"
    build_entities(
        film, built,
        EntityOptions(
            detections=tmp_path / "film.jsonl", workers=0, created_at=CREATED,
            settings=("detect_shots.method=histogram", "filter_shots.copies=false"),
        ),
    )  # fmt: skip
    (episode,) = read_entity_set(built)[0].episodes
    schedule = episode.script.entity_schedule or {}
    sizes = ("draw_references.portrait=[256,320]", "draw_references.square=[256,256]")
    memory = MemoryOptions(
        image="image:drawn:faithful", candidates=1, workers=0, created_at=CREATED, settings=sizes
    )
    build_memory(built, tmp_path / "memory", memory)
    bank = read_bank(tmp_path / "memory")
    assert {entry.record.status for one in bank.episodes for entry in one.entries} == {"verified"}
    make_packets(
        tmp_path / "memory", tmp_path / "packets", PacketOptions(workers=0, created_at=CREATED), built
    )
    packets = [placed.packet for placed in read_packets(tmp_path / "packets")]
    assert [packet.shot for packet in packets] == list(schedule)
    for packet, scheduled in zip(packets, schedule.values(), strict=True):
        wanted = (*scheduled.characters, *scheduled.objects, *scheduled.places)
        assert sorted(map(name_of, packet.entities)) == sorted(wanted)
        assert packet.lost == packet.unregistered == ()
    generate_shots(
        tmp_path / "packets", tmp_path / "shots",
        ShotOptions(model="video:drawn:faithful", seconds=1.0, workers=0, created_at=CREATED),
    )  # fmt: skip
    done = place_videos(tmp_path / "shots", tmp_path / "outputs")
    assert done.outcomes == {"made": len(packets)}
    for packet in packets:
        video = done.outputs / packet.episode_id / f"{packet.name}.mp4"
        _, png = last_frame(video.read_bytes(), "mp4")
        assert {code_of(name_of(entity)) for entity in packet.entities} <= codes_in(png), packet.shot

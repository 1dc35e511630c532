"""From a drawn film to an episode, its bank, its packets and its videos: everybody is in every shot."""

from pathlib import Path

import pytest

from fabula.builders.entities.building import EntityOptions, build_entities
from fabula.generation.memory.bank import read_bank
from fabula.generation.memory.pipeline import MemoryOptions, build_memory
from fabula.generation.memory.shots.generate_shots import last_frame
from fabula.generation.memory.shots.generating import ShotOptions, generate_shots, place_videos
from fabula.generation.memory.shots.packets import EntityInPacket
from fabula.generation.memory.shots.pipeline import PacketOptions, make_packets
from fabula.generation.memory.shots.place_packets import read_packets
from fabula.models.generators.drawn.codes import code_of
from fabula.models.generators.drawn.reading import codes_in
from fabula.releases.entities.tree import read_entity_set
from fabula.testing.drawn_episode import write_episode

pytest.importorskip("av")
SHOTS = ("AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1", "BC2", "A3", "D1", "AD2")
CREATED = "2026-01-01T00:00:00Z"


def name_of(entity: EntityInPacket) -> str:
    return entity.entity.partition(":")[2]


def test_film_when_taken_through_the_memory_has_everybody_in_every_packet_and_video(tmp_path: Path) -> None:
    write_episode(tmp_path, SHOTS)
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

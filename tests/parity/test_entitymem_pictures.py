"""Published episodes with drawn pictures, one of each tier: from registry to packets, nobody is lost."""

from pathlib import Path

import pytest

from fabula.generation.memory.bank import read_bank
from fabula.generation.memory.pipeline import MemoryOptions, build_memory
from fabula.generation.memory.shots.pipeline import PacketOptions, make_packets
from fabula.generation.memory.shots.place_packets import read_packets

pytestmark = pytest.mark.parity
CREATED = "2026-01-01T00:00:00Z"
TIERS = ("hard", "medium", "easy")
SIZES = ("draw_references.portrait=[256,320]", "draw_references.square=[256,256]")


@pytest.mark.waits
@pytest.mark.parametrize("tier", TIERS)
def test_published_episode_when_drawn_has_every_scheduled_entity_in_its_packets(
    reference: Path, tmp_path: Path, tier: str
) -> None:
    published, memory, out = reference / "entitybench", tmp_path / "memory", tmp_path / "packets"
    build_memory(
        published, memory,
        MemoryOptions(
            image="image:drawn:faithful", candidates=1, tier=(tier,), limit=1, workers=0,
            created_at=CREATED, settings=SIZES,
        ),
    )  # fmt: skip
    (banked,) = read_bank(memory).episodes
    pictured = {
        f"{entry.record.type}:{entry.record.name}"
        for entry in banked.entries if entry.record.status == "verified"
    }  # fmt: skip
    chosen = PacketOptions(tier=(tier,), limit=1, workers=0, created_at=CREATED)
    make_packets(memory, out, chosen, published)
    packets = [placed.packet for placed in read_packets(out)]
    assert len(packets) >= 5 and {packet.episode_id for packet in packets} == {banked.record.episode_id}
    for packet in packets:
        assert packet.lost == ()
        for entity in packet.entities:
            words = {"header", "bank", "name", "action"} & set(entity.by)
            assert words, entity
            if entity.entity in pictured:
                assert "keyframe" in entity.by, entity
                assert entity.entity.partition(":")[0] != "character" or "portrait" in entity.by
    assert pictured >= {
        entity.entity for packet in packets for entity in packet.entities
        if entity.entity.startswith(("character:", "location:")) and entity.entity not in packet.unregistered
    }  # fmt: skip

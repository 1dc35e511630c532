"""Layouts and packets of EntityBench's 140 episodes by rules: all valid, and no scheduled entity lost."""

from collections import Counter
from pathlib import Path

import pytest

from fabula.releases.entities.tree import read_entity_set
from fabula.studies.memory.bank import read_bank
from fabula.studies.memory.pipeline import MemoryOptions, build_memory
from fabula.studies.memory.shots.exports import read_packets
from fabula.studies.memory.shots.layout import ShotLayout, cast_of, goes_on, plain_layout
from fabula.studies.memory.shots.packets import (
    Condition,
    KnownEntities,
    KnownEntity,
    KnownPicture,
    Packet,
    known_entities,
    packet_of,
    scripted_shots,
)
from fabula.studies.memory.shots.pipeline import PacketOptions, make_packets
from fabula.studies.memory.shots.plan_layouts import layout_faults
from fabula.validators.entities.view import view_of

pytestmark = [pytest.mark.slow, pytest.mark.parity]
USES = {"character": ("labelled", "cutout"), "object": ("cutout",), "location": ("left", "centre", "right")}


def pictured(known: KnownEntities) -> KnownEntities:
    """The same entities as if all of them had pictures; nobody opens any."""

    def with_pictures(entity: KnownEntity) -> KnownEntity:
        pictures = {use: KnownPicture(path=use, sha256=use) for use in USES[entity.type]}
        return entity.model_copy(update={"pictures": pictures, "status": "verified"})

    return KnownEntities(entities=tuple(map(with_pictures, known.entities)))


def as_if_composed(layout: ShotLayout) -> list[dict[str, object]]:
    return [
        {
            "file": f"{number}.png", "shows_place": frame.location is not None,
            "boxes": {
                **{f"character:{standing.name}": [0, 0, 1, 1] for standing in frame.characters},
                **{f"object:{thing.name}": [0, 0, 1, 1] for thing in frame.objects},
            },
        }
        for number, frame in enumerate(layout.keyframes)
    ]  # fmt: skip


@pytest.mark.parametrize("has_pictures", [False, True])
def test_packets_of_published_episodes_when_made_by_rules_lose_no_scheduled_entity(
    reference: Path, has_pictures: bool
) -> None:
    counts: Counter[str] = Counter()
    means: Counter[str] = Counter()
    unregistered: set[tuple[str, str]] = set()
    for episode in read_entity_set(reference / "entitybench")[0].episodes:
        counts["episodes"] += 1
        known = known_entities(episode.episode_id, episode.script, None)
        known = pictured(known) if has_pictures else known
        packet: Packet | None = None
        for scripted in scripted_shots(view_of(episode.episode_id, episode.script)):
            goes = packet is not None and goes_on(scripted.shot, scripted.before)
            cast = cast_of(scripted.shot, known.alone, packet.layout.state if goes and packet else None)
            layout = plain_layout(cast)
            assert layout_faults(layout, cast) == []
            composed = as_if_composed(layout) if has_pictures else [None] * len(layout.keyframes)
            packet = packet_of(scripted, known, layout, composed, Condition())
            assert packet.lost == ()
            counts["shots"] += 1
            counts["slots"] += len(packet.entities)
            counts["without description"] += len(packet.unregistered)
            counts["going on"] += packet.first_frame is not None
            unregistered |= {(episode.episode_id, key) for key in packet.unregistered}
            for entity in packet.entities:
                means.update(entity.by)
                counts["by picture"] += bool({"portrait", "keyframe"} & set(entity.by))
                counts["by words"] += bool({"header", "bank", "name", "action"} & set(entity.by))
    # 57 slots are of entities that no registry has; they are 53 entities.
    assert counts == {
        "episodes": 140, "shots": 2491, "slots": 11437, "without description": 57, "going on": 1355,
        "by picture": 11437 if has_pictures else 0, "by words": 11437,
    }  # fmt: skip
    assert len(unregistered) == 53
    assert means["header"] + means["bank"] == 11437 - 57
    assert means["portrait"] == (sum_of_characters(reference) if has_pictures else 0)


def sum_of_characters(reference: Path) -> int:
    episodes = read_entity_set(reference / "entitybench")[0].episodes
    return sum(len(shot.scheduled.characters) for episode in episodes for shot in episode.script.shots())


# Published episodes with drawn pictures, one of each tier: from registry to packets, nobody is lost.

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

"""EntityBench's public code and ours on the same crops: requests part by part, replies value by value."""

import base64
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.stage import BadReply, Item, Tools
from fabula.evaluation.entities import judging
from fabula.evaluation.entities.archived import CRITERIA
from fabula.evaluation.entities.grids import draw_grids
from fabula.evaluation.entities.judging import EpisodeJudgeSettings, LocationSettings, objects_named
from fabula.evaluation.entities.looking import GridSettings
from fabula.evaluation.entities.requests import budget_of, for_methods
from fabula.evaluation.judging.packets import GivenPacket
from fabula.media.images import encode_image
from fabula.media.kept_files import keep_file
from fabula.models.spec import ModelSettings
from fabula.prompts.fetching import fetch_prompts
from fabula.prompts.loader import TextSet, read_set
from fabula.releases.entities.tree import read_entity_set
from fabula.schemas.canonical import sha256_bytes
from fabula.studies.memory.bank import read_bank
from fabula.studies.memory.pipeline import MemoryOptions, build_memory
from fabula.studies.memory.shots import packets as packing
from fabula.studies.memory.shots.exports import read_packets
from fabula.studies.memory.shots.layout import ShotLayout, cast_of, goes_on, plain_layout
from fabula.studies.memory.shots.pipeline import PacketOptions, layout_faults, make_packets
from fabula.validators.entities.view import view_of

from .conftest import evaluator

ENTITIES = [
    ("Ana", "character", "A {tall} woman."), ("Ben", "character", "A man in \"red\"."),
    ("The Hall", "location", "A long hall."), ("the cup", "object", "A cup."),
]  # fmt: skip
PLURAL = {"character": "characters", "location": "places", "object": "objects"}
ACTIONS = ("Ana lifts THE CUP and waves {to} Ben.", "Ben waits.")
REPLIES = {
    "fidelity": [
        '{"face": 8, "hair": "7", "clothing": null, "build": 3.5, "shape": 2, "layout": 4, "fidelity": 6}',
        'Well: {"a": {"b": 1}}', "```json\n{\"fidelity\": \"high\", \"face\": 5}\n```", "nothing", "{}",
        '{"fidelity": 9, "reason": "x"} {"fidelity": 1}', '{"fidelity": 12, "face": 2}',
    ],
    "action": [
        '{"subject_identity": 8, "object_interaction": 5, "overall": "4", "action_depicted": "no"}',
        '{"overall": 3, "action_depicted": null}', '{"motion_quality": 2}', "{broken",
    ],
    "pair": [
        '{"face": 8, "shape": 7, "similarity": 6, "is_same": true, "reason": "r"}',
        '<think>x</think>{"similarity": "5", "is_same": "false"}', '{"similarity": 2}', "no",
    ],
    "location": [
        '{"layout": 8, "consistency": 6, "all_consistent": true, "outlier_indices": []}',
        '{"consistency": "5", "all_consistent": 0, "outlier_indices": [1, 99]}', '{"layout": 3}', "[1]",
    ],
}  # fmt: skip


class Client:
    """In the place of the public code's client: keeps what is asked, and gives one reply."""

    def __init__(self) -> None:
        self.reply, self.asked = "", list[tuple[str, list[str], int]]()

    def call(self, model: str, messages: list[Any], max_tokens: int) -> str:
        ((text, *pictures),) = [message["content"] for message in messages]
        assert [message["role"] for message in messages] == ["user"]
        urls = [part["image_url"]["url"] for part in pictures]
        self.asked.append((text["text"], urls, max_tokens))
        return self.reply.strip()


@pytest.fixture
def client(reference: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client()
    monkeypatch.setattr(evaluator(reference), "_get_rotating_vlm_client", lambda: client)
    return client


@pytest.fixture
def texts(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TextSet:
    monkeypatch.setattr("fabula.prompts.fetching.cache_folder", lambda: tmp_path / "cache")
    place = reference / "official" / "entitybench"
    return read_set(fetch_prompts("entitybench", place, may_be_unlicensed=lambda _: True).folder)


class Drawn:
    """Shots with frames and crops, as the public code and as our stages have them."""

    def __init__(self, folder: Path, shots: int) -> None:
        self.folder, draw = folder, np.random.default_rng(3)
        self.frames = [draw.integers(0, 256, (5, 54, 96, 3), dtype=np.uint8) for _ in range(shots)]
        self.crops = {
            (shot, name): draw.integers(0, 256, (20 + shot, 30, 3), dtype=np.uint8)
            for shot in range(shots) for name, *_ in ENTITIES
        }  # fmt: skip
        self.boxes = {name: {0: [(4, 20, 30, 50), (1, 2, 9, 9)], 3: [(40 + n, 3, 60, 30)]}
                      for n, (name, *_) in enumerate(ENTITIES)}  # fmt: skip

    def kept(self, pixels: Any) -> str:
        data = encode_image(Image.fromarray(pixels), format="png")
        name = f"{sha256_bytes(data)}.png"
        keep_file(data, name, self.folder)
        return name

    def shot(self, number: int, action: str = "") -> dict[str, Any]:
        """A shot as our stages see it."""
        pictures = {str(index): self.kept(frame) for index, frame in enumerate(self.frames[number])}
        entities = {
            f"{kind}:{name}": {
                "status": "present", "canonical": {"file": self.kept(self.crops[number, name])},
                "boxes": {
                    str(index): [[*box, 0.9] for box in boxes] for index, boxes in self.boxes[name].items()
                },
            }
            for name, kind, _ in ENTITIES
        }  # fmt: skip
        return {
            "shot": {"key": f"1:{number + 1}", "action": action, "entities": [
                {"key": f"{kind}:{name}", "type": kind, "name": name, "description": text}
                for name, kind, text in ENTITIES
            ]},
            "grounded": {"entities": entities},
            "frames": {"invalid": None, "grid": list(range(5)), "scene": [2, 0, 4], "pictures": pictures},
        }  # fmt: skip

    def grounded(self, number: int) -> dict[str, Any]:
        """The same as the public code's grounding gives it."""
        return {"per_entity": {
            name: {
                "etype": kind, "description": text, "status": "present", "is_small": False,
                "is_low_confidence": False,
                "canonical": SimpleNamespace(clip_text_sim=0.3, frame_idx=0, crop_path=""),
                "canonical_path": str(self.folder / self.kept(self.crops[number, name])),
                "all_detections": [
                    {"frame_idx": index, "bbox": box}
                    for index, boxes in self.boxes[name].items() for box in boxes
                ],
            }
            for name, kind, text in ENTITIES
        }}  # fmt: skip


def sent(packets: Iterator[Any]) -> list[tuple[str, list[str], int]]:
    """What our packets send, in the form that the public client is called in."""
    made = []
    for packet in packets:
        assert isinstance(packet, GivenPacket)
        request = packet.request(ModelSettings(model="openai:x", temperature=None), 42)
        assert request.temperature is request.seed is request.schema is None and not request.extra
        ((text, *pictures),) = [message.parts for message in request.messages]
        urls = [f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}" for one in pictures]
        made.append((text, urls, request.max_tokens))
    return made


def ours(packet: Any, reply: str) -> Any:
    """What our reader keeps of a reply; None where it is no answer."""
    try:
        return packet.read(reply)
    except BadReply:
        return None


def tenth(value: float | None) -> float | None:
    return None if value is None else value / 10


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("action", ACTIONS)
def test_shots_when_asked_about_by_both_are_asked_and_read_alike(reference, tmp_path, client, texts, action):
    official, drawn = evaluator(reference), Drawn(tmp_path / "store", 1)
    (tmp_path / "store").mkdir()
    shot = drawn.shot(0, action)
    scheduled = {
        plural: [name for name, kind, _ in ENTITIES if kind == one] for one, plural in PLURAL.items()
    }
    tools = Tools(EpisodeJudgeSettings(texts=texts), "", store=tmp_path / "store")
    grids = Tools(GridSettings(wanted=True, drawing="code", format="png"), "", store=tmp_path / "store")
    grid = draw_grids(Item("x", shot), grids).fields["grid"]  # type: ignore[union-attr]
    fidelity = list(judging.JUDGE_FIDELITY.questions(Item("x", shot), tools))
    actions = list(judging.JUDGE_ACTIONS.questions(Item("x", {"shot": shot["shot"], "grid": grid}), tools))

    def run(reply: str) -> Any:
        client.asked.clear()
        client.reply = reply
        given = (drawn.grounded(0), list(drawn.frames[0]), action, scheduled, str(tmp_path), "m")
        return official.evaluate_intra_shot_alignment("1:1", *given)

    run("{}")
    assert sent(iter([*fidelity, *actions])) == client.asked
    for reply in REPLIES["fidelity"]:
        theirs = run(reply)["fidelity"]
        for packet, (name, kind, _) in zip(fidelity, ENTITIES, strict=True):
            their, our = theirs[kind][name], ours(packet, reply)
            if our is None:
                read = [their["overall"], *their["criteria"].values()]
                assert their["vlm_failed"] or not any(read) or "12" in reply
                continue
            kept = {key: tenth(value) for key, value in our["criteria"].items()}
            assert kept == {key: their["criteria"][key] for key in CRITERIA[kind]}  # type: ignore[index]
            if "12" not in reply:  # out of range: a departure
                assert tenth(our["overall"]) == their["overall"]
    for reply in REPLIES["action"]:
        their, our = run(reply)["action"], ours(actions[0], reply)
        if our is None:
            assert their["vlm_failed"]
            continue
        assert {key: tenth(our[key]) for key in their["criteria"]} == their["criteria"]
        assert (tenth(our["overall"]), our["depicted"]) == (their["overall"], their["action_depicted"])


@pytest.mark.slow
@pytest.mark.parity
def test_pairs_when_asked_about_by_both_are_asked_and_read_alike(reference, tmp_path, client, texts):
    official, drawn = evaluator(reference), Drawn(tmp_path / "store", 3)
    (tmp_path / "store").mkdir()
    tools = Tools(EpisodeJudgeSettings(texts=texts), "", store=tmp_path / "store")
    keys = [f"1:{number}" for number in (1, 2, 3)]
    gate = {f"{kind}:{name}": {"anchor": "1:2", "pool": keys} for name, kind, _ in ENTITIES}
    item = Item("x", {"shots": [drawn.shot(number) for number in range(3)], "gate": gate})
    packets = list(judging.JUDGE_PAIRS.questions(item, tools))

    def run(reply: str) -> list[Any]:
        client.asked.clear()
        client.reply = reply
        return [
            official.vlm_judge_entity(drawn.crops[1, name], drawn.crops[other, name], text, name, kind, "m")
            for name, kind, text in ENTITIES if kind != "location" for other in (0, 2)
        ]  # fmt: skip

    run("{}")
    assert sent(iter(packets)) == client.asked
    for reply in REPLIES["pair"]:
        for packet, their in zip(packets, run(reply), strict=True):
            our = ours(packet, reply)
            if our is None:
                assert their["reason"] == "VLM call failed"
                continue
            assert (our["same"], tenth(our["similarity"])) == (their["is_same"], their["similarity"])
            kept = {key: tenth(value) for key, value in our["criteria"].items() if value is not None}
            assert kept == their["criteria"]


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("shots", [2, 8, 11])
def test_locations_when_asked_about_by_both_are_asked_and_read_alike(
    reference: Path, tmp_path: Path, client: Client, texts: TextSet, shots: int
) -> None:
    official, drawn = evaluator(reference), Drawn(tmp_path / "store", shots)
    (tmp_path / "store").mkdir()
    tools = Tools(LocationSettings(texts=texts, definition="code"), "", store=tmp_path / "store")
    keys = [f"1:{number + 1}" for number in range(shots)]
    gate = {"location:The Hall": {"anchor": "1:2", "pool": keys}}
    item = Item("x", {"shots": [drawn.shot(number) for number in range(shots)], "gate": gate})
    (packet,) = judging.JUDGE_LOCATIONS.questions(item, tools)
    frames = [[drawn.frames[number][index] for index in (2, 0, 4)] for number in range(shots)]

    def run(reply: str) -> Any:
        client.asked.clear()
        client.reply = reply
        return official.vlm_judge_scene_set(frames, keys, "A long hall.", "The Hall", "m")

    run("{}")
    assert sent(iter([packet])) == client.asked
    for reply in REPLIES["location"]:
        their, our = run(reply) if reply != "[1]" else None, ours(packet, reply)
        if our is None:
            assert their is None or their["vlm_failed"]
            continue
        assert (our["consistent"], tenth(our["consistency"])) == (
            their["all_consistent"],
            their["consistency"],
        )
        assert {key: tenth(value) for key, value in our["criteria"].items()} == their["criteria"]
        chosen = judging.evenly(keys, 8)
        assert {chosen[(number - 1) // 2] for number in our["outliers"]} == set(their["outlier_shots"])


# -- Layouts and packets of EntityBench's 140 episodes by rules: all valid, and no scheduled entity lost

USES = {"character": ("labelled", "cutout"), "object": ("cutout",), "location": ("left", "centre", "right")}


def pictured(known: packing.KnownEntities) -> packing.KnownEntities:
    """The same entities as if all of them had pictures; nobody opens any."""

    def with_pictures(entity: packing.KnownEntity) -> packing.KnownEntity:
        pictures = {use: packing.KnownPicture(path=use, sha256=use) for use in USES[entity.type]}
        return entity.model_copy(update={"pictures": pictures, "status": "verified"})

    return packing.KnownEntities(entities=tuple(map(with_pictures, known.entities)))


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


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("has_pictures", [False, True])
def test_packets_of_published_episodes_when_made_by_rules_lose_no_scheduled_entity(reference, has_pictures):
    counts: Counter[str] = Counter()
    means: Counter[str] = Counter()
    unregistered: set[tuple[str, str]] = set()
    for episode in read_entity_set(reference / "entitybench")[0].episodes:
        counts["episodes"] += 1
        known = packing.known_entities(episode.episode_id, episode.script, None)
        known = pictured(known) if has_pictures else known
        packet: packing.Packet | None = None
        for scripted in packing.scripted_shots(view_of(episode.episode_id, episode.script)):
            goes = packet is not None and goes_on(scripted.shot, scripted.before)
            cast = cast_of(scripted.shot, known.alone, packet.layout.state if goes and packet else None)
            layout = plain_layout(cast)
            assert layout_faults(layout, cast) == []
            composed = as_if_composed(layout) if has_pictures else [None] * len(layout.keyframes)
            packet = packing.packet_of(scripted, known, layout, composed, packing.Condition())
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


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.waits
@pytest.mark.parametrize("tier", TIERS)
def test_published_episode_when_drawn_has_every_scheduled_entity_in_its_packets(reference, tmp_path, tier):
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


# -- What an evaluation of the published 140 episodes takes, counted from them and by the public evaluator


@pytest.mark.parametrize(("definition", "places", "frames"), [("paper", 1789, 22_419), ("code", 389, 12_455)])
def test_budget_when_the_set_is_the_published_one_has_the_known_counts(reference, definition, places, frames):
    whole, _ = read_entity_set(reference / "entitybench", rules=False)
    locations = LocationSettings(definition=definition, judges=("openai:some-judge",))
    budget = budget_of(whole, (1, 2, 3), definition, locations)
    assert (budget.episodes, budget.shots, budget.crops) == (140, 2491, 11_437)
    assert budget.calls == {"fidelity": 11_437, "action": 2491, "pair": 6063, "location": places}
    assert budget.frames == frames
    assert budget.queries == frames // 2491 * 11_437
    assert for_methods(budget, 2, {}).calls["pair"] == 2 * 6063
    assert budget_of(whole, (1,), definition, locations).calls == {}


def test_objects_when_the_actions_are_the_published_ones_are_named_in_1965_shots(reference: Path) -> None:
    whole, _ = read_entity_set(reference / "entitybench", rules=False)
    named = 0
    for episode in whole.episodes:
        for shot in episode.script.shots():
            entities = [{"type": "object", "name": name} for name in shot.scheduled.objects]
            named += bool(objects_named(shot.action, entities))
    assert named == 1965

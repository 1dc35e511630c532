"""EntityBench's public code and ours on the same crops: requests part by part, replies value by value."""

import base64
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.stage import BadReply, Item, Tools
from fabula.evaluation.entities import judging
from fabula.evaluation.entities.facts import CRITERIA
from fabula.evaluation.entities.judging import EpisodeJudgeSettings, LocationSettings
from fabula.evaluation.entities.looking import draw_grids
from fabula.evaluation.entities.looking.settings import GridSettings
from fabula.evaluation.judging.packets import GivenPacket
from fabula.media.images import encode_image
from fabula.media.kept_files import keep_file
from fabula.models.spec import ModelSettings
from fabula.prompts.fetching import fetch_prompts
from fabula.prompts.sets import TextSet, read_set
from fabula.schemas.canonical import sha256_bytes

pytestmark = [pytest.mark.slow, pytest.mark.parity]

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


@cache
def evaluator(reference: Path) -> ModuleType:
    path = reference / "official" / "entitybench" / "eval" / "evaluate_benchmark.py"
    spec = importlib.util.spec_from_file_location("official_entitybench_requests", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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


@pytest.mark.parametrize("action", ACTIONS)
def test_shots_when_asked_about_by_both_are_asked_and_read_alike(
    reference: Path, tmp_path: Path, client: Client, texts: TextSet, action: str
) -> None:
    official, drawn = evaluator(reference), Drawn(tmp_path / "store", 1)
    (tmp_path / "store").mkdir()
    shot = drawn.shot(0, action)
    scheduled = {
        plural: [name for name, kind, _ in ENTITIES if kind == one] for one, plural in PLURAL.items()
    }
    tools = Tools(EpisodeJudgeSettings(texts=texts), "", store=tmp_path / "store")
    grids = Tools(GridSettings(wanted=True, drawing="code", format="png"), "", store=tmp_path / "store")
    grid = draw_grids.run(Item("x", shot), grids).fields["grid"]  # type: ignore[union-attr]
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


def test_pairs_when_asked_about_by_both_are_asked_and_read_alike(
    reference: Path, tmp_path: Path, client: Client, texts: TextSet
) -> None:
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

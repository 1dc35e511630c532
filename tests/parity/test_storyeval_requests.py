"""The public code of StoryEval and ours on the same videos: all requests part by part, and all lists read."""

import base64
import io
import json
import runpy
import sys
import types
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.execute import execute
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.archive.replies import last_attempts
from fabula.evaluation.events.requests import EventOptions, events_request
from fabula.prompts.fetching import fetch_prompts
from fabula.releases.events.suites import suite_bytes
from fabula.testing.drawn import write_video
from fabula.testing.model_server import Asked, ModelServer

pytestmark = pytest.mark.parity

PROMPTS = {
    "cup.mp4": ("A {cup} falls, and then breaks.", ["A {cup} falls.", "And then the cup breaks."]),
    "dog.mp4": ("A dog runs.\nIt barks, it sleeps.", ["A dog runs.", "It barks.", "It sleeps."]),
}
FRAMES = {"cup.mp4": 22, "dog.mp4": 75}
DESCRIBED = "  Something {moves}.  "
LISTS = {  # of each prompt and vote, what is answered until one is taken
    ("cup.mp4", 0): [
        "No list.",
        "so [COMPLETE_LIST]: 1",
        "x [COMPLETE_LIST]: 0, 0\n[COMPLETE_LIST]: **1, 0**",
    ],
    ("cup.mp4", 1): ["[COMPLETE_LIST]:\n1 (it falls), 1 (it breaks)"],
    ("cup.mp4", 2): ["[complete_list]: 1, 1", "[COMPLETE_LIST]: none", "[COMPLETE_LIST]: [0,1]"],
    ("dog.mp4", 0): ["In the end [COMPLETE_LIST]: 1, 0, 1."],
    ("dog.mp4", 1): ["[COMPLETE_LIST]: 1, 0"] * 3,
    ("dog.mp4", 2): ["[COMPLETE_LIST]: event 1: 1, event 2: 0", "[COMPLETE_LIST]: 1 0 0"],
}


class Script:
    """Answers questions; each request as its texts in order, its frames in order, and what goes with it."""

    def __init__(self) -> None:
        self.asked: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)

    def answer(self, texts: list[str], frames: list[bytes], more: Mapping[str, Any]) -> str:
        vote = int(str(more["user"]).removeprefix("seed_"))
        scores = DESCRIBED.strip() in texts[1]
        # A description is asked for before the prompt is named: frames tell which video it is.
        unit = next(name for name, count in FRAMES.items() if max(min(32, count // 4), 4) == len(frames))
        said = self.asked[unit, vote, "score" if scores else "describe"]
        said.append({"texts": texts, "frames": frames, **more})
        return LISTS[unit, vote][len(said) - 1] if scores else DESCRIBED


def official_run(
    folder: Path, videos: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Run the public program as its shell script does; only its network and unused libraries are stubs."""

    def post(_: str, headers: object, json: Mapping[str, Any]) -> object:
        system, question, shown = json["messages"]
        assert [message["role"] for message in json["messages"]] == ["system", "user", "user"]
        frames = [base64.b64decode(part["image"]) for part in shown["content"]]
        more = {name: value for name, value in json.items() if name != "messages"}
        text = script.answer([system["content"], question["content"]], frames, more)
        document = {"choices": [{"message": {"content": text}}]}
        return types.SimpleNamespace(json=lambda: document)

    stubs: dict[str, dict[str, object]] = {
        "torch": {}, "decord": {"VideoReader": None, "cpu": None}, "requests": {"post": post}
    }  # fmt: skip
    for name, content in stubs.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("utils", "summarization"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    work = folder / "official"
    (work / "prompts").mkdir(parents=True)
    document = {
        name: {"prompt": text, "event_list": events, "class": []} for name, (text, events) in PROMPTS.items()
    }
    (work / "prompts" / "all.json").write_text(json.dumps(document))
    monkeypatch.chdir(work)
    code = Path(script.code)  # type: ignore[attr-defined]
    monkeypatch.syspath_prepend(str(code.parent))
    arguments = ["--eval_model_type", "gpt4o", "--prompts_file_name", "all.json", "--videos_dir", str(videos)]
    more = ["--generative_model_list", "model-x", "--output_postfix", "_final"]
    monkeypatch.setattr(sys, "argv", [str(code), *arguments, *more])
    runpy.run_path(str(code), run_name="__main__")
    for name in ("utils", "summarization"):
        sys.modules.pop(name, None)
    return dict(json.loads((work / "results" / "model-x_gpt4o_final.json").read_text()))


def our_run(folder: Path, videos: Path, script: Script) -> dict[tuple[str, int], list[int]]:
    document = {
        name: {"prompt": text, "event_list": events, "class": [f"{len(events)}_events"]}
        for name, (text, events) in PROMPTS.items()
    }
    (folder / "suite.json").write_bytes(suite_bytes(document) + b"\n")

    def answer(asked: Asked) -> str:
        first, second = asked.messages
        assert [message.role for message in asked.messages] == ["user", "user"]
        frames = [part.data for part in second.parts if not isinstance(part, str)]
        assert len(frames) == len(second.parts)
        more = {name: asked.body[name] for name in asked.body if name not in ("messages", "model")}
        return script.answer([asked.system, *map(str, first.parts)], frames, more)

    with ModelServer(answer) as server:
        options = EventOptions(
            judges=[f"{server.openai_url}#judge"], protocol="storyeval@d095e63", workers=0,
            created_at="2026-01-01T00:00:00Z",
        )  # fmt: skip
        execute(events_request(folder / "suite.json", [videos / "model-x"], folder / "run", options))
    archive = read_archive(folder / "run")
    assert archive.manifest.protocol["preset"] == {"name": "storyeval@d095e63", "departures": []}
    assert set(archive.manifest.protocol["prompts"]) == {
        f"storyeval/{name}" for name in ("system", "image_token", "describe", "score")
    }
    return {
        (one.unit, one.vote): list((one.parsed or {}).get("completion", []))
        for one in last_attempts(archive.judgements)
    }


def pixels(data: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


@pytest.mark.filterwarnings("ignore")
def test_requests_when_built_by_both_are_the_same_part_by_part(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cv2")
    monkeypatch.setattr("fabula.prompts.sets.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("fabula.prompts.fetching.cache_folder", lambda: tmp_path / "cache")
    code = reference / "official" / "storyeval"
    fetch_prompts("storyeval", code)
    videos = tmp_path / "videos"
    (videos / "model-x").mkdir(parents=True)
    for name, count in FRAMES.items():
        write_video(videos / "model-x" / name, count, size=(256, 160))
    theirs, ours = Script(), Script()
    theirs.code = code / "evaluate.py"  # type: ignore[attr-defined]
    lists = our_run(tmp_path, videos, ours)
    results = official_run(tmp_path, videos, theirs, monkeypatch)

    assert {key: len(said) for key, said in ours.asked.items()} == {
        key: len(said) for key, said in theirs.asked.items()
    }
    shown: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for key, said in theirs.asked.items():
        for their, our in zip(said, ours.asked[key], strict=True):
            frames = our.pop("frames"), their.pop("frames")
            assert our == their
            assert shown.setdefault(key[0], frames) == frames
    for mine, others in shown.values():
        for one, other in zip(mine, others, strict=True):
            assert pixels(one).shape == pixels(other).shape == (320, 512, 3)
            assert abs(pixels(one) - pixels(other)).mean() < 2
    assert lists == {
        (unit, vote): results[unit][f"output{vote}"]["completion_list"]
        for unit in PROMPTS
        for vote in range(3)
    }

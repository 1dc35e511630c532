"""StoryEval's public evaluation, driven from reply to printed rate, against ours on the file that it writes.

The interface of the judge is a stub that replies from a drawn table; asking again, lists, files, means over
votes and the summary are the public code's own.
"""

import base64
import importlib.util
import io
import json
import re
import runpy
import sys
import types
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.execute import execute
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.archive.replies import last_attempts
from fabula.evaluation.events.judging import Results, import_results
from fabula.evaluation.events.requests import EventOptions, events_request
from fabula.evaluation.events.score import score_archive
from fabula.evaluation.events.votes import Definitions, Unreadable, parse_completion
from fabula.prompts.fetching import fetch_prompts
from fabula.releases.events.form import load_suite, suite_bytes
from fabula.testing.drawn import write_video
from fabula.testing.model_server import Asked, ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.parity]

SETS, PROMPTS = 12, 25
CLASSES = ("human", "animal", "object", "retrieval", "creative", "easy", "hard")
LINE = re.compile(r"completion average: (\S+) for (\d+) entries in class (.+), empty rate: (\S+), empty_list")


@pytest.fixture(scope="module")
def official(request: pytest.FixtureRequest) -> Iterator[tuple[ModuleType, ModuleType]]:
    """The public modules of judging and of the summary."""
    import os

    if not (root := os.environ.get("FABULA_REFERENCE")):
        pytest.skip("FABULA_REFERENCE is not set")
    folder = Path(root) / "official" / "storyeval"
    stubs = {"decord": SimpleNamespace(VideoReader=None, cpu=None), "torch": SimpleNamespace()}
    with pytest.MonkeyPatch.context() as patch:
        for name, stub in stubs.items():
            patch.setitem(sys.modules, name, stub)
        modules = []
        for name in ("utils", "summarization", "evaluate"):
            spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
            assert spec is not None and spec.loader is not None
            modules.append(importlib.util.module_from_spec(spec))
            patch.setitem(sys.modules, name, modules[-1])
            spec.loader.exec_module(modules[-1])
        yield modules[2], modules[1]


def drawn_suite(number: int) -> dict[str, Any]:
    random, suite = Random(number), {}
    for index in range(PROMPTS):
        events = [f"thing {index} does {step}" for step in range(random.randint(2, 4))]
        labels = [random.choice(CLASSES[:3]), random.choice(CLASSES[3:5]), random.choice(CLASSES[5:])]
        prompt = f"Thing {index} of set {number} moves."
        name = f"Thing_{index}_of_set_{number}_moves.mp4"
        suite[name] = {"prompt": prompt, "event_list": events, "class": labels}
    for index, label in enumerate(CLASSES):  # no class is empty
        list(suite.values())[index]["class"].append(label)
    return suite


def reply(random: Random, events: int) -> Any:
    """What the judge's interface returns: lists, lists of other lengths, prose, errors."""
    flags = ", ".join(str(random.randint(0, 1)) for _ in range(events))
    texts = [
        f"It does. [COMPLETE_LIST]: {flags}", f"[COMPLETE_LIST]: {flags}\nSo it ends.",
        f"First [COMPLETE_LIST]: 0\nthen, in the end,\n[COMPLETE_LIST]: {flags}",
        f"[COMPLETE_LIST]: [{flags}]", f"[COMPLETE_LIST]: {flags}, 1", "I cannot say.", "",
        f"COMPLETE_LIST: {flags}", f"[COMPLETE_LIST]:   {flags}  ",
    ]  # fmt: skip
    chosen = random.choices(texts, weights=[6, 3, 2, 2, 1, 1, 1, 1, 2])[0]
    if random.random() < 0.06:
        return {"error": {"code": "content_filter", "message": "refused"}}
    return {"choices": [{"message": {"content": chosen}}]}


@pytest.mark.parametrize("number", range(SETS))
def test_rates_when_judged_by_the_public_code_are_ours_from_its_file(
    official: tuple[ModuleType, ModuleType],
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    judging, summary = official
    suite, random = drawn_suite(number), Random(number)
    (tmp_path / "suite.json").write_text(json.dumps(suite, indent=4), "utf-8")
    (tmp_path / "videos" / "model").mkdir(parents=True)
    for name in suite:
        if random.random() < 0.93:
            (tmp_path / "videos" / "model" / name).touch()
    unreadable = {name for name in suite if random.random() < 0.04}

    def post(_: str, json: Any, **__: object) -> Any:
        question = json["messages"][1]["content"]
        events = question.count("thing ")
        said = reply(random, events) if events else {"choices": [{"message": {"content": "A thing moves."}}]}
        return SimpleNamespace(json=lambda: said)

    monkeypatch.setattr(judging, "requests", SimpleNamespace(post=post))
    frames = lambda _, path, *__, **___: [] if Path(path).name in unreadable else ["frame"]  # noqa: E731
    monkeypatch.setattr(judging, "load_video_by_opencv2", frames)
    out = tmp_path / "model_gpt4o_final.json"
    judging.process_videos_in_directory(
        {"api_base": "", "deployment_name": "", "api_key": ""}, tmp_path / "videos", "model",
        {name: {**entry, "event_list": entry["event_list"]} for name, entry in suite.items()}, str(out),
        None, None, None, "describe", "{}{}{}\n#" + "{}", eval_model_type="gpt4o", repeat_time=3,
    )  # fmt: skip
    capsys.readouterr()
    summary.final_summarize_helper(str(out))
    printed = {
        label.strip("[']"): (float(mean), float(empty))
        for mean, _, label, empty in LINE.findall(capsys.readouterr().out)
    }
    imported = import_results([Results(out)], load_suite(tmp_path / "suite.json"))
    (panel,) = score_archive(
        imported.archive, load_suite(tmp_path / "suite.json"), Definitions(resamples=0)
    ).panels
    assert imported.differences == ()
    for label in CLASSES:
        assert panel.classes[label].value == pytest.approx(printed[label][0], abs=1e-6)
    assert panel.classes["average"].value == pytest.approx(printed["all"][0], abs=1e-6)
    assert panel.nonresponse.value == pytest.approx(printed["all"][1], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("[COMPLETE_LIST]: 2, 0", [2, 0]),  # an event counts twice there
        ("[COMPLETE_LIST]: 0.5, 1", [0, 5, 1]),
        ("[COMPLETE_LIST]: 1 (event 2 too), 0", [1, 2, 0]),
        ("[COMPLETE_LIST]: 1, 0 out of 2", [1, 0, 2]),
        ("[COMPLETE_LIST]: yes, no\n[COMPLETE_LIST] 1, 0", []),
        ("[complete list]: 1, 0", []),
    ],
)
def test_replies_when_the_public_code_reads_other_numbers_are_known(official, text, theirs):
    """The replies on which the two readers differ: it takes any number of a line, we take flags."""
    assert official[0].get_complete_list_from_output(text) == theirs
    try:
        ours = list(parse_completion(text, 2).flags)
    except Unreadable:
        ours = []
    assert ours != theirs


# The public code of StoryEval and ours on the same videos: all requests part by part, and all lists read.

ASKED_PROMPTS = {
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
        name: {"prompt": text, "event_list": events, "class": []}
        for name, (text, events) in ASKED_PROMPTS.items()
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
        for name, (text, events) in ASKED_PROMPTS.items()
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
def test_requests_when_built_by_both_are_the_same_part_by_part(reference, tmp_path, monkeypatch):
    pytest.importorskip("cv2")
    monkeypatch.setattr("fabula.prompts.loader.cache_folder", lambda: tmp_path / "cache")
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
        for unit in ASKED_PROMPTS
        for vote in range(3)
    }

"""The public code of ViStoryBench and ours on the same pictures: requests part by part, ratings read."""

import ast
import importlib
import json
import sys
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.archive.replies import last_attempts
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions
from fabula.media.images import open_picture
from fabula.prompts.fetching import fetch_prompts
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.model_server import ModelServer
from fabula.testing.table_detector import SETTINGS

pytestmark = [pytest.mark.slow, pytest.mark.parity]

Body = Mapping[str, Any]
REPLIES = (  # by turns; those without a score are asked again
    ("Analysis: fine.\nScore: 3",), ("**Score:** 2", "score: Good 4 or Score: 1"), ("Score: 0",),
    ("No.", "Good: 3", "Score:\n2"),
)  # fmt: skip

SINGLE = "user_prompt_single_character_text_align.txt"


class Script:
    """Answers by question; keeps what was asked as texts, picture and decoding, in order."""

    def __init__(self) -> None:
        self.asked: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self.times: Counter[tuple[str, ...]] = Counter()

    def answer(self, body: Body) -> str:
        content = [part for message in body["messages"] for part in _parts(message)]
        texts = tuple(part["text"] for part in content if part["type"] == "text")
        (picture,) = [part["image_url"] for part in content if part["type"] == "image_url"]
        key = (*texts, picture["url"])
        roles = [(message["role"], len(_parts(message))) for message in body["messages"]]
        more = {name: body[name] for name in body if name not in ("messages", "model")}
        said = self.asked[key]
        replies = REPLIES[sum(map(ord, texts[-1])) % len(REPLIES)]
        self.times[key] += 1
        turn = (self.times[key] - 1) % len(replies)
        request = json.dumps([roles, picture.get("detail"), sorted(more.items())])
        if turn == len(said):
            said.append(request)
        assert said[turn] == request, "the same question again is asked in the same way"
        return replies[turn]


def _parts(message: Body) -> list[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


@pytest.fixture
def public_code(reference: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Script], Any]:
    """Import the public evaluator; its network is the script, unused libraries are stubs."""
    root = reference / "official" / "vistorybench"

    def load(script: Script) -> Any:
        def post(url: str, headers: object, data: str) -> object:
            document = {"choices": [{"message": {"content": script.answer(json.loads(data))}}]}
            return types.SimpleNamespace(status_code=200, json=lambda: document)

        stubs: dict[str, dict[str, object]] = {
            "requests": {"post": post}, "tqdm": {"tqdm": iter}, "pandas": {}, "natsort": {"natsorted": sorted}
        }  # fmt: skip
        for name, content in stubs.items():
            module = types.ModuleType(name)
            module.__dict__.update(content)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.syspath_prepend(str(root))
        monkeypatch.chdir(root)
        return importlib.import_module("vistorybench.bench.prompt_align.prompt_align_evaluator")

    yield load
    for name in [name for name in sys.modules if name.partition(".")[0] == "vistorybench"]:
        del sys.modules[name]


def rate_action(code: Path, space: dict[str, Any]) -> None:
    """Run those statements of the public evaluator that rate what a single character does."""
    tree = ast.parse(code.read_text("utf-8"))
    (found,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "pa_available and single_prompt_text"
    ]
    exec(compile(ast.Module(found.body, []), str(code), "exec"), space)


@pytest.mark.filterwarnings("ignore")
def test_requests_when_built_by_both_are_the_same_part_by_part(reference, tmp_path, monkeypatch, public_code):
    monkeypatch.setattr("fabula.prompts.loader.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("fabula.prompts.fetching.cache_folder", lambda: tmp_path / "cache")
    official = reference / "official" / "vistorybench"
    fetch_prompts("vistorybench", official)
    scripts, outputs = draw_shot_set(tmp_path / "data", 1), draw_shot_outputs(tmp_path / "model-x", 1)

    ours = Script()
    with ModelServer(lambda asked: ours.answer(asked.body)) as server:
        options = ImageOptions(
            metrics=("alignment",), judges=[f"{server.openai_url}#judge"],
            protocol="vistorybench@514cc31", settings=SETTINGS, device="cpu", workers=0,
            created_at="2026-01-01T00:00:00Z",
        )  # fmt: skip
        EVALUATING.evaluate(scripts, [outputs], tmp_path / "run", options)
    archive = read_archive(tmp_path / "run")
    assert archive.manifest.protocol["preset"] == {"name": "vistorybench@514cc31", "departures": []}
    rated = {one.item: (one.parsed or {}).get("rating") for one in last_attempts(archive.judgements)}

    theirs = Script()
    module = public_code(theirs)
    evaluator = module.PromptAlignEvaluator.__new__(module.PromptAlignEvaluator)
    evaluator.story_dataset = importlib.import_module(
        "vistorybench.dataset_loader.dataset_load"
    ).StoryDataset(str(scripts / "ViStory"))
    evaluator.gpt_api_pkg, evaluator.workers = ("judge", "", "http://127.0.0.1:9"), 1
    prompts = official / "vistorybench/bench/prompt_align/user_prompts"
    files = {"scene": "environment", "character_action": "character", "camera": "camera"}
    evaluator.txt_prompt_list = {
        name: str(prompts / f"user_prompt_{file}_text_align.txt") for name, file in files.items()
    }
    for name in ("output_path", "mode", "language", "outputs_timestamp"):
        setattr(evaluator, name, "")
    shown = {int(path.stem[-2:]): str(path) for path in sorted((outputs / "01/shots").iterdir())}
    monkeypatch.setattr(module, "load_outputs", lambda **_: {"01": {"shots": shown}})
    scores = evaluator.evaluate("model-x", "01")["detailed_scores"]
    expected: dict[str, int] = {}
    for number, dimensions in scores.items():
        for mine, name in (("scene", "scene"), ("shot", "camera"), ("interaction", "character_action")):
            expected[f"shot_{number:02d}/{mine}"] = dimensions[name]

    story = evaluator.story_dataset.load_story("01")
    (line,) = [json.loads(text) for text in (tmp_path / "run/images.jsonl").read_text().splitlines()]
    utilities = importlib.import_module("vistorybench.bench.prompt_align.gptv_utils")
    for shot in story["shots"]:
        image = open_picture(Path(shown[shot["index"]])).image
        boxes = line["boxes"]["shots"][str(shot["index"])]
        for crop in line["views"]["crops"]:
            if crop["shot"] != shot["index"]:
                continue
            box = next(box for box in boxes if box[:4] == crop["box"][:4])
            space = {
                "shot": shot, "char": crop["character"], "Characters": story["characters"], "boxes_id": 0,
                "cropped_imgs": [image.crop(tuple(int(side) for side in box[:4]))], "pa_char_scores": {},
                "single_prompt_text": (prompts / SINGLE).read_text("utf-8"),
                "load_img_content": utilities.load_img_content, "gptv_query": utilities.gptv_query,
                "model_type": "judge", "api_key": "", "base_url": "http://127.0.0.1:9", "story_id": "01",
                "shot_id": shot["index"],
            }  # fmt: skip
            rate_action(official / "vistorybench/bench/content/cids_evaluator.py", space)
            (score,) = space["pa_char_scores"].values()
            expected[f"shot_{shot['index']:02d}/action/{crop['character']}"] = score

    assert dict(ours.asked) == dict(theirs.asked)
    assert rated == expected and any("/action/" in item for item in rated)
    assert {len(said) for said in ours.asked.values()} >= {1, 2}

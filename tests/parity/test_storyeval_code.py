"""StoryEval's public evaluation, driven from reply to printed rate, against ours on the file that it writes.

The interface of the judge is a stub that replies from a drawn table; asking again, lists, files, means over
votes and the summary are the public code's own.
"""

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fabula.evaluation.events.published import Results, import_results
from fabula.evaluation.events.score import score_archive
from fabula.evaluation.events.votes import Definitions, Unreadable, parse_completion
from fabula.releases.events.suites import load_suite

pytestmark = pytest.mark.parity

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
def test_replies_when_the_public_code_reads_other_numbers_are_known(
    official: tuple[ModuleType, ModuleType], text: str, theirs: list[int]
) -> None:
    """The replies on which the two readers differ: it takes any number of a line, we take flags."""
    assert official[0].get_complete_list_from_output(text) == theirs
    try:
        ours = list(parse_completion(text, 2).flags)
    except Unreadable:
        ours = []
    assert ours != theirs

"""Videos on disk before anything is spent: missing, unreadable, wrongly named, stray, in the wrong place."""

import json
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.evaluation.events.load_videos import strays_of
from fabula.evaluation.outputs.videos import Videos, check_videos, videos_of
from fabula.schemas.events import EventPrompt, Suite
from fabula.testing.drawn import write_video

NAMES = ("A_cat_naps_and_then_runs.mp4", "A_dog_digs_and_then_sleeps.mp4", "A_man_sits_and_then_stands.mp4")


@pytest.fixture
def three() -> Suite:
    entry = {"prompt": "x", "event_list": ["a", "b"], "class": ["human"]}
    return Suite({name: EventPrompt.model_validate(entry) for name in NAMES})


def findings(report: Videos) -> dict[str, str]:
    return {issue.where: issue.code for issue in report.issues}


def test_videos_when_all_are_there_have_no_findings(three: Suite, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    for name in NAMES:
        write_video(folder / name, 8)
    report = check_videos(folder, three)
    assert (report.ok, report.issues, report.accounting()["invalid_rate"]) == (True, (), 0.0)
    part = Suite({NAMES[0]: three.prompts[NAMES[0]]})
    assert check_videos(folder, part, three).issues == ()  # the others are of the suite, and left alone


@pytest.mark.parametrize("named", [False, True])
def test_video_when_its_name_is_decomposed_is_that_of_the_prompt(tmp_path: Path, named: bool) -> None:
    one, two = "A_caf\u00e9_opens_and_then_closes.mp4", "A_cafe\u0301_opens_and_then_closes.mp4"
    entry = {"prompt": "x", "event_list": ["a", "b"], "class": ["human"]}
    suite = Suite({one: EventPrompt.model_validate(entry)})
    folder = tmp_path / "mode\u0300le"
    folder.mkdir()
    write_video(folder / ("e\u0301.mp4" if named else two), 8)
    if named:
        (folder / "outputs.json").write_text(json.dumps({"files": {one: "\u00e9.mp4"}}), "utf-8")
    report = check_videos(folder, suite)
    assert (report.issues, report.method) == ((), "mod\u00e8le")
    assert strays_of(videos_of(folder, suite.prompts), suite) == []
    if not named:
        write_video(folder / one, 8)
        (twice,) = check_videos(folder, suite).issues
        assert (twice.code, "\\u0301" in twice.message) == ("repeated-name", True)


@pytest.mark.parametrize("seeds", [(), (1, 7)])
def test_videos_when_outputs_json_says_which_is_which_are_those_of_the_suite(
    three: Suite, tmp_path: Path, seeds: tuple[int, ...]
) -> None:
    folder, named = tmp_path / "x", {NAMES[0]: "clips/1.mp4", NAMES[1]: "clips/2.mp4"}
    for place in [folder / f"seed_{seed}" for seed in seeds] or [folder]:
        (place / "clips").mkdir(parents=True)
        for name in NAMES:
            write_video(place / named.get(name, name), 8)
    (folder / "outputs.json").write_text(json.dumps({"files": named}), "utf-8")
    report = check_videos(folder, three)
    assert (report.issues, report.requested, report.seeds) == ((), 3 * max(1, len(seeds)), seeds or (None,))
    place = f"seed_{seeds[0]}/clips/2.mp4" if seeds else "clips/2.mp4"
    (folder / place).unlink()
    (missing,) = check_videos(folder, three).issues
    assert (missing.code, missing.where) == ("missing-video", place)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"files": {"B.mp4": "1.mp4"}}, "B.mp4 is not a prompt of the suite"),
        ({"files": {NAMES[0]: "../1.mp4"}}, "'../1.mp4' is not a file below this one"),
        ({"files": {NAMES[0]: "1.mp4", NAMES[1]: "1.mp4"}}, "'1.mp4' is also the file of"),
        ({"files": {NAMES[0]: NAMES[1]}}, f"{NAMES[1]} is the video of another prompt"),
        ({"folders": {NAMES[0]: "x"}}, "unknown key 'folders'"),
        ([], "Input should be"),
    ],
)
def test_videos_when_outputs_json_is_wrong_says_where(
    three: Suite, tmp_path: Path, document: object, said: str
) -> None:
    (tmp_path / "outputs.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(InputError) as caught:
        check_videos(tmp_path, three)
    assert said in str(caught.value) and "outputs.json" in str(caught.value)


def test_videos_when_something_is_wrong_each_is_named(three: Suite, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    write_video(folder / "a good one.mp4", 8)
    content = (folder / "a good one.mp4").read_bytes()
    (folder / NAMES[0]).write_bytes(content[:-200])
    (folder / "A dog digs, and then sleeps.mp4").write_bytes(content)
    (folder / NAMES[2]).write_bytes(b"")
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / "notes").mkdir()
    report = check_videos(folder, three)
    assert findings(report) == {
        NAMES[0]: "unreadable-video", NAMES[1]: "missing-video", NAMES[2]: "unreadable-video",
        "A dog digs, and then sleeps.mp4": "wrong-name", "a good one.mp4": "stray-file",
        "notes": "stray-file",
    }  # fmt: skip
    code = report.invalid[0].codes[0]
    assert code in ("truncated", "no_video", "damaged")
    assert [video.codes[0] for video in report.invalid] == [code, "missing", "empty"]
    assert "3 of 3 videos cannot be judged (100.0%)" in report.summary()
    (wrong,) = (issue for issue in report.issues if issue.code == "wrong-name")
    assert wrong.cure == f"rename it to {NAMES[1]}, if it is that video"

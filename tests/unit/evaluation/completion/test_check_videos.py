"""Videos on disk before anything is spent: missing, unreadable, wrongly named, stray, in the wrong place."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.events.judging import Results, import_results
from fabula.evaluation.events.load_videos import strays_of
from fabula.evaluation.events.votes import Unreadable, parse_completion, parsed_completion
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
def test_videos_when_outputs_json_says_which_is_which_are_those_of_the_suite(three, tmp_path, seeds):
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
    assert (missing.code, missing.where) == ("missing", place)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"files": {"B.mp4": "1.mp4"}}, "B.mp4 is not a prompt of the suite"),
        ({"files": {NAMES[0]: "../1.mp4"}}, "'../1.mp4' is not a file below this one"),
        ({"files": {NAMES[0]: "1.mp4", NAMES[1]: "1.mp4"}}, "'1.mp4' is also the file of"),
        ({"files": {NAMES[0]: NAMES[1]}}, f"{NAMES[1]} is the video of another prompt"),
        ({"folders": {NAMES[0]: "x"}}, "unknown key 'folders'"),
        ([], "outputs.json $: an object is wanted here"),
    ],
)
def test_videos_when_outputs_json_is_wrong_says_where(three, tmp_path, document, said):
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
    (folder / "A dog dugs, and then sleeps.mp4").write_bytes(content)
    (folder / NAMES[2]).write_bytes(b"")
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / "notes").mkdir()
    report = check_videos(folder, three)
    assert findings(report) == {
        NAMES[0]: "unreadable-video", NAMES[1]: "missing", NAMES[2]: "unreadable-video",
        "A dog dugs, and then sleeps.mp4": "stray-file", "a good one.mp4": "stray-file",
        "notes": "stray-file",
    }  # fmt: skip
    code = report.invalid[0].codes[0]
    assert code in ("truncated", "no_video", "damaged")
    assert [video.codes[0] for video in report.invalid] == [code, "missing", "empty"]
    assert "3 of 3 videos cannot be judged (100.0%)" in report.summary()


# Completion lists in replies: read as meant, and never guessed.


@pytest.mark.parametrize(
    "text",
    [
        "Finally we have [COMPLETE_LIST]: 1, 0",
        "Finally, we have **[COMPLETE_LIST]: 1, 0**.",
        "**[COMPLETE_LIST]**: `1, 0`",
        "[COMPLETE_LIST]: [1, 0].",
        "[complete_list]:1,0",
        "[COMPLETE_LIST]: 1, 0. Neither 1 nor 0 is certain.",
        "[COMPLETE_LIST]:\n1, 0\n",
        "[COMPLETE_LIST] - 1, 0",
        "[COMPLETE_LIST]\N{FULLWIDTH COLON}1\N{FULLWIDTH COMMA}0",
        "[COMPLETE_LIST]: 1\N{IDEOGRAPHIC COMMA}0\N{IDEOGRAPHIC FULL STOP}",
        "[COMPLETE_LIST]: \N{FULLWIDTH DIGIT ONE}, \N{FULLWIDTH DIGIT ZERO}",
        "\N{LEFT BLACK LENTICULAR BRACKET}COMPLETE_LIST\N{RIGHT BLACK LENTICULAR BRACKET}: 1, 0",
        "[COMPLETE_LIST]: 0, 1\nOn reflection:\n[COMPLETE_LIST]: 1, 0",
        "[COMPLETE_LIST]: 1, 0\nThe [COMPLETE_LIST] says that the first event is completed.",
    ],
)
def test_a_reply_when_it_has_a_list_is_read(text: str) -> None:
    assert parse_completion(text, 2).flags == (1, 0)


@pytest.mark.parametrize(
    ("text", "remarks"),
    [
        ("[COMPLETE_LIST]: 0, 1 (partially), 1", (None, "partially", None)),
        ("**[COMPLETE_LIST]: 0 (never starts),1(inferred), 1 (the end is cut off)**.",
         ("never starts", "inferred", "the end is cut off")),
        ("[COMPLETE_LIST]: [0, 1, 1 (with a note that the third event is inferred)].",
         (None, None, "with a note that the third event is inferred")),
        ("[COMPLETE_LIST]: 0, 1, 1 (event 1 is not shown)", (None, None, None)),
        ("[COMPLETE_LIST]: 0 (at 0.5 s), 1, 1", ("at 0.5 s", None, None)),
    ],
)  # fmt: skip
def test_a_list_when_flags_have_remarks_is_read_and_keeps_them(text, remarks):
    read = parse_completion(text, 3)
    assert (read.flags, read.remarks) == ((0, 1, 1), remarks)
    assert ("remarks" in parsed_completion(read)) == any(remarks)


@pytest.mark.parametrize("list_", ["1 (or 0)", "1 (0)", "1 (maybe 0)", "0 (1", "1 (partially, 0"])
def test_a_flag_when_its_remark_may_be_another_flag_is_no_answer(list_: str) -> None:
    for text in (
        (f"{list_}, 1", f"1, {list_}, 1")
        if "(" in list_ and ")" not in list_
        else (
            f"{list_}, 1",
            f"1, {list_}",
            list_,
        )
    ):
        with pytest.raises(Unreadable):
            parse_completion(f"[COMPLETE_LIST]: {text}", text.count(",") + 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no .* in the reply"),
        ("The events are completed: 1, 0", "no .* in the reply"),
        ("Complete list: 1, 0", "no .* in the reply"),
        ("[0, 1]: 1, 0", "no .* in the reply"),
        ("[COMPLETE_LIST]: none", "no list"),
        ("[COMPLETE_LIST]: 1, 2", "no list"),
        ("[COMPLETE_LIST]: 1.0, 0.0", "no list"),
        ("[COMPLETE_LIST]: 10, 0", "no list"),
        ("[COMPLETE_LIST]: 1, 0, maybe 1", "no list"),
        ("[COMPLETE_LIST]: 1, 0, 1", "3 flags for 2"),
        ("[COMPLETE_LIST]: 1 0", "no list"),
        ("[COMPLETE_LIST]: -1, 0", "no list"),
        ("[COMPLETE_LIST]: \N{MINUS SIGN}1, 0", "no list"),
        ("[COMPLETE_LIST]: 1, 0/1", "no list"),
        ("[COMPLETE_LIST]: 1, 0 or 1", "no list"),
        ("[COMPLETE_LIST]: 1, 0%", "no list"),
        ("[COMPLETE_LIST]: 1, 0; 1", "no list"),
        ("[COMPLETE_LIST]: true, false", "no list"),
        ("The form is [COMPLETE_LIST]: 1, 0\n[COMPLETE_LIST]: 2, 1", "no list"),
        ("The form is [COMPLETE_LIST]: 1, 0\n[COMPLETE_LIST]: yes, no", "no list"),
        ("[COMPLETE_LIST]: 1, 0\n[COMPLETE_LIST]: 1", "1 flags for 2"),
    ],
)
def test_a_reply_when_its_list_is_missing_or_wrong_is_no_answer(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        parse_completion(text, 2)


# Published result files become archives: texts are read again, and what differs is listed.

BLOCKED = "Error: {'error': {'inner_error': {'code': 'ResponsibleAIPolicyViolation'}}}"


def reply(text: str, listed: list[int], seed: int = 0) -> dict[str, Any]:
    score = sum(listed) / len(listed) if listed else None
    return {
        "completion_list": listed, "completion_score": score, "description": "seen", "scoring_output": text,
        "seed": seed,
    }  # fmt: skip


@pytest.fixture
def results(tmp_path: Path, suite: Suite) -> Path:
    path = tmp_path / "my_model1.5_gpt4o_final.json"
    document = {name: prompt.as_json() for name, prompt in suite.prompts.items()}
    document["a.mp4"] |= {
        "output0": reply("[COMPLETE_LIST]: 1, 0", [1, 0]),
        "output1": reply("[COMPLETE_LIST]: 1, 1", [1, 0]),
    }
    document["b.mp4"] |= {
        "output0": reply(BLOCKED, []),
        "output1": reply("Error: ('Connection aborted.')", []),
    }
    document["c.mp4"] |= {"output0": reply("It is all there.", []), "output1": reply(" ", [])}
    path.write_text(json.dumps(document, indent=4))
    return path


def test_a_result_file_when_imported_has_every_reply_with_its_outcome(results: Path, suite: Suite) -> None:
    found = import_results([Results(results)], suite)
    told = [(one.unit, one.vote, one.outcome) for one in found.archive.judgements]
    assert told == [
        ("a.mp4", 0, "answered"), ("a.mp4", 1, "answered"), ("b.mp4", 0, "blocked"), ("b.mp4", 1, "failed"),
        ("c.mp4", 0, "malformed"), ("c.mp4", 1, "failed"),
    ]  # fmt: skip
    assert "Connection aborted" in found.archive.judgements[3].reason
    first = found.archive.judgements[0]
    assert (first.method, first.judge.spec) == ("my_model1.5", "published:gpt4o")
    assert first.parsed == {"completion": [1, 0], "description": "seen"}
    assert found.archive.manifest.protocol["votes"] == {"published:gpt4o": 2}


def test_a_reply_when_its_text_says_otherwise_than_published_is_listed(results: Path, suite: Suite) -> None:
    found = import_results([Results(results)], suite)
    (one,) = found.differences
    assert (one.unit, one.vote, one.published, one.parsed) == ("a.mp4", 1, [1, 0], [1, 1])
    assert found.archive.manifest.environment["differences"] == [vars(one)]


def test_two_files_when_they_contradict_each_other_are_refused(results, suite, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(results.read_text().replace("[COMPLETE_LIST]: 1, 0", "[COMPLETE_LIST]: 0, 0"))
    with pytest.raises(InputError, match=r"one answer to completion a\.mp4"):
        import_results([Results(results), Results(other, "my_model1.5", "gpt4o")], suite)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"z.mp4": {}}, "a video of the suite"),
        ({"a.mp4": {"event_list": ["Other"]}}, "other events"),
        ({"a.mp4": {"event_list": ["Event 0", "Event 1"]}}, "found none"),
        ({"a.mp4": {"event_list": ["Event 0", "Event 1"], "output0": 3}}, "scoring_output"),
        ({"a.mp4": None}, "other events"),
    ],
)
def test_a_result_file_when_it_does_not_fit_the_suite_is_refused(results, suite, change, said):
    results.write_text(json.dumps(json.loads(results.read_text()) | change))
    with pytest.raises(InputError, match=said):
        import_results([Results(results)], suite)

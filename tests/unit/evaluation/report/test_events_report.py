"""The report on an evaluation of videos."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.archive.archive import write_archive
from fabula.evaluation.events.report import EACH, events_report
from fabula.evaluation.events.score import compare_folders, score_folder
from fabula.evaluation.events.votes import Definitions as EventDefinitions
from fabula.evaluation.report.formats import render_page
from fabula.evaluation.report.people import write_calibration
from fabula.kinds.evaluations import calibrate
from fabula.people.recoverability import Resampling
from fabula.people.study import StudySettings
from fabula.releases.events.form import SUITE, write_suite
from fabula.schemas.canonical import jsonl_lines, write_atomic
from fabula.schemas.events import EventPrompt, Suite
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement
from fabula.testing.drawn import write_storyboard

JUDGE = Judge(spec="openai:one", provider="openai", model="one", reported_model=None)


def suite_of(count: int) -> Suite:
    return Suite({
        f"v{number:03}.mp4": EventPrompt.model_validate(
            {"prompt": f"Prompt {number}.", "event_list": ["It falls.", "It breaks."], "class": ["object"]}
        )
        for number in range(count)
    })  # fmt: skip


Votes = dict[int, list[Any]]


def write_evaluation(folder: Path, votes: dict[str, Votes], count: int) -> Path:
    """Write an evaluation: method -> number of a prompt -> what each vote says of its two events."""
    suite = suite_of(count)
    most = max(len(lists) for by_prompt in votes.values() for lists in by_prompt.values())
    manifest = EvaluationManifest(
        kind="events",
        protocol={"suite": {"sha256": suite.sha256()}, "judges": [JUDGE.spec], "votes": {JUDGE.spec: most}},
        subject={"methods": {method: {"seeds": []} for method in votes}},
        environment={"created_at": "2026-01-01T00:00:00Z"},
    )  # fmt: skip
    judgements = [
        Judgement(
            protocol="events", kind="completion", method=method, unit=unit, seed=None, item=unit,
            condition="video", judge=JUDGE, vote=vote, prompt="", raw="",
            outcome="refused" if events is None else "answered",
            reason="would not" if events is None else None, cost=0.01, time=None, input_tokens=100,
            output_tokens=10,
            parsed=None if events is None else {"completion": list(events), "description": "A cup falls."},
        )
        for method, by_prompt in votes.items() for number, lists in by_prompt.items()
        for unit in (f"v{number:03}.mp4",) for vote, events in enumerate(lists)
    ]  # fmt: skip
    folder.mkdir()
    write_suite(folder / SUITE, suite)
    write_archive(folder, manifest, judgements)
    return folder


def write_videos(folder: Path, completed: dict[str, list[int]]) -> Path:
    """Write one with one vote: method -> how many of the two events each of its videos completes."""
    votes = {
        method: {number: [(int(done > 0), int(done > 1))] for number, done in enumerate(every)}
        for method, every in completed.items()
    }
    return write_evaluation(folder, votes, len(next(iter(completed.values()))))


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """Prompt 0: half completed by both votes; 1: refused; 2: not there."""
    folder = write_evaluation(tmp_path / "run", {"m": {0: [(1, 1), (1, 0)], 1: [None, None]}}, 3)
    files = write_storyboard(folder / "store", panels=2)
    frames = [{"file": f"store/{file.name}"} for file in files]
    line = {"method": "m", "unit": "v000.mp4", "seed": None, "frames": frames}
    write_atomic(folder / "frames.jsonl", jsonl_lines([line]))
    return folder


def test_events_report_when_compared_with_the_scores_has_their_numbers(evaluation: Path) -> None:
    document = events_report(evaluation)
    scores = score_folder(evaluation).panels[0]
    row = document.headline.rows[0]
    assert row.label == "m · openai:one"
    assert row.scores == {**scores.classes, "non_response": scores.nonresponse}
    assert row.scores["average"].value == pytest.approx(0.5 / 3)
    prompts = next(one for one in document.accounting if one.name == "prompts")
    assert prompts.rows[0].values == {"prompts": 3, "answered": 1, "missing": 1, "silent": 1}
    assert document.warnings == (
        "3 prompts: too few for intervals and tests, which need 6.",
        "1 of 3 prompts have no video by m.", "openai:one answered nothing about 1 of 3 prompts of m."
    )  # fmt: skip


def test_events_report_when_a_prompt_is_shown_has_frames_events_and_votes(evaluation: Path) -> None:
    case = events_report(evaluation).cases.shown[0]
    assert case.title == "Prompt 0." and case.score.value == 0.5
    assert [frame.label for frame in case.frames] == ["Frame 1", "Frame 2"]
    assert all(frame.data for frame in case.frames)
    assert [item.text for item in case.items] == ["It falls.", "It breaks."]
    assert [item.combined for item in case.items] == [{"video": True}, {"video": False}]
    assert [one.correct for one in case.items[1].verdicts] == [True, False]
    assert case.items[0].verdicts[0].answer == "A cup falls."


def test_events_report_when_there_are_many_prompts_shows_the_worst_typical_and_best(tmp_path: Path) -> None:
    votes = {number: [(int(number > 20), int(number > 30)), (1, 1)] for number in range(60)}
    document = events_report(write_evaluation(tmp_path / "run", {"m": votes}, 60))
    shown = document.cases.shown
    assert [case.why for case in shown] == ["worst"] * EACH + ["typical"] * EACH + ["best"] * EACH
    values = [case.score.value for case in shown]
    assert values == [0.0] * EACH + [0.5] * EACH + [1.0] * EACH  # 21, 10 and 29 prompts; the mean is 0.57
    assert len({case.unit for case in shown}) == 3 * EACH
    all_done = events_report(write_videos(tmp_path / "done", {"m": [2] * 9}))
    assert {case.why for case in all_done.cases.shown} == {"best", "typical"}  # none at 100 % is the worst


def test_events_report_when_there_are_two_methods_compares_them_as_the_command_does(tmp_path: Path) -> None:
    better, worse = [2] * 10 + [1] * 10, [1] * 10 + [0] * 10
    document = events_report(write_videos(tmp_path / "both", {"good": better, "poor": worse}))
    (one,) = document.comparisons
    first = write_videos(tmp_path / "first", {"good": better})
    second = write_videos(tmp_path / "second", {"poor": worse})
    (expected,) = compare_folders(first, second, None, EventDefinitions()).comparisons
    assert one.difference.value == expected.difference == pytest.approx(0.5)
    assert (one.difference.low, one.difference.high) == (expected.low, expected.high)
    assert one.p == {
        "Wilcoxon": expected.p_wilcoxon_corrected, expected.resampled_test: expected.p_bootstrap_corrected
    }  # fmt: skip
    assert (one.verdict, one.pairs) == ("good completes more.", 20)
    assert "on the prompts that both have" in render_page(document)


def test_events_report_when_a_calibration_is_beside_shows_people(tmp_path: Path) -> None:
    run = write_videos(tmp_path / "run", {name: [2, 1, 0, 1] for name in "abc"})
    human = tmp_path / "human.jsonl"
    rows = [
        {"kind": "completion", "rater": f"p{person}", "item": f"v{video:03}.mp4", "method": method,
         "completion": [1, int(video + place > 2)], "simulated": person == 0}
        for person in range(2) for video in range(4) for place, method in enumerate("abc")
    ]  # fmt: skip
    human.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_calibration(run, calibrate(run, human, settings=StudySettings(resampling=Resampling(20))).as_json())
    document = events_report(run)
    tables = {table.name: table for table in document.people}
    assert [row.label for row in tables["judges_people"].rows] == ["openai:one · All", "openai:one · Object"]
    assert any(text.startswith("12 of 24 lines come from simulated people") for text in document.warnings)
    assert "What people said" in render_page(document)

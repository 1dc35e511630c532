"""The report on an evaluation of videos."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError
from fabula.evaluation.archive.archive import write_archive
from fabula.evaluation.events.report import EACH, events_report
from fabula.evaluation.events.score import score_folder
from fabula.evaluation.report.page import render_page
from fabula.kinds.evaluations import make_report
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


def judgement(unit: str, vote: int, listed: Sequence[int] | None) -> Judgement:
    return Judgement(
        protocol="events", kind="completion", method="m", unit=unit, seed=None, item=unit, condition="video",
        judge=JUDGE, vote=vote, prompt="", raw="", outcome="refused" if listed is None else "answered",
        reason="would not" if listed is None else None, cost=0.01, time=None, input_tokens=100,
        output_tokens=10,
        parsed=None if listed is None else {"completion": list(listed), "description": "A cup falls."},
    )  # fmt: skip


def write_evaluation(folder: Path, votes: dict[int, list[Any]], count: int) -> Path:
    suite = suite_of(count)
    folder.mkdir()
    write_suite(folder / SUITE, suite)
    manifest = EvaluationManifest(
        kind="events",
        protocol={
            "suite": {"sha256": suite.sha256(), "prompts": count}, "units": None, "judges": [JUDGE.spec],
            "votes": {JUDGE.spec: 2},
        },
        subject={"methods": {"m": {"seeds": []}}},
        environment={"created_at": "2026-01-01T00:00:00Z"},
    )  # fmt: skip
    judgements = [
        judgement(f"v{number:03}.mp4", vote, listed)
        for number, lists in votes.items()
        for vote, listed in enumerate(lists)
    ]
    write_archive(folder, manifest, judgements)
    return folder


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """Prompt 0: half completed by both votes; 1: refused; 2: not there."""
    folder = write_evaluation(tmp_path / "run", {0: [(1, 1), (1, 0)], 1: [None, None]}, 3)
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
    document = events_report(write_evaluation(tmp_path / "run", votes, 60))
    shown = document.cases.shown
    assert [case.why for case in shown] == ["worst"] * EACH + ["typical"] * EACH + ["best"] * EACH
    values = [case.score.value for case in shown]
    assert values == [0.0] * EACH + [0.5] * EACH + [1.0] * EACH  # 21, 10 and 29 prompts; the mean is 0.57
    assert len({case.unit for case in shown}) == 3 * EACH
    all_done = events_report(write_evaluation(tmp_path / "done", {n: [(1, 1), (1, 1)] for n in range(9)}, 9))
    assert {case.why for case in all_done.cases.shown} == {"best", "typical"}  # none at 100 % is the worst


def test_events_report_when_rendered_is_a_page(evaluation: Path) -> None:
    page = render_page(make_report(evaluation))
    assert "StoryEval evaluation" in page and "It breaks." in page


def test_events_report_when_outputs_are_given_says_that_they_are_not_needed(evaluation: Path) -> None:
    with pytest.raises(ConfigError, match="kept in the run folder"):
        make_report(evaluation, None, [evaluation])

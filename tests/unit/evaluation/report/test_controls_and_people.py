"""What a report says beside the scores: other explanations, paired comparisons of videos, and people."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import write_archive
from fabula.evaluation.events.report import events_report
from fabula.evaluation.events.score import compare_folders
from fabula.evaluation.events.votes import Definitions as EventDefinitions
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.evaluation.report.model import ReportDocument
from fabula.evaluation.report.page import render_page
from fabula.evaluation.report.people import CALIBRATION, SHORT, people_warnings, write_calibration
from fabula.evaluation.report.writing import scores_csv
from fabula.kinds.evaluations import calibrate
from fabula.people.participants import Resampling
from fabula.people.study import StudySettings
from fabula.releases.events.form import SUITE, write_suite
from fabula.schemas.events import EventPrompt, Suite
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement
from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_judgements import Truth

FEW = Definitions(resamples=50)
A, B = "a" * SHORT, "b" * SHORT
POOLED = "of the study's protocol are pooled"
MADE_UP = "a program made them, so that numbers about people are no finding"
METHODS = (("alpha", Truth()), ("beta", Truth(image=(0.3,) * 6)), ("gamma", Truth(image=(0.6,) * 6)))
JUDGE = Judge(spec="openai:one", provider="openai", model="one", reported_model=None)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """24 stories, 144 questions, three methods, three judges."""
    return write_simulated(tmp_path_factory.mktemp("simulated"), 144, METHODS)


@pytest.fixture(scope="module")
def report(simulated: Simulated) -> ReportDocument:
    return katha_report(simulated.run, simulated.release, definitions=FEW)


def write_videos(folder: Path, completed: dict[str, list[int]]) -> Path:
    """Write an evaluation of videos: method -> how many of the two events each of its videos completes."""
    count = len(next(iter(completed.values())))
    names = [f"v{number:03}.mp4" for number in range(count)]
    prompt = {"prompt": "A prompt.", "event_list": ["It falls.", "It breaks."], "class": ["object"]}
    suite = Suite({name: EventPrompt.model_validate(prompt) for name in names})
    protocol = {"suite": {"sha256": suite.sha256()}, "judges": [JUDGE.spec], "votes": {JUDGE.spec: 1}}
    manifest = EvaluationManifest(
        kind="events",
        protocol=protocol,
        subject={"methods": {name: {} for name in completed}},
        environment={},
    )
    folder.mkdir()
    write_suite(folder / SUITE, suite)
    judgements = [
        Judgement(
            protocol="events", kind="completion", method=method, unit=name, seed=None, item=name, vote=0,
            condition="video", judge=JUDGE, prompt="", raw="", outcome="answered", reason=None, cost=None,
            time=None, input_tokens=None, output_tokens=None,
            parsed={"completion": [int(done > 0), int(done > 1)], "description": ""},
        )
        for method, every in completed.items() for name, done in zip(names, every, strict=True)
    ]  # fmt: skip
    write_archive(folder, manifest, judgements)
    return folder


def test_controls_when_there_are_three_methods_hold_the_numbers_of_the_scores(
    simulated: Simulated, report: ReportDocument
) -> None:
    scores = score_folder(simulated.run, simulated.release, FEW)
    (table,) = report.controls
    found: dict[str, list[str]] = {}
    for row in table.rows:
        found.setdefault(row.label, []).append(f"{row.values['control']}: {row.values['found']}")
    rho = scores.robustness["filtering"]["raw_filtered"]["value"]
    assert found["Filtering artifact"][0].startswith(
        f"Ranking by raw and by filtered STG: \N{GREEK SMALL LETTER RHO} = {rho:.2f}, 3 pairs"
    )
    assert len(found["Single-judge artifact"]) == 6, "three pairs of judges, by methods and by stories"
    mean = scores.robustness["half_data"]["mean"]
    assert found["Dataset-size artifact"][0].startswith(
        f"Ranking by 200 random halves of the stories and by all: mean {mean:.2f}"
    )
    assert len(found["Moral-target-only effect"]) == 3
    page = render_page(report)
    assert 'id="controls"' in page and "Filtering artifact" in page
    assert "controls,Filtering artifact,found" in scores_csv(report)


def test_controls_when_there_is_one_method_say_why_they_say_nothing(tmp_path: Path) -> None:
    one = write_simulated(tmp_path, 36, METHODS[:1])
    (table,) = katha_report(one.run, one.release, definitions=FEW).controls
    values = {row.label: str(row.values["found"]) for row in table.rows}
    assert "at least 3 are needed" in values["Filtering artifact"]
    assert "fewer than 3 methods" in values["Dataset-size artifact"]


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


def test_events_report_when_there_are_three_methods_corrects_for_three_pairs(tmp_path: Path) -> None:
    rates = {name: [number % 3 for number in range(start, start + 9)] for start, name in enumerate("abc")}
    document = events_report(write_videos(tmp_path / "run", rates))
    assert [(one.first, one.second) for one in document.comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert "3 comparisons" in document.comparison_note
    assert all(one.verdict == "These data do not tell them apart." for one in document.comparisons)


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


@pytest.mark.parametrize(
    ("people", "told"),
    [
        ({"protocols": {}}, []),
        ({"protocols": {"a" * 64: 4}}, []),
        ({"simulated": 1}, [f"1 of 4 lines come from simulated people: {MADE_UP}."]),
        ({"protocols": {"a" * 64: 3, "b" * 64: 1}},
         [f"Lines given under 2 versions {POOLED}: {A} (3 lines), {B} (1 line)."]),
        ({"protocols": {"a" * 64: 3}},
         [f"Lines given under 1 version {POOLED}: {A} (3 lines); 1 line names none."]),
    ],
)  # fmt: skip
def test_readers_of_a_calibration_are_warned_of_made_up_people_and_pooled_versions(
    people: dict[str, Any], told: list[str]
) -> None:
    assert list(people_warnings({"lines_read": 4, **people})) == told


@pytest.mark.parametrize(
    "content", ["", "[]", '{"kind": "katha"}', '{"kind": "events", "people": 1}', "\xff"]
)
def test_report_when_the_calibration_is_no_such_thing_says_what_to_do(tmp_path: Path, content: str) -> None:
    run = write_videos(tmp_path / "run", {"a": [1, 0]})
    (run / CALIBRATION).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match="not a calibration of this evaluation"):
        events_report(run)

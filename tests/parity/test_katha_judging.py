"""The six published storyboards, judged through the real SDK: records by a model, answers by a table."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.judging.pictures import ImageSettings, prepare_storyboard
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.evaluation.report.writing import write_report
from fabula.kinds.evaluations import make_report
from fabula.releases.loading import Release
from fabula.schemas.katha import StoryRecord
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.parity

CREATED = "2026-01-01T00:00:00Z"


def test_published_storyboards_when_judged_give_the_answers_of_the_table(
    demo: tuple[Release, Path], tmp_path: Path
) -> None:
    release, shown = demo
    boards = {
        record.story_id: [
            picture.sha256
            for picture in prepare_storyboard(sorted((shown / record.story_id).iterdir()), ImageSettings())
        ]
        for record in release
    }
    judge = JudgeModel(release.records, {"text": 0.9, "image": 0.5}, boards=boards)
    with ModelServer(judge) as server:
        given = EvaluateOptions(judges=(f"{server.openai_url}#stand-in",), workers=0, created_at=CREATED)
        report = evaluate_katha(release.path, shown, tmp_path / "run", given)
    archive = read_archive(tmp_path / "run")
    questions = {one.question_id: one for record in release for one in record.questions}
    assert report.totals["made"] == len(release) >= 4
    assert Counter(one.outcome for one in archive.judgements).keys() == {"answered"}
    asked = [one for one in archive.judgements if one.kind == "question"]
    assert len(asked) == 3 * len(questions)
    for one in asked:
        assert one.parsed is not None
        question = questions[one.item]
        said = one.parsed["final_answer" if one.condition == "text_image" else "answer"]
        right = judge.answers(one.item, one.condition, question.question_type, "stand-in")
        assert (said in question.accepted_answers) == right
    method = archive.manifest.subject["methods"]["published"]
    assert method["leaks"] == [] and method["panels"] == 5 * len(release)


# The report on the six published storyboards shows the frames behind every verdict.


def test_report_on_published_storyboards_shows_every_transition_with_frames_and_verdicts(
    demo: tuple[Release, Path], tmp_path: Path
) -> None:
    release, shown = demo
    boards = {
        record.story_id: [
            picture.sha256
            for picture in prepare_storyboard(sorted((shown / record.story_id).iterdir()), ImageSettings())
        ]
        for record in release
    }
    judge = JudgeModel(release.records, {"text": 0.9, "image": 0.5}, boards=boards)
    with ModelServer(judge) as server:
        judges = tuple(f"{server.openai_url}#{name}" for name in ("one", "two"))
        options = EvaluateOptions(judges=judges, workers=0, created_at="2026-01-01T00:00:00Z")
        evaluate_katha(release.path, shown, tmp_path / "run", options)
    document = make_report(tmp_path / "run", release.path)
    assert document.cases is not None
    cases = document.cases.shown
    asked = sorted(question.question_id for record in release for question in record.questions)
    assert sorted(item.id for case in cases for item in case.items) == asked
    for case in cases:
        assert case.frames and all(frame.data for frame in case.frames)
        for item in case.items:
            said = {(one.judge, one.condition): one for one in item.verdicts}
            assert len(said) == 2 * 3
            for (name, condition), one in said.items():
                model = name.removeprefix("compatible:")
                assert one.correct == judge.answers(item.id, condition, item.group, model)
    written = write_report(document, tmp_path / "report.html")
    assert written.files["page"].stat().st_size < 4_000_000


# The six published example storyboards of KathaTrace can be checked and prepared as they are.


def test_check_outputs_when_storyboards_are_published_finds_them_sound(
    reference: Path, tmp_path: Path
) -> None:
    folder = reference / "kathatrace_demo" / "storyboards"
    stories = sorted(path.name for path in folder.iterdir())
    assert len(stories) == 6
    shutil.copytree(folder, tmp_path / "demo")
    records = [
        StoryRecord.model_validate({**bundle["record"], "story_id": story})
        for bundle, story in zip(sample_bundles(6), stories, strict=True)
    ]
    report = check_outputs(tmp_path / "demo", records)
    assert report.issues == ()
    assert report.accounting()["stories_valid"] == 6
    for storyboard in report.valid:
        prepared = prepare_storyboard([panel.file for panel in storyboard.files], ImageSettings(max_side=256))
        assert [max(one.width, one.height) for one in prepared] == [256] * 5

"""The report on the six published storyboards shows the frames behind every verdict."""

from pathlib import Path

import pytest

from fabula.evaluation.judging.pictures import ImageSettings, prepare_storyboard
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.report.writing import write_report
from fabula.kinds.evaluations import make_report
from fabula.releases.loading import Release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.parity


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

"""The six published storyboards, judged through the real SDK: records by a model, answers by a table."""

from collections import Counter
from pathlib import Path

import pytest

from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.judging.pictures import ImageSettings, prepare_storyboard
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.releases.loading import Release
from fabula.testing.judge_model import JudgeModel
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

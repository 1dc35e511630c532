"""A method that drew the variants, too: each is asked about, and scored against what it was made of."""

import shutil
from pathlib import Path

import pytest

from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.katha.variants import variant_stories
from fabula.evaluation.recoverability.score import score_folder
from fabula.evaluation.report.writing import write_report
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer


def test_variants_when_drawn_are_scored_by_which_text_their_pictures_show(tmp_path: Path) -> None:
    release = drawn_release(tmp_path / "release", 8)
    told = variant_stories(release, release.records)
    stories = [*release.records, *told]
    boards = draw_outputs(tmp_path / "model-x", stories)
    # The method drew every second variant as if nothing had changed, and left out those of the last story.
    for record in told[1::2]:
        shutil.rmtree(boards / record.story_id)
        base = record.story_id.rpartition("_")[0]
        shutil.copytree(boards / base, boards / record.story_id)
    for record in told[-2:]:
        shutil.rmtree(boards / record.story_id)
    with ModelServer(JudgeModel(stories)) as server:
        options = EvaluateOptions(
            judges=(f"{server.openai_url}#one",), workers=0, created_at="2026-01-01T00:00:00Z"
        )
        evaluate_katha(release.path, boards, tmp_path / "run", options)
    archive = read_archive(tmp_path / "run")
    asked = [one for one in archive.judgements if one.kind == "variant"]
    assert len(asked) == len(told) - 2
    assert {one.unit for one in asked} == {record.story_id for record in release.records[:-1]}
    method = score_folder(tmp_path / "run", release.path).methods["model-x"]
    assert method.pairs["accuracy"].value == 1
    # Each story has one right and one wrong variant: half of them, and as many pairs told apart.
    assert method.pairs["variant_accuracy"].value == pytest.approx(0.5)
    assert method.pairs["both_accuracy"].value == pytest.approx(0.5)
    assert archive.manifest.subject["methods"]["model-x"]["generations_requested"] == len(release.records)
    (table,) = [one for one in katha_report(tmp_path / "run", release.path).details if one.name == "variants"]
    (row,) = table.rows
    assert [measure.label for measure in table.measures] == ["Variant accuracy", "Both told apart"]
    for name in ("variant_accuracy", "both_accuracy"):
        score = row.scores[name]
        assert score == method.pairs[name]
        assert score.low is not None and score.high is not None and score.low <= 0.5 <= score.high
        assert score.counts == {"judged": len(told) - 2, "pairs": len(told)}
    assert "choose the variant" in (table.note or "")
    write_report(katha_report(tmp_path / "run", release.path), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert f"{len(told) - 2} judged, {len(told)} pairs" in page

"""A large evaluation in eight shards, merged: the bytes of one run, and every question is paid for once."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabula.engine.machines.merging import Merge
from fabula.evaluation.katha.requests import EvaluateOptions, estimate_evaluation, evaluate_katha
from fabula.kinds.verbs import merge_runs
from fabula.releases.loading import Release
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release, judged_release
from fabula.testing.endurance import VARIABLE
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.killing import differing
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.slow

TABLE = {"text": 0.9, "image": 0.5, "text_image": 0.95, "contrast": 0.8}


def judge_shards(release: Release, boards: Sequence[Path], folder: Path, of: int) -> int:
    """Judge boards at once and in shards; compare bytes, questions and costs; return how many were asked."""
    with ModelServer(JudgeModel(release.records, TABLE)) as server:
        judge = f"{server.openai_url}#one"
        given = {
            "judges": (judge,), "questions_only": True, "workers": 0, "created_at": "2026-01-01T00:00:00Z",
            "models": {judge: {"concurrency": 32, "prices": {"input": 1.0, "output": 10.0}}},
        }  # fmt: skip
        evaluate_katha(release.path, boards, folder / "whole", EvaluateOptions(**given))
        asked = server.count
        parts = [folder / f"part{number}" for number in range(1, of + 1)]
        for number, part in enumerate(parts, 1):
            evaluate_katha(release.path, boards, part, EvaluateOptions(shard=f"{number}/{of}", **given))
        assert server.count == 2 * asked
        merged = merge_runs(parts, folder / "merged", Merge(workers=0))
        assert server.count == 2 * asked
    assert differing(folder / "merged", folder / "whole") == []
    assert merged.spent == pytest.approx(sum(use.cost for use in merged.report.models)) and merged.spent > 0
    return asked


def test_evaluation_of_two_methods_when_made_in_shards_asks_about_each_text_once(tmp_path: Path) -> None:
    release = drawn_release(tmp_path / "release")
    boards = [draw_outputs(tmp_path / name, release.records, side=16) for name in ("first", "second")]
    asked = judge_shards(release, boards, tmp_path, 3)
    calls = []
    for shard in (None, "1/3", "2/3", "3/3"):
        options = EvaluateOptions(judges=("openai:x",), shard=shard, workers=0)
        calls.append(estimate_evaluation(release.path, boards, tmp_path / "new", options).calls)
    assert calls[0] == sum(calls[1:]) > asked, "pairs are asked about too"


@pytest.mark.endurance
def test_evaluation_of_2000_stories_when_made_in_eight_shards_is_that_of_one_run(tmp_path: Path) -> None:
    """By default of 50 stories, which are enough for each shard to have some."""
    bundles = sample_bundles(2000 if os.environ.get(VARIABLE) else 50)
    for bundle in bundles:
        bundle["record"]["questions"] = bundle["record"]["questions"][:1]
    release = judged_release(tmp_path / "release", bundles)
    judge_shards(release, [draw_outputs(tmp_path / "boards", release.records, side=16)], tmp_path, 8)

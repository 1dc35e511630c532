"""A whole evaluation by judges whose service keeps prompts: what it reads once, it is paid for once."""

from pathlib import Path

import pytest

from fabula.engine.calls import model_uses
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.spend import run_spend
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.schemas.judgement import Judgement
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer

JUDGE = "anthropic:claude-haiku-4-5"
TABLE = {"text": 0.9, "image": 0.5, "text_image": 0.95, "contrast": 0.8}


def said(folder: Path) -> list[Judgement]:
    """Return all judgements but what they cost."""
    return [one.model_copy(update={"cost": None}) for one in read_archive(folder).judgements]


def test_evaluation_when_its_judge_keeps_prompts_pays_less_for_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-key-0123456789abcdef0123456789")
    release = drawn_release(tmp_path / "release")
    boards = draw_outputs(tmp_path / "drawn", release.records)
    read, spent = {}, {}
    for cached in (False, True):
        judge = JudgeModel(release.records, TABLE)
        with ModelServer(judge, caching=True, latency=0.02) as server:
            models = {JUDGE: {"base_url": server.anthropic_url, "prompt_cache": cached}}
            options = EvaluateOptions(
                judges=(JUDGE,), models=models, workers=0, created_at="2026-01-01T00:00:00Z", settings=[]
            )
            evaluate_katha(release.path, boards, tmp_path / f"run-{cached}", options)
            assert server.cache.requests == server.count == 115
            read[cached] = (server.cache.hits, server.cache.read, server.cache.written)
        spent[cached] = run_spend(tmp_path / f"run-{cached}").spent
    assert said(tmp_path / "run-True") == said(tmp_path / "run-False")
    assert read[False] == (0, 0, 0)
    hits, tokens, written = read[True]
    # 5 storyboards with 6 questions, then 7 with the label, under each of two conditions, and 2 contrasts
    assert hits >= 40
    uses = model_uses(tmp_path / "run-True" / JOURNAL)
    assert sum(use.cached_tokens for use in uses) == tokens
    assert sum(use.written_tokens for use in uses) == written
    assert spent[True] < 0.85 * spent[False]

"""Completion rates for grading a suite: from scored evaluations, and from people's tables."""

from pathlib import Path

import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.events.score import rates_of, read_rates, score_archive
from fabula.evaluation.events.votes import Definitions
from fabula.schemas.events import Suite


def test_rates_when_taken_from_scores_need_one_judge_and_each_method_once(archive, suite: Suite) -> None:
    scores = score_archive(archive({"a.mp4": [(1, 0), (1, 0)]}), suite, Definitions())
    assert rates_of([scores]) == {"m": {"a.mp4": 0.5, "b.mp4": None, "c.mp4": None}}
    with pytest.raises(ConfigError, match="the method m is in two"):
        rates_of([scores, scores])
    with pytest.raises(ConfigError, match="--judge"):
        rates_of([scores], "nobody")


def test_peoples_rates_when_wrong_list_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "human.tsv"
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\nm\ta.mp4\t1\nm\tb.mp4\t2\n")
    with pytest.raises(InputError) as caught:
        read_rates(path)
    assert len(caught.value.problems) == 2
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\n")
    assert read_rates(path) == {"m": {"a.mp4": 0.5}}

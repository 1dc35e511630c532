"""Which models' videos people see, and how the verifier's ranking of models follows theirs."""

import json
import random
from collections import Counter
from collections.abc import Callable

import pytest
from scipy.stats import kendalltau, spearmanr

from fabula.people.events import ALL, alignment, human_rates
from fabula.people.review.sources.source import draw_methods
from fabula.schemas.judgement import HumanRow

MODELS = [f"model_{number:02d}" for number in range(11)]
VIDEOS = [f"prompt_{number:03d}.mp4" for number in range(450)]


def test_methods_when_drawn_are_two_different_ones_of_every_prompt_and_hang_on_the_seed_alone() -> None:
    there = dict.fromkeys(VIDEOS, MODELS)
    drawn = draw_methods(there, 2, random.Random(42))
    by_video: dict[str, set[str]] = {}
    for video, method in drawn:
        by_video.setdefault(video, set()).add(method)
    assert len(drawn) == 900
    assert all(len(methods) == 2 for methods in by_video.values())
    per_model = Counter(method for _, method in drawn)
    assert all(60 < count < 105 for count in per_model.values())  # the paper has about 80 for each of eleven
    assert drawn == draw_methods(dict.fromkeys(VIDEOS[::-1], MODELS[::-1]), 2, random.Random(42))
    assert drawn != draw_methods(there, 2, random.Random(7))


def test_rates_when_several_people_judge_are_their_mean(line: Callable[..., HumanRow]) -> None:
    rows = [
        line("completion", "p", "a.mp4", method="x", completion=(1, 0)),
        line("completion", "q", "a.mp4", method="x", completion=(1, 1)),
        line("completion", "q", "a.mp4", method="x", completion=(0, 0), repeat=1),
    ]
    assert human_rates(rows) == {("x", "a.mp4"): 0.75}


def test_alignment_when_worked_by_hand_is_that() -> None:
    people = {("x", "a"): 0.2, ("y", "a"): 0.4, ("z", "a"): 0.6, ("z", "b"): 1.0}
    verifier = {("x", "a"): 0.1, ("y", "a"): 0.5, ("z", "a"): 0.3}
    found = alignment(people, verifier, {"a": ("human", "easy"), "b": ("animal",)})
    assert list(found) == ["human", "easy", ALL]
    # ranks 1, 2, 3 and 1, 3, 2: 1 - 6 * 2 / (3 * 8) = 0.5; (2 - 1) / 3
    assert found[ALL].spearman.value == pytest.approx(0.5)
    assert found[ALL].kendall.value == pytest.approx(1 / 3)
    assert found[ALL].difference == pytest.approx((0.1 + 0.1 + 0.3) / 3)
    assert found[ALL].models["z"] == (0.6, 0.3, 1)  # the video that the verifier did not answer is out


def test_alignment_when_compared_is_that_of_scipy() -> None:
    people = {(model, video): (number * 7 % 13 + place % 3) / 20 for number, model in enumerate(MODELS)
              for place, video in enumerate(VIDEOS[:6])}  # fmt: skip
    verifier = {video: (rate * 17 % 1) for video, rate in people.items()}
    found = alignment(people, verifier, {video: ("human",) for video in VIDEOS})["human"]
    rates = list(zip(*[entry[:2] for entry in found.models.values()], strict=True))
    assert found.spearman.value == pytest.approx(spearmanr(*rates).statistic)
    assert found.kendall.value == pytest.approx(kendalltau(*rates).statistic)


def test_alignment_when_two_models_share_a_class_is_undefined_with_a_reason() -> None:
    people = {("x", "a"): 0.2, ("y", "a"): 0.4}
    found = alignment(people, people, {})
    assert found[ALL].spearman.value is None
    assert found[ALL].spearman.reason
    assert alignment({}, {}, {})[ALL].difference is None
    assert json.dumps(found[ALL].spearman.as_json())

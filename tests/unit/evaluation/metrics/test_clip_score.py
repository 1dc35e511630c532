"""The CLIP score: hand-worked values, and what is left out."""

import pytest

from fabula.evaluation.metrics.clip_score import METRIC, clip_score

Shots = list[tuple[float | None, int] | None]


def test_score_when_worked_by_hand_is_the_mean_of_the_weighted_cosines() -> None:
    found = clip_score([(0.3, 0), (0.2, 4)]).score
    # 2.5 * 0.3 = 0.75 and 2.5 * 0.2 = 0.5
    assert found.value == pytest.approx(0.625)
    assert found.counts == {"shots": 2, "without_image": 0, "without_text": 0, "cut": 1}


def test_score_when_pictures_and_texts_are_the_same_is_the_highest_and_below_zero_the_lowest() -> None:
    assert clip_score([(1.0, 0)]).score.value == METRIC.range[1]
    assert clip_score([(-0.5, 0)]).score.value == METRIC.range[0]


def test_score_when_a_picture_or_a_text_is_missing_leaves_the_shot_out_and_counts_it() -> None:
    found = clip_score([None, (None, 0), (0.2, 0)]).score
    assert found.value == pytest.approx(0.5)
    assert found.counts == {"shots": 3, "without_image": 1, "without_text": 1, "cut": 0}


@pytest.mark.parametrize(
    ("shots", "reason"),
    [([], "no picture"), ([None], "no picture"), ([(None, 0)], "no shot has an English text")],
)
def test_score_when_nothing_is_known_is_undefined(shots: Shots, reason: str) -> None:
    found = clip_score(shots).score
    assert (found.value, found.status, found.reason) == (None, "undefined", reason)


def test_score_when_shots_come_in_another_order_is_the_same() -> None:
    shots: Shots = [(value, 0) for value in (0.25, 0.5, 0.125)]
    assert clip_score(shots).score.value == clip_score(shots[::-1]).score.value

"""The CLIP score: hand-worked values, its definitions, and what is left out."""

import pytest

from fabula.evaluation.metrics.clip_score import METRIC, clip_score

NOTHING: dict[str, int] = {}


def test_score_when_worked_by_hand_is_the_mean_of_the_weighted_cosines() -> None:
    shots = [({"static": 0.3}, NOTHING), ({"static": 0.2}, {"static": 4})]
    found = clip_score(shots).score
    # 2.5 * 0.3 = 0.75 and 2.5 * 0.2 = 0.5
    assert found.value == pytest.approx(0.625)
    assert found.counts == {"shots": 2, "without_image": 0, "without_text": 0, "cut": 1}


def test_score_when_pictures_and_texts_are_the_same_is_the_highest_and_below_zero_the_lowest() -> None:
    assert clip_score([({"static": 1.0}, NOTHING)]).score.value == METRIC.range[1]
    assert clip_score([({"static": -0.5}, NOTHING)]).score.value == METRIC.range[0]


def test_score_when_a_picture_or_a_text_is_missing_leaves_the_shot_out_and_counts_it() -> None:
    shots = [(None, NOTHING), ({"static": None, "plot": 0.4}, NOTHING), ({"static": 0.2}, NOTHING)]
    found = clip_score(shots).score
    assert found.value == pytest.approx(0.5)
    assert found.counts == {"shots": 3, "without_image": 1, "without_text": 1, "cut": 0}
    assert clip_score(shots, "mean").score.value == pytest.approx(2.5 * (0.4 + 0.2) / 2)


@pytest.mark.parametrize(
    ("shots", "reason"),
    [([], "no picture"), ([(None, NOTHING)], "no picture"), ([({}, NOTHING)], "no shot has an English text")],
)
def test_score_when_nothing_is_known_is_undefined(shots: list, reason: str) -> None:
    found = clip_score(shots).score
    assert (found.value, found.status, found.reason) == (None, "undefined", reason)


def test_score_when_shots_come_in_another_order_is_the_same() -> None:
    shots = [({"static": value}, NOTHING) for value in (0.25, 0.5, 0.125)]
    assert clip_score(shots).score.value == clip_score(shots[::-1]).score.value

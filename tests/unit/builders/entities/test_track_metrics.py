"""Scores of tracks, by hand."""

import pytest

from fabula.testing.track_metrics import identity_scores, identity_switches

BOX = (0.0, 0.0, 10.0, 10.0)
FAR = (100.0, 0.0, 110.0, 10.0)


def test_identity_scores_when_names_agree_are_1() -> None:
    truth = [(frame, "a", BOX) for frame in range(4)]
    scores = identity_scores(truth, [(frame, 7, BOX) for frame in range(4)])
    assert (scores.precision, scores.recall, scores.f1) == (1, 1, 1)


def test_identity_scores_when_a_track_breaks_count_its_longest_part() -> None:
    # Six true boxes, five found: four under 1, one under 2; the false box overlaps nobody.
    truth = [(frame, "a", BOX) for frame in range(6)]
    found = [*((frame, 1, BOX) for frame in range(4)), (4, 2, BOX), (5, 1, FAR)]
    scores = identity_scores(truth, found)
    assert (scores.right, scores.found, scores.true) == (4, 6, 6)
    assert scores.precision == pytest.approx(4 / 6)
    assert scores.f1 == pytest.approx(8 / 12)


def test_identity_scores_when_two_swap_match_names_once() -> None:
    truth = [(frame, name, box) for frame in range(10) for name, box in (("a", BOX), ("b", FAR))]
    found = [(f, 1 if (name == "a") == (f < 7) else 2, box) for f, name, box in truth]
    assert identity_scores(truth, found).right == 14
    assert identity_switches(truth, found) == 2


def test_identity_scores_when_there_is_nothing_are_undefined() -> None:
    scores = identity_scores([], [])
    assert (scores.precision, scores.recall, scores.f1) == (None, None, None)
    assert identity_scores([(0, "a", BOX)], [(0, 1, FAR)]).f1 == 0


def test_identity_switches_when_somebody_is_lost_and_found_under_another_name_count_once() -> None:
    truth = [(frame, "a", BOX) for frame in range(6)]
    found = [(0, 1, BOX), (1, 1, BOX), (4, 2, BOX), (5, 2, BOX)]
    assert identity_switches(truth, found) == 1


def test_identity_switches_when_two_boxes_fit_keep_the_name_of_before() -> None:
    truth = [(0, "a", BOX), (1, "a", BOX)]
    near = (0.0, 1.0, 10.0, 11.0)
    assert identity_switches(truth, [(0, 1, BOX), (1, 1, near), (1, 2, BOX)]) == 0

"""Ranks of methods and their intervals over stories, by hand."""

import numpy as np
import pytest

from fabula.evaluation.stats.bootstrap import draws, rank_intervals, ranks, resampled_sums


def test_ranks_when_values_differ_count_those_that_are_better() -> None:
    assert ranks(np.array([0.2, 0.9, 0.5])).tolist() == [3, 1, 2]
    assert ranks(np.array([0.2, 0.9, 0.5]), higher=False).tolist() == [1, 3, 2]


def test_ranks_when_values_are_alike_are_shared() -> None:
    assert ranks(np.array([3.0, 4.0, 4.0 + 1e-13, 1.0])).tolist() == [3, 1, 1, 4]


def test_interval_when_one_is_always_better_is_its_rank_alone() -> None:
    table = np.array([[0.9, 0.1], [0.8, 0.3], [0.7, 0.2]])
    assert rank_intervals(table, resamples=200) == ((1, 1), (2, 2))
    assert rank_intervals(table, higher=False, resamples=200) == ((2, 2), (1, 1))


def test_interval_when_stories_disagree_holds_both_ranks() -> None:
    table = np.array([[0.9, 0.1], [0.1, 0.85], [0.9, 0.2], [0.1, 0.8]])
    assert rank_intervals(table, resamples=500) == ((1, 2), (1, 2))


def test_interval_when_counted_out_by_hand_is_that_of_the_drawings() -> None:
    # Two stories, each favours another method, the first by more: drawn twice, the second wins in a quarter.
    table = np.array([[1.0, 0.0], [0.0, 0.5]])
    means = np.concatenate(list(draws(2, 4000))) @ table / 2
    second = float((means[:, 1] > means[:, 0]).mean())
    assert second == pytest.approx(0.25, abs=0.03)
    assert rank_intervals(table, resamples=4000) == ((1, 2), (1, 2))


@pytest.mark.parametrize("table", [np.empty((0, 3)), np.empty((3, 0))])
def test_interval_when_there_is_nothing_is_none(table: np.ndarray) -> None:
    assert rank_intervals(table) == ()
    assert rank_intervals(np.ones((2, 2)), resamples=0) == ()


def test_drawings_when_asked_for_again_are_the_same_and_cannot_be_changed() -> None:
    (first,), (second,) = list(draws(5, 100)), list(draws(5, 100))
    assert (first == second).all() and (first.sum(axis=1) == 5).all()
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 7
    assert resampled_sums(np.ones((5, 1)), 100).tolist() == [[5.0]] * 100
    assert list(draws(5, 0)) == []

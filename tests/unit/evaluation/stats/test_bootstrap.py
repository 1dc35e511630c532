"""Resampling, intervals, p-values, corrections and effect sizes."""

import numpy as np
import pytest
from scipy import stats

from fabula.evaluation.stats.bootstrap import (
    divided,
    draws,
    mean_of_known,
    percentile_interval,
    resampled_sums,
    two_sided_p,
)
from fabula.evaluation.stats.paired import cohen_d
from fabula.evaluation.stats.uncertainty import bonferroni


def test_draws_when_made_draw_as_many_stories_as_there_are():
    blocks = list(draws(50, 300, 42))
    assert all((block.sum(axis=1) == 50).all() for block in blocks)
    assert sum(len(block) for block in blocks) == 300


def test_sums_when_columns_are_resampled_together_are_paired():
    columns = np.random.default_rng(0).random((40, 1))
    sums = resampled_sums(np.hstack([columns, 2 * columns]), 200, 42)
    assert sums[:, 1] == pytest.approx(2 * sums[:, 0])


def test_sums_when_the_seed_is_the_same_are_the_same():
    columns = np.arange(30.0)[:, None]
    assert (resampled_sums(columns, 100, 7) == resampled_sums(columns, 100, 7)).all()
    assert (resampled_sums(columns, 100, 7) != resampled_sums(columns, 100, 8)).any()


def test_interval_of_a_mean_when_compared_with_scipy_is_close():
    values = np.random.default_rng(3).normal(size=200)
    sums = resampled_sums(np.stack([values, np.ones(200)], axis=1), 10_000, 42)
    low, high = percentile_interval(sums[:, 0] / sums[:, 1])
    other = stats.bootstrap((values,), np.mean, method="percentile", rng=0).confidence_interval
    assert (float(low), float(high)) == pytest.approx((other.low, other.high), abs=0.01)


def test_interval_when_some_values_are_unknown_leaves_them_out():
    values = np.array([[0.0, np.nan], [1.0, np.nan], [np.nan, np.nan]])
    low, high = percentile_interval(values, 0.5)
    assert (low[0], high[0]) == (0.25, 0.75)
    assert np.isnan(low[1])


def test_interval_when_nothing_was_drawn_is_unknown():
    low, high = percentile_interval(np.zeros((0, 3)))
    assert np.isnan(low).all() and np.isnan(high).all()


@pytest.mark.parametrize(
    ("differences", "p"),
    [([1.0] * 99, 2 / 100), ([-1.0] * 49 + [1.0] * 50, 1.0), ([0.0] * 9, 1.0)],
)
def test_bootstrap_p_when_counted_is_twice_the_smaller_tail(differences, p):
    assert two_sided_p(np.array(differences)) == pytest.approx(p)


def test_bonferroni_when_one_is_unknown_counts_the_others():
    assert bonferroni(np.array([0.01, 0.4, np.nan])) == pytest.approx([0.02, 0.8, np.nan], nan_ok=True)


def test_cohen_d_when_worked_by_hand_is_mean_over_deviation():
    # differences 1, 2, 3: mean 2, standard deviation 1
    assert cohen_d(np.array([1.0, 2.0, 3.0])) == pytest.approx(2.0)
    assert np.isnan(cohen_d(np.array([0.5, 0.5])))


def test_divided_when_nothing_was_counted_is_unknown():
    assert np.isnan(divided(np.array([1.0]), np.array([0.0])))[0]
    assert mean_of_known(np.array([1.0, np.nan, 3.0])) == 2.0

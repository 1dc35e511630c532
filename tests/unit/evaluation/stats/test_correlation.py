"""Correlations against worked values, scipy, and their own limits."""

import math

import numpy as np
import pytest
from scipy import stats

from fabula.evaluation.stats.correlation import (
    NAMES,
    correlate,
    kendall,
    rank_correlations,
    spearman,
)

X = [2.0, 4.0, 6.0, 8.0, 10.0, 3.0, 7.0, 1.0]
Y = [1.0, 3.0, 5.5, 7.0, 12.0, 4.0, 5.0, 2.0]


def test_pearson_when_worked_by_hand_agrees():
    # deviations (-1, 0, 1) and (-4/3, -1/3, 5/3): 3 / sqrt(2 * 14/3) = 0.98198
    assert correlate("pearson", [1, 2, 3], [1, 2, 4]).value == pytest.approx(3 / math.sqrt(2 * 14 / 3))


def test_pearson_interval_when_compared_with_scipy_is_the_same():
    found, other = correlate("pearson", X, Y), stats.pearsonr(X, Y)
    interval = other.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p == pytest.approx(other.pvalue)


def test_spearman_interval_when_computed_uses_its_own_standard_error():
    found = spearman(X, Y)
    z, spread = math.atanh(found.value), math.sqrt((1 + found.value**2 / 2) / 5)
    assert math.atanh(found.high) - z == pytest.approx(1.959964 * spread, rel=1e-6)


def test_kendall_when_there_are_ties_is_tau_b():
    # pairs of (1, 1), (1, 2), (2, 2), (3, 3): 4 concordant, 0 discordant, one tie in each: 4 / sqrt(5 * 5)
    assert kendall([1, 1, 2, 3], [1, 2, 2, 3]).value == pytest.approx(4 / 5)


@pytest.mark.parametrize("name", NAMES)
def test_correlation_when_a_number_is_missing_leaves_the_pair_out(name):
    found = correlate(name, [*X, math.nan], [*Y, 1.0])
    assert (found.pairs, found.left_out) == (8, 1)
    assert found.value == correlate(name, X, Y).value


@pytest.mark.parametrize("name", NAMES)
def test_correlation_when_perfect_is_one_and_has_no_width(name):
    found = correlate(name, X, X)
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize(("x", "y"), [([1, 1, 1], [1, 2, 3]), ([1, 2], [1, 2]), ([], [])])
def test_correlation_when_undefined_says_why(x, y):
    found = correlate("pearson", x, y)
    assert found.value is None
    assert found.reason


def test_correlation_when_lengths_differ_is_an_error():
    with pytest.raises(ValueError, match="same length"):
        correlate("pearson", [1, 2, 3], [1, 2])


def test_rank_correlations_when_compared_with_spearman_are_the_same():
    table = np.random.default_rng(1).random((4, 6))
    found = rank_correlations(table)
    assert found == pytest.approx([spearman(table[0], row).value for row in table[1:]])

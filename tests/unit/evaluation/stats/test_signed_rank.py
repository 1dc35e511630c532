"""Wilcoxon's signed-rank test: a published example, scipy, and every assignment of signs counted out."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from fabula.evaluation.stats.paired import EXACT, Alternative, signed_rank

# Darwin's fifteen pairs of plants, in eighths of an inch.
DARWIN = np.array([6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75], dtype=np.float64)


def test_test_when_given_darwins_plants_is_the_published_result() -> None:
    found = signed_rank(DARWIN)
    assert (found.positive, found.negative, found.count, found.exact) == (96, 24, 15, True)
    assert found.p_value == pytest.approx(0.0206298828125)
    assert signed_rank(DARWIN, "two-sided").p_value == pytest.approx(0.041259765625)
    assert found.rank_biserial == pytest.approx((96 - 24) / 120)


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("count", [5, EXACT, EXACT + 1, 300])
def test_test_when_there_are_no_ties_is_that_of_scipy(alternative: Alternative, count: int) -> None:
    values = np.random.default_rng(count).normal(0.2, 1, count)
    method = "exact" if count <= EXACT else "approx"
    wanted = wilcoxon(values, alternative=alternative, method=method).pvalue
    assert signed_rank(values, alternative).p_value == pytest.approx(wanted)


def test_test_when_there_are_many_ties_is_scipys_approximation() -> None:
    values = np.random.default_rng(0).integers(-2, 4, 400).astype(np.float64)
    wanted = wilcoxon(values, alternative="greater", zero_method="wilcox", method="approx").pvalue
    found = signed_rank(values)
    assert found.p_value == pytest.approx(wanted)
    assert found.zeros == (values == 0).sum()
    assert not found.exact


@pytest.mark.parametrize("values", [[2, 1, 1, 0, -1], [1, 1, 1, 1], [-2, -1, -1, 2, 2, 0, 1], [-1], [2, -2]])
def test_test_when_few_are_tied_counts_every_assignment_of_signs(values: list[int]) -> None:
    kept = [value for value in values if value]
    ranks = rankdata(np.abs(kept))
    observed = sum(rank for rank, value in zip(ranks, kept, strict=True) if value > 0)
    sums = [float(ranks @ np.array(signs)) for signs in product((0, 1), repeat=len(kept))]
    wanted = sum(one >= observed for one in sums) / len(sums)
    assert signed_rank(np.array(values, dtype=np.float64)).p_value == pytest.approx(wanted)


def test_test_when_all_are_zero_says_nothing() -> None:
    found = signed_rank(np.zeros(4))
    assert (found.p_value, found.count, found.zeros) == (1.0, 0, 4)
    assert np.isnan(found.rank_biserial)

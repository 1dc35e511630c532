"""Paired comparisons: oracles are scipy's tests, Holm's own definition by closed testing, and simulations."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats
from scipy.stats import rankdata, ttest_1samp, wilcoxon

from fabula.evaluation.stats.paired import EXACT, Alternative, Pair, cohen_d, paired, signed_rank
from fabula.evaluation.stats.uncertainty import Uncertainty, bonferroni, holm, two_sided_p
from fabula.validators.resampling import percentile_interval, resampled_sums

STUDIES, RESAMPLES = 8_000, 500


def normal(random, shape):
    return random.normal(size=shape)


def gaps_of_stories(random, shape):
    """Differences of two equally good methods: 12 questions a story, stories of unlike difficulty."""
    hard = random.beta(4, 2, size=shape)
    return (random.binomial(12, hard) - random.binomial(12, hard)) / 12


def rejections(studies, uncertainty):
    """Return the share of studies, shape (units, studies), whose interval leaves out zero."""
    units = len(studies)
    replicates = resampled_sums(studies, RESAMPLES) / units
    low, high = uncertainty.ends(studies.mean(axis=0), replicates, units)
    return float(((low > 0) | (high < 0)).mean())


@pytest.mark.parametrize("units", [6, 10, 15, 25])
@pytest.mark.parametrize("draw", [normal, gaps_of_stories])
def test_interval_when_two_methods_are_alike_leaves_out_zero_in_four_to_six_percent(draw, units):
    studies = draw(np.random.default_rng(units), (units, STUDIES))
    assert 0.04 <= rejections(studies, Uncertainty()) <= 0.06
    assert rejections(studies, Uncertainty(interval="percentile")) > 0.062


@pytest.mark.parametrize("units", [6, 10, 29])
def test_comparison_when_units_are_few_has_the_interval_and_p_value_of_students_t(units):
    differences = np.random.default_rng(units).normal(0.3, 1, size=units)
    (found,) = paired([Pair("a", "b", differences)], "story", Uncertainty())
    wanted = ttest_1samp(differences, 0)
    ends = wanted.confidence_interval(0.95)
    assert found.interval == "t"
    assert found.p_bootstrap == pytest.approx(wanted.pvalue, rel=0.05)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=0.03)
    assert (found.higher, found.lower, found.equal) == ((differences > 0).sum(), (differences < 0).sum(), 0)


def test_comparison_when_units_are_below_six_has_neither_interval_nor_test():
    (found,) = paired([Pair("a", "b", np.array([0.1, 0.2, 0.1, 0.3, 0.2]))], "story", Uncertainty())
    assert (found.interval, found.low, found.high) == (None, None, None)
    assert (found.p_bootstrap, found.p_wilcoxon, found.tests) == (None, None, ())
    assert found.difference == pytest.approx(0.18)
    assert found.rank_biserial == 1


def test_comparison_when_percentiles_are_asked_for_has_those_of_the_papers_for_any_size():
    differences = np.array([0.1, 0.2, 0.1, 0.3])
    (found,) = paired([Pair("a", "b", differences)], "story", Uncertainty(interval="percentile"))
    means = resampled_sums(differences[:, None])[:, 0] / 4
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, (0.025, 0.975))))
    assert found.interval == "percentile"
    assert found.p_wilcoxon == 0.125


@pytest.mark.parametrize("constant", [0.0, 0.25])
def test_comparison_when_all_differences_are_the_same_has_a_p_value_above_zero(constant):
    (found,) = paired([Pair("a", "b", np.full(8, constant))], "prompt", Uncertainty())
    assert found.p_bootstrap == (1.0 if constant == 0 else pytest.approx(2 / 10_001))
    assert found.low == found.high == constant


def test_p_values_when_several_are_corrected_stay_raw_beside_the_corrected_ones():
    random = np.random.default_rng(5)
    shifts = {"b": 0.5, "c": 0.4, "d": 0.0}
    pairs = [Pair("a", name, random.normal(shift, 1, size=40)) for name, shift in shifts.items()]
    for correction, way in (("holm", holm), ("bonferroni", bonferroni)):
        found = paired(pairs, "story", Uncertainty(correction=correction))
        alone = [paired([pair], "story", Uncertainty())[0] for pair in pairs]
        assert [one.p_bootstrap for one in found] == [one.p_bootstrap for one in alone]
        for name in ("p_bootstrap", "p_wilcoxon"):
            raw = np.array([getattr(one, name) for one in found])
            assert [getattr(one, f"{name}_corrected") for one in found] == pytest.approx(list(way(raw)))
        assert {one.correction for one in found} == {correction}


def test_holm_when_computed_by_closed_testing_is_the_same():
    random = np.random.default_rng(3)
    for size in (1, 2, 3, 5, 6):
        values = np.round(random.uniform(size=size) ** 3, 3)
        for place in range(size):
            others = [other for other in range(size) if other != place]
            families = [(place, *some) for many in range(size) for some in combinations(others, many)]
            # p of a family: Bonferroni's, within it; of a hypothesis: the largest of all families with it
            closed = max(min(1.0, len(family) * values[list(family)].min()) for family in families)
            assert holm(values)[place] == pytest.approx(closed)


def test_holm_when_some_are_undefined_leaves_them_out():
    found = holm(np.array([0.03, np.nan, 0.02]))
    assert found[[0, 2]] == pytest.approx([0.04, 0.04])
    assert np.isnan(found[1])


def test_winner_when_only_one_test_tells_two_apart_is_nobody():
    strong = np.random.default_rng(1).normal(1, 1, size=40)
    (found,) = paired([Pair("a", "b", strong)], "story", Uncertainty())
    assert found.winner(higher=True) == "a"
    assert found.winner(higher=False) == "b"
    (few,) = paired([Pair("a", "b", strong[:5])], "story", Uncertainty())
    assert few.winner(higher=True) is None


# Wilcoxon's signed-rank test: a published example, scipy, and every assignment of signs counted out.

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


# Resampling, intervals, p-values, corrections and effect sizes.


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

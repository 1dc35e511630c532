"""Correlations against worked values, scipy, and their own limits."""

import math
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import lcm

import krippendorff
import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest, rankdata, ttest_1samp, wilcoxon
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from fabula.evaluation.stats.tables import (
    NAMES,
    Level,
    cohen_kappa,
    correlate,
    counts_of,
    kendall,
    krippendorff_alpha,
    observed_agreement,
    rank_correlations,
    spearman,
)
from fabula.evaluation.stats.uncertainty import (
    EXACT,
    Alternative,
    Pair,
    Uncertainty,
    bonferroni,
    cohen_d,
    holm,
    levelled,
    mean_ranks,
    paired,
    paired_lines,
    rank_intervals,
    ranks,
    scale_of,
    signed_rank,
    two_sided_p,
)
from fabula.schemas.values import Score
from fabula.validators.resampling import draws, fleiss_kappa, percentile_interval, resampled_sums

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


def test_rank_correlations_when_compared_with_spearman_are_the_same():
    table = np.random.default_rng(1).random((4, 6))
    found = rank_correlations(table)
    assert found == pytest.approx([spearman(table[0], row).value for row in table[1:]])


# Agreement beyond chance: published worked examples, and two other libraries on random ratings.

# Fourteen raters, ten subjects, five categories: the example that goes with Fleiss (1971); kappa is 0.210.
FLEISS = np.array(
    [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ],
    dtype=np.float64,
)  # fmt: skip
# Four observers, twelve units, 0 for missing: Krippendorff (2011), reliability data D.
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)


def test_fleiss_kappa_when_given_the_published_example_is_its_value() -> None:
    assert fleiss_kappa(FLEISS) == pytest.approx(0.210, abs=5e-4)
    assert observed_agreement(FLEISS) == pytest.approx(0.378, abs=5e-4)


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_when_given_the_published_example_is_its_value(level: Level, value: float) -> None:
    assert krippendorff_alpha(counts_of(KRIPPENDORFF - 1, 5), level) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(5))
def test_alpha_when_ratings_are_missing_is_that_of_another_library(level: Level, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(-1, 5, (4, 40))
    there = np.where(codes < 0, np.nan, codes.astype(np.float64))
    wanted = krippendorff.alpha(there, level_of_measurement=level)
    assert krippendorff_alpha(counts_of(codes, 5), level) == pytest.approx(wanted)


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_cohen_kappa_when_compared_is_that_of_scikit_learn(weights: str) -> None:
    random = np.random.default_rng(3)
    first, second = random.integers(0, 4, 200), random.integers(0, 4, 200)
    table = confusion_matrix(first, second).astype(np.float64)
    wanted = cohen_kappa_score(first, second, weights=None if weights == "none" else weights)
    assert cohen_kappa(table, weights) == pytest.approx(wanted)


def test_agreement_when_perfect_is_one_and_in_any_order_the_same() -> None:
    perfect = np.array([[3.0, 0.0], [0.0, 3.0], [3.0, 0.0]])
    assert fleiss_kappa(perfect) == krippendorff_alpha(perfect) == observed_agreement(perfect) == 1.0
    assert fleiss_kappa(FLEISS[::-1]) == pytest.approx(fleiss_kappa(FLEISS))
    assert krippendorff_alpha(FLEISS[:, ::-1]) == pytest.approx(krippendorff_alpha(FLEISS))


@pytest.mark.parametrize("counts", [np.zeros((0, 2)), np.eye(3), np.array([[3.0, 0.0], [2.0, 0.0]])])
def test_agreement_when_nothing_can_be_said_is_undefined(counts: np.ndarray) -> None:
    assert np.isnan(fleiss_kappa(counts))
    assert np.isnan(krippendorff_alpha(counts))


def test_agreement_when_units_have_one_rating_leaves_them_out() -> None:
    with_single = np.vstack([FLEISS, np.eye(5)])
    assert fleiss_kappa(with_single) == fleiss_kappa(FLEISS)
    assert krippendorff_alpha(with_single) == krippendorff_alpha(FLEISS)


# Ranks: equal up to rounding is equal, with scipy on exact fractions; ranks of methods, by hand.


def test_ranks_when_values_differ_count_those_that_are_better() -> None:
    assert ranks(np.array([0.2, 0.9, 0.5])).tolist() == [3, 1, 2]
    assert ranks(np.array([0.2, 0.9, 0.5]), higher=False).tolist() == [1, 3, 2]


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


WHOLE = lcm(*range(1, 13))


def fractions(seed: int, count: int, most: int = 12) -> list[tuple[Fraction, Fraction]]:
    """Two shares each, such as completion rates of 1 to 12 events."""
    random = np.random.default_rng(seed)
    below = random.integers(1, most + 1, count)
    above = random.integers(0, below[:, None] + 1, (count, 2)) if count else []
    return [
        (Fraction(int(a), int(d)), Fraction(int(b), int(d)))
        for (a, b), d in zip(above, below, strict=True)
    ]  # fmt: skip


def both(shares: list[tuple[Fraction, Fraction]]) -> tuple[np.ndarray, np.ndarray]:
    """Differences as doubles, and exactly as whole numbers, for which scipy ranks without rounding."""
    doubles = np.array([float(a) - float(b) for a, b in shares])
    return doubles, np.array([float((a - b) * WHOLE) for a, b in shares])


def test_values_when_equal_up_to_rounding_become_equal_and_zero() -> None:
    third, close = 1 / 3, 1 - 2 / 3
    assert third != close != 2 / 3 - third
    values = levelled(np.array([close, 0.1 + 0.2 - 0.3, third, -0.0, np.nan, np.inf, 0.5, np.inf]))
    assert values[0] == values[2] and values[[1, 3]].tolist() == [0, 0]
    assert np.isnan(values[4]) and values[[5, 6, 7]].tolist() == [np.inf, 0.5, np.inf]
    assert levelled(np.zeros((0, 3))).shape == (0, 3)
    rows = levelled(np.array([[third, 1.0, close], [close, third, 1.0]]))
    assert rows[:, 0].tolist() == rows[[0, 1], [2, 1]].tolist()


def test_all_fractions_when_made_as_differences_of_others_have_the_ranks_of_the_exact_ones() -> None:
    shares = [
        (Fraction(a, d), Fraction(b, d)) for d in range(1, 13) for a in range(d + 1) for b in range(d + 1)
    ]
    doubles, exact = both(shares)
    assert len(np.unique(doubles)) > len(np.unique(exact))
    assert (mean_ranks(doubles) == stats.rankdata(exact)).all()


@pytest.mark.parametrize("count", [EXACT + 10, 200])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_signed_ranks_of_fractions_when_many_are_those_of_scipy_on_the_exact_ones(count, alternative) -> None:
    doubles, exact = both([pair for pair in fractions(count, 4 * count) if pair[0] != pair[1]][:count])
    wanted = stats.wilcoxon(exact, alternative=alternative, zero_method="wilcox", method="approx")
    found = signed_rank(doubles, alternative)
    assert found.p_value == pytest.approx(wanted.pvalue)
    assert found.positive == stats.rankdata(abs(exact))[exact > 0].sum()


def test_signed_ranks_when_equal_differences_differ_in_the_last_bit_are_the_sign_test() -> None:
    # 20 prompts of three events: 13 better and 7 worse by 1/3, so that all ranks are tied
    better = [1 - 2 / 3, 2 / 3 - 1 / 3, 1 / 3] * 4 + [1 - 2 / 3]
    differences = np.array([*better, *[-(2 / 3 - 1 / 3)] * 4, *[2 / 3 - 1] * 3])
    found = signed_rank(differences, "two-sided")
    assert found.p_value == pytest.approx(stats.binomtest(13, 20).pvalue)  # 0.263
    assert found.rank_biserial == pytest.approx((13 - 7) / 20)


def test_zeros_when_they_are_rounding_alone_drop_out_and_make_no_effect() -> None:
    noise = np.array([0.1 + 0.2 - 0.3, 0.3 - 0.1 - 0.2, 1 - 0.9 - 0.1] * 12)
    assert (noise != 0).all()
    found = signed_rank(noise, "two-sided")
    assert (found.count, found.zeros, found.p_value) == (0, 36, 1.0)
    for some in (noise, noise[:9], np.abs(noise[:9])):  # the bootstrap, and Student's t
        (pair,) = paired([Pair("a", "b", some)], "story", Uncertainty(resamples=200))
        assert (pair.higher, pair.lower, pair.equal) == (0, 0, len(some))
        assert (pair.p_wilcoxon, pair.p_bootstrap, pair.cohen_d) == (1.0, 1.0, None)


def test_bootstrap_when_gains_and_losses_cancel_counts_its_zeros_on_both_sides() -> None:
    # 40 thirds up, 40 down: whatever is drawn, the exact sum is a number of thirds, often none
    shares = [(Fraction(1), Fraction(2, 3)), (Fraction(1, 3), Fraction(2, 3))] * 40
    doubles, exact = both(shares)
    found, wanted = (
        paired([Pair("a", "b", some)], "prompt", Uncertainty(resamples=500))[0].p_bootstrap
        for some in (doubles, exact * 3 / WHOLE)
    )
    assert found == wanted


@pytest.mark.parametrize("count", [8, 60])
def test_correlations_of_fractions_are_those_of_scipy_on_the_exact_ones(count: int) -> None:
    (x, exact_x), (y, exact_y) = (both(fractions(seed, count, 6)) for seed in (count, count + 1))
    wanted = stats.spearmanr(exact_x, exact_y)
    found = spearman(x, y)
    assert (found.value, found.p) == pytest.approx((wanted.statistic, wanted.pvalue))
    wanted = stats.kendalltau(exact_x, exact_y)
    found = kendall(x, y)
    assert (found.value, found.p) == pytest.approx((wanted.statistic, wanted.pvalue))
    table = rank_correlations(np.stack([x, y]))
    assert table[0] == pytest.approx(stats.spearmanr(exact_x, exact_y).statistic)


def test_correlation_when_a_column_varies_by_rounding_alone_is_undefined() -> None:
    noise = [1 / 3, 1 - 2 / 3, 2 / 3 - 1 / 3, 1 / 3]
    for name in NAMES:
        assert correlate(name, noise, [1, 2, 3, 4]).reason == "all numbers of a column are the same"


def test_tiny_numbers_of_unknown_scale_when_all_are_positive_are_not_taken_for_rounding() -> None:
    p_values, gaps = np.array([3e-23, 4e-23, 0.5]), np.array([1 - 2 / 3 - 1 / 3, 0.0, 0.4, -0.4])
    assert (scale_of(p_values), scale_of(gaps)) == (0.0, 0.4)
    assert all(a < b for a, b in pairwise(levelled(p_values, scale_of(p_values))))
    found = correlate("spearman", p_values, [1, 2, 3], scales=(scale_of(p_values), 1.0))
    assert found.value == pytest.approx(1)


# -- Paired comparisons: oracles are scipy's tests, Holm's own definition by closed testing, and simulations

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


@pytest.mark.parametrize("units", [6, 10, 29])
def test_p_value_when_resamples_spread_as_the_standard_error_is_that_of_students_t(units):
    differences = np.random.default_rng(units).normal(1.5, 1.5, size=units)
    mean, error = differences.mean(), differences.std() / math.sqrt(units)
    replicates = np.repeat([mean - error, mean + error], 50_000)  # whose standard deviation is the error
    wanted = ttest_1samp(differences, 0)
    assert 2e-5 < wanted.pvalue < 0.1
    assert Uncertainty().p_value(mean, replicates, units) == pytest.approx(wanted.pvalue, rel=1e-9)
    found = Uncertainty().ends(np.array(mean), replicates, float(units))
    ends = wanted.confidence_interval(0.95)
    assert [float(end) for end in found] == pytest.approx([ends.low, ends.high], rel=1e-9)


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


@pytest.mark.parametrize("units", [6, 24, 100])
@pytest.mark.parametrize("share", [0, 1])
def test_interval_when_all_units_have_one_value_is_that_of_clopper_and_pearson(units, share):
    column = np.full((units, 1), float(share))
    (score,) = Uncertainty().with_ends([Score.ratio(units * share, units, "")], column, column**0, (0, 1))
    wanted = binomtest(units * share, units).proportion_ci(0.95, "exact")
    assert (score.low, score.high) == pytest.approx((wanted.low, wanted.high))
    low, high = Uncertainty(interval="percentile").ends(
        np.array([share]), np.full((9, 1), share), units, (0, 1)
    )
    assert low == high == share  # as the papers have it


def test_interval_when_all_units_have_one_value_between_bounds_lets_the_unseen_be_anywhere_within():
    drawn = np.full((9, 1), 2.0)
    others = 1 - 0.025 ** (1 / 10)  # 0.3085: with so large a share of others 10 units show none in 2.5 %
    low, high = Uncertainty().ends(np.array([2.0]), drawn, 10, (0.0, 5.0))
    assert (*low, *high) == pytest.approx((2 - 2 * others, 2 + 3 * others))
    assert np.isnan(Uncertainty().ends(np.array([2.0]), drawn, 10)).all()  # no bounds, so nobody knows


@pytest.mark.parametrize("constant", [0.0, 0.25])
def test_comparison_when_all_differences_are_the_same_is_exact(constant):
    (found,) = paired([Pair("a", "b", np.full(8, constant), reach=1)], "prompt", Uncertainty())
    others = 1 - 0.025 ** (1 / 8)
    wanted = constant - others * (1 + constant), constant + others * (1 - constant)
    assert (found.low, found.high) == pytest.approx(wanted)
    assert found.interval == "exact"
    # all eight have one sign by chance: twice 1/256
    assert found.p_bootstrap == (1.0 if constant == 0 else 2 / 256) == pytest.approx(found.p_wilcoxon)


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


def test_lines_of_comparisons_when_no_pair_has_enough_units_are_one_and_when_one_has_are_all() -> None:
    few = [Pair("a", "b", np.array([0.1, 0.3])) for _ in range(33)]
    (line,) = paired_lines(paired(few, "story", Uncertainty()))
    assert "2 stories: too few to tell methods apart, which takes 6" in line
    enough = Pair("a", "c", np.array([0.1, 0.2, 0.1, 0.3, 0.2, 0.1]))
    first, last = paired_lines(paired([few[0], enough], "story", Uncertainty()))
    assert first == "  a - b: +20.0, 2 stories, too few for a test"
    assert "d=" in last and "[" in last

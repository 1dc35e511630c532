"""Preferences: tests beside scipy's, pairs of methods apart, dimensions and groups by hand; all made up."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import PermutationMethod, wilcoxon

from fabula.people.participants import Resampling
from fabula.people.ratings import Preferred, preferences, preferred_dimensions
from fabula.schemas.judgement import HumanRow

Line = Callable[..., HumanRow]
NONE = Resampling(0)
EVERY = PermutationMethod(n_resamples=np.inf)
"""scipy's exact test where values tie: it goes through all assignments of signs."""


def said(
    line: Line, criterion: str, values: list[int], baseline: str = "n", **more: object
) -> list[HumanRow]:
    choice = {"method": "m", "baseline": baseline, "criterion": criterion, "simulated": True, **more}
    return [
        line("preference", f"p{person}", "s", **choice, value=value) for person, value in enumerate(values)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_few_preferences_when_tested_have_the_p_of_scipy_over_all_signs(line: Line, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-2, 3, 12).tolist()
    (found,) = preferences(said(line, "Q1", values), NONE)
    kept = np.array([value for value in values if value])
    expected = wilcoxon(kept, alternative="greater", method=EVERY)
    assert found.test.p_value == pytest.approx(expected.pvalue)
    assert found.test.positive == expected.statistic
    assert found.test.exact and found.test.zeros == values.count(0)


def test_many_preferences_when_tested_have_the_p_of_scipy_by_approximation(line: Line) -> None:
    values = np.random.default_rng(7).choice([-2, -1, 0, 1, 2], 120, p=[0.1, 0.2, 0.25, 0.25, 0.2]).tolist()
    rows = [
        line(
            "preference",
            f"p{number % 9}",
            f"s{number}",
            method="m",
            baseline="n",
            criterion="Q1",
            value=value,
        )
        for number, value in enumerate(values)
    ]
    (found,) = preferences(rows, NONE)
    expected = wilcoxon([value for value in values if value], alternative="greater", method="asymptotic")
    assert not found.test.exact
    assert found.test.p_value == pytest.approx(expected.pvalue)
    means = [np.mean(values[person::9]) for person in range(9)]
    by_person = wilcoxon([mean for mean in means if mean], alternative="greater", method=EVERY)
    assert found.by_person.p_value == pytest.approx(by_person.pvalue)


def test_tests_when_methods_are_several_pairs_are_corrected_for_each_pair_alone(line: Line) -> None:
    rows = [
        *said(line, "Q1", [2, 1, 1, 2, 1]), *said(line, "Q2", [1, 1, 1, -1, 2]), *said(line, "Q9", [0, 1]),
        *said(line, "Q1", [1, 2, 2, 1, 1], baseline="o"),
    ]  # fmt: skip
    found = {(one.baseline, one.criterion): one for one in preferences(rows, NONE)}
    assert [found["n", name].tests for name in ("Q1", "Q2", "Q9")] == [3, 3, 3]
    alone = found["o", "Q1"]
    # Five positive values: one of 2^5 assignments of signs is as extreme. One criterion here, three there.
    assert (alone.tests, alone.test.p_value, alone.p_corrected) == (1, 1 / 32, 1 / 32)
    assert found["n", "Q1"].p_corrected == pytest.approx(3 / 32)
    assert {one.correction for one in found.values()} == {"bonferroni"}


def test_dimension_when_worked_by_hand_is_the_mean_of_all_its_judgements(line: Line) -> None:
    rows = [
        *said(line, "Q1", [2, 1], group="experts"), *said(line, "Q2", [-1, 0, 1, 0], group="novices"),
        *said(line, "calm", [2], group="experts"), *said(line, "Q13", [-2]),
        line("preference", "p9", "s", method="m", baseline="n", criterion="Q2", answer="unclear"),
    ]  # fmt: skip
    causal, visual, own = preferred_dimensions(rows, NONE)
    assert (causal.dimension, causal.criteria) == ("causality", ("Q1", "Q2"))
    assert causal.mean.value == pytest.approx((2 + 1 - 1 + 0 + 1 + 0) / 6)
    assert causal.mean.counts == {"judgements": 6, "people": 4, "stories": 1}
    assert {group: mean.value for group, mean in causal.groups.items()} == {"experts": 1.5, "novices": 0.0}
    assert (visual.dimension, visual.groups) == ("visual coherence", {})
    assert (own.dimension, own.criteria, own.mean.value) == ("calm", ("calm",), 2.0)


def test_interval_when_people_are_drawn_again_holds_the_mean_of_their_means(line: Line) -> None:
    rows = [*said(line, "Q1", [2, 1, 0, -1, 1, 2]), *said(line, "Q2", [1, 1, 0, -2, 1, 2])]
    (found,) = preferred_dimensions(rows, Resampling(4000))
    means = np.array([1.5, 1.0, 0.0, -1.5, 1.0, 2.0])  # each of the six said two things
    drawn = np.random.default_rng(1).choice(means, (4000, 6)).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert found.mean.low == pytest.approx(low, abs=0.1)
    assert found.mean.high == pytest.approx(high, abs=0.1)


def test_criterion_when_nobody_decided_has_no_mean_and_ranks_nothing(line: Line) -> None:
    choice = {"method": "m", "baseline": "n", "criterion": "Q1"}
    rows = [line("preference", f"p{person}", "s", **choice, answer="unclear") for person in range(3)]
    found: Preferred = preferences(rows, NONE)[0]
    assert (found.mean.status, found.unclear, found.test.count) == ("undefined", 3, 0)
    assert preferred_dimensions(rows, NONE)[0].mean.status == "undefined"

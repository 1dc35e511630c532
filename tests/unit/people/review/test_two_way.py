"""Intervals over reviewers and items: worked by hand, and right where the truth is known."""

import numpy as np
import pytest
from scipy.special import expit

from fabula.evaluation.stats.agreement import fleiss_kappa, krippendorff_alpha
from fabula.people.review.two_way import Codes, Crossed, agreement_of, mean_of, share_of
from fabula.validators.resampling import Floats

STUDIES = 400
"""Simulated studies for each coverage: three standard errors of 95 % are 3.3 points."""


def crossed(reviewers: list[int], items: list[int]) -> Crossed:
    return Crossed.of(np.array(reviewers), np.array(items))


def design(reviewers: int, items: int, votes: int) -> Crossed:
    """Return a study in which each item has some votes, dealt in turn."""
    who = np.array([(item * votes + vote) % reviewers for item in range(items) for vote in range(votes)])
    return Crossed(who, np.repeat(np.arange(items), votes))


def test_mean_when_worked_by_hand_has_that_interval() -> None:
    # six items of three reviewers, who differ by 1: 0, 1, 2 on each; the items are all alike
    study = crossed([0, 1, 2] * 6, [item for item in range(6) for _ in range(3)])
    measured = mean_of(np.array([0.0, 1.0, 2.0] * 6), study)
    # without a reviewer: 1.5, 1, 0.5: V_r = 2/3 (0.25 + 0.25) = 1/3; without an item always 1: V_i = 0;
    # without a vote: 17 values 18/17, 1, 16/17: V_v = 17/18 * 12 / 17^2 = 0.0392, and V = max(V_r - V_v, V_r)
    assert measured.value == 1.0
    reach = 4.302652729911275 * np.sqrt(1 / 3)  # t of 2 degrees of freedom
    assert measured.low == pytest.approx(1 - reach)
    assert measured.high == pytest.approx(1 + reach)
    assert (measured.over, measured.counts) == (
        "reviewers and items", {"votes": 18, "reviewers": 3, "items": 6},
    )  # fmt: skip


def test_mean_when_two_people_rate_is_over_items_alone_as_a_usual_t_interval() -> None:
    values = np.array([1.0, 2, 3, 4, 5, 6])
    measured = mean_of(
        np.repeat(values, 2), crossed([0, 1] * 6, [item for item in range(6) for _ in range(2)])
    )
    reach = 2.5705818366147395 * values.std(ddof=1) / np.sqrt(6)  # t of 5 degrees of freedom
    assert measured.over == "items"
    assert measured.low == pytest.approx(3.5 - reach)


@pytest.mark.parametrize("items", [0, 1, 5])
def test_number_when_there_are_few_items_has_no_interval(items: int) -> None:
    study = crossed([0, 1, 2] * items, [item for item in range(items) for _ in range(3)])
    hits = np.array([1.0, 0.0, 1.0] * items)
    for measured in (mean_of(hits, study), share_of(hits, study)):
        assert (measured.low, measured.high, measured.over) == (None, None, None)
        assert measured.value == (pytest.approx(2 / 3) if items else None)


def test_share_when_all_pass_has_an_interval_that_says_how_sure_that_is() -> None:
    measured = share_of(np.ones(90), design(6, 30, 3))
    # Wilson's with p = 1: n / (n + t^2), of as many votes as there are items
    t = 2.045229642132703
    assert (measured.value, measured.high) == (1.0, 1.0)
    assert measured.low == pytest.approx(30 / (30 + t * t))


def test_numbers_when_votes_come_in_another_order_are_the_same() -> None:
    random = np.random.default_rng(7)
    study, values = design(5, 40, 3), random.integers(0, 2, 120).astype(np.float64)
    order = random.permutation(120)
    again = Crossed(study.reviewers[order], study.items[order])
    first, second = share_of(values, study), share_of(values[order], again)
    assert first.low == pytest.approx(second.low)
    codes = values.astype(np.int64)
    kappa = agreement_of(codes, study.items, study).kappa
    other = agreement_of(codes[order], again.items, again).kappa
    assert kappa is not None and other is not None
    assert kappa.value == pytest.approx(other.value)
    assert kappa.low == pytest.approx(other.low)


def test_agreement_when_measured_is_that_of_the_published_formulas() -> None:
    random = np.random.default_rng(3)
    study, answers = design(7, 50, 3), random.integers(0, 4, 150)
    table = np.zeros((50, 4))
    np.add.at(table, (study.items, answers), 1)
    nominal = agreement_of(answers, study.items, study)
    assert nominal.kappa is not None
    assert nominal.kappa.value == pytest.approx(fleiss_kappa(table))
    assert nominal.alpha == pytest.approx(krippendorff_alpha(table))
    ordinal = agreement_of(answers, study.items, study, ordinal=True)
    assert ordinal.kappa is None
    assert ordinal.alpha == pytest.approx(krippendorff_alpha(table, "ordinal"))


def test_kappa_when_of_fleiss_own_example_is_his() -> None:
    """Ten subjects, fourteen raters, five categories (Fleiss 1971): kappa 0.210."""
    table = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    answers = np.array([code for row in table for code, count in enumerate(row) for _ in range(count)])
    items = np.repeat(np.arange(10), 14)
    study = Crossed(np.tile(np.arange(14), 10), items)
    kappa = agreement_of(answers, items, study).kappa
    assert kappa is not None
    assert kappa.value == pytest.approx(0.210, abs=5e-4)


def test_agreement_when_all_say_the_same_or_nobody_twice_is_undefined() -> None:
    study = design(3, 8, 3)
    same = agreement_of(np.zeros(24, dtype=np.int64), study.items, study)
    assert same.kappa is not None
    assert (same.pairs, same.kappa.value, same.alpha) == (1.0, None, None)
    once = design(3, 8, 1)
    alone = agreement_of(np.zeros(8, dtype=np.int64), once.items, once)
    assert (alone.pairs, alone.alpha, alone.units) == (None, None, 0)


# -- where the truth is known


def covered(lows: list[float], highs: list[float], truth: float) -> float:
    return float(np.mean([low <= truth <= high for low, high in zip(lows, highs, strict=True)]))


@pytest.mark.parametrize(("reviewers", "items"), [(3, 60), (5, 60), (12, 100)])
@pytest.mark.parametrize(("of_reviewers", "of_items"), [(0.0, 1.0), (0.5, 1.0), (1.0, 0.3)])
def test_mean_when_reviewers_and_items_differ_is_held_in_as_many_studies_as_it_says(
    reviewers: int, items: int, of_reviewers: float, of_items: float
) -> None:
    random, study = np.random.default_rng(11), design(reviewers, items, 3)
    lows, highs = [], []
    for _ in range(STUDIES):
        values: Floats = (
            of_reviewers * random.standard_normal(reviewers)[study.reviewers]
            + of_items * random.standard_normal(items)[study.items]
            + random.standard_normal(len(study.items))
        )
        measured = mean_of(values, study)
        assert measured.low is not None and measured.high is not None
        lows.append(measured.low)
        highs.append(measured.high)
    assert 0.90 <= covered(lows, highs, 0.0) <= 0.99


@pytest.mark.parametrize(("reviewers", "items"), [(3, 60), (6, 100)])
@pytest.mark.parametrize("level", [0.0, 2.0, 4.0])
def test_share_when_reviewers_and_items_differ_is_held_in_as_many_studies_as_it_says(
    reviewers: int, items: int, level: float
) -> None:
    random, study = np.random.default_rng(5), design(reviewers, items, 3)
    truth = float(expit(level + random.standard_normal(200_000) * np.hypot(0.5, 1.0)).mean())
    lows, highs = [], []
    for _ in range(STUDIES):
        odds = level + 0.5 * random.standard_normal(reviewers)[study.reviewers]
        odds = odds + random.standard_normal(items)[study.items]
        measured = share_of((random.random(len(odds)) < expit(odds)).astype(np.float64), study)
        assert measured.low is not None and measured.high is not None
        lows.append(measured.low)
        highs.append(measured.high)
    assert 0.91 <= covered(lows, highs, truth) <= 1.0


def said(random: np.random.Generator, reviewers: int, items: int, votes: int) -> tuple[Codes, Crossed]:
    """Return labels of twelve, which reviewers find more or less often, and items make more or less easy."""
    study = design(reviewers, items, votes)
    right = random.integers(0, 12, items)[study.items]
    odds = 2 + 0.7 * random.standard_normal(reviewers)[study.reviewers]
    found = random.random(len(right)) < expit(odds + random.standard_normal(items)[study.items])
    return np.where(found, right, random.integers(0, 12, len(right))), study


def test_kappa_when_reviewers_are_more_or_less_careful_is_held_in_as_many_studies_as_it_says() -> None:
    random = np.random.default_rng(2)
    answers, study = said(random, 2000, 60_000, 3)
    whole = np.zeros((60_000, 12))
    np.add.at(whole, (study.items, answers), 1)
    truth = fleiss_kappa(whole)
    lows, highs = [], []
    for _ in range(200):
        answers, study = said(random, 5, 80, 3)
        kappa = agreement_of(answers, study.items, study).kappa
        assert kappa is not None and kappa.low is not None and kappa.high is not None
        lows.append(kappa.low)
        highs.append(kappa.high)
    assert 0.90 <= covered(lows, highs, truth) <= 0.99

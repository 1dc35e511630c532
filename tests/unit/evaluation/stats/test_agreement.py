"""Agreement beyond chance: published worked examples, and two other libraries on random ratings."""

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from fabula.evaluation.stats.agreement import (
    Level,
    cohen_kappa,
    counts_of,
    fleiss_kappa,
    krippendorff_alpha,
    observed_agreement,
)

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


def test_cohen_kappa_when_worked_by_hand_is_that() -> None:
    # 35 of 50 agree, 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / (1 - 0.5) = 0.4
    assert cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]])) == pytest.approx(0.4)


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

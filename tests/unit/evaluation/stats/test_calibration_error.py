"""Expected calibration error: by hand, and beside scikit-learn's calibration curve."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from fabula.evaluation.stats.calibration import Bin, by_value, by_width, calibration_error


def test_error_when_worked_by_hand_is_that() -> None:
    # high (0.9): 3 of 4 right, gap 0.15; low (0.25): 0 of 1, gap 0.25; (4 * 0.15 + 0.25) / 5 = 0.17
    bins = by_value(np.array([0.9, 0.9, 0.25, 0.9, 0.9]), np.array([1.0, 1.0, 0.0, 0.0, 1.0]))
    assert bins == (Bin(1, 0.25, 0.0), Bin(4, pytest.approx(0.9), 0.75))
    assert calibration_error(bins) == pytest.approx(0.17)


def test_error_when_compared_is_that_of_scikit_learns_bins() -> None:
    random = np.random.default_rng(0)
    confidence = random.uniform(size=500)
    right = (random.uniform(size=500) < confidence**2).astype(np.float64)
    accuracy, stated = calibration_curve(right, confidence, n_bins=10)
    sizes = np.histogram(confidence, bins=np.linspace(0, 1, 11))[0]
    wanted = float((sizes[sizes > 0] * np.abs(accuracy - stated)).sum() / 500)
    assert calibration_error(by_width(confidence, right)) == pytest.approx(wanted)


def test_error_when_perfect_worst_or_without_answers_is_zero_one_or_undefined() -> None:
    ones = np.ones(3)
    assert calibration_error(by_width(ones, ones)) == 0
    assert calibration_error(by_value(ones, 0 * ones)) == 1
    assert np.isnan(calibration_error(by_width(np.zeros(0), np.zeros(0))))

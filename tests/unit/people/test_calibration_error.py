"""Bins of stated confidence: by hand, and beside scikit-learn's calibration curve."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from fabula.people.against import Bin, bins_by, bins_of


def test_bins_when_worked_by_hand_are_those() -> None:
    confidence = np.array([0.9, 0.9, 0.25, 0.9, 0.9])
    bins = bins_of(confidence, np.array([1, 1, 0, 0, 1], dtype=bool), bins_by(confidence, single=True))
    assert bins == (Bin(1, 0.25, 0.0), Bin(4, pytest.approx(0.9), 0.75))


def test_bins_when_compared_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    confidence = random.uniform(size=500)
    right = random.uniform(size=500) < confidence**2
    accuracy, stated = calibration_curve(right, confidence, n_bins=10)
    sizes = np.histogram(confidence, bins=np.linspace(0, 1, 11))[0]
    bins = bins_of(confidence, right, bins_by(confidence, single=False))
    assert [one.count for one in bins] == list(sizes[sizes > 0])
    assert [one.accuracy for one in bins] == pytest.approx(accuracy)
    assert [one.confidence for one in bins] == pytest.approx(stated)


def test_bins_when_confidence_is_whole_or_nobody_answered_are_the_last_or_none() -> None:
    ones = np.ones(3)
    assert bins_of(ones, ones > 0, bins_by(ones, single=False)) == (Bin(3, 1.0, 1.0),)
    assert bins_of(np.zeros(0), np.zeros(0, dtype=bool), bins_by(np.zeros(0), single=False)) == ()

"""Agreement of simulated panels gives back what was planted."""

import math

import numpy as np
import pytest

from fabula.evaluation.stats.correlation import counts_of, krippendorff_alpha
from fabula.people.ratings import agreements
from fabula.people.review.design import Plan, Unit, design
from fabula.testing.simulated_panel import (
    Population,
    draw_panel,
    simulated_labels,
    simulated_ratings,
)

STORIES = 60
UNITS = {f"i{number:02}": Unit(f"i{number:02}", f"s{number:02}", ("m",)) for number in range(STORIES)}


def test_kappa_when_many_panels_are_asked_is_the_planted_one() -> None:
    kappa = 0.8453  # of moral labels, in KathaTrace
    population, runs = Population().with_kappa(kappa), 30
    assert population.kappa == pytest.approx(kappa)
    seats = design(list(UNITS.values()), [], Plan(raters=3))
    kappas = []
    for seed in range(runs):
        rows = simulated_labels(draw_panel(population, 3, list(UNITS), seed), seats, UNITS)
        (agreed,) = agreements(rows, {})
        assert agreed.kappa is not None and agreed.kappa.value is not None
        kappas.append(agreed.kappa.value)
    error = np.std(kappas) / math.sqrt(runs)
    assert np.mean(kappas) == pytest.approx(kappa, abs=3.5 * error)


def test_correlation_when_many_panels_rate_is_the_planted_one() -> None:
    population = Population(mean=5.5, item_spread=1.2, person_spread=0.5, noise=1.0, scale=(1, 10))
    seats, alphas = design(list(UNITS.values()), [], Plan(raters=8)), []
    for seed in range(20):
        rows = simulated_ratings(draw_panel(population, 8, list(UNITS), seed), seats, UNITS)
        codes = np.zeros((8, STORIES), dtype=np.int64)
        for row in rows:
            codes[int(row.rater.rpartition("-")[2]) - 1, int(str(row.item)[1:])] = (row.value or 1) - 1
        alphas.append(krippendorff_alpha(counts_of(codes, 10), "interval"))
    error = np.std(alphas) / math.sqrt(len(alphas))
    assert np.mean(alphas) == pytest.approx(population.icc, abs=3.5 * error + 0.01)

"""Estimates from simulated panels give back what was planted, within intervals about as often as stated."""

import math
from itertools import pairwise

import numpy as np
import pytest

from fabula.evaluation.stats.agreement import counts_of, krippendorff_alpha
from fabula.people.participants import Resampling
from fabula.people.ratings import agreements, human_ratings
from fabula.people.review.design import Plan, Unit, design
from fabula.testing.simulated_panel import (
    Population,
    Reviewer,
    draw_panel,
    simulated_labels,
    simulated_ratings,
)

STORIES = 60
UNITS = {f"i{number:02}": Unit(f"i{number:02}", f"s{number:02}", ("m",)) for number in range(STORIES)}


def test_lines_when_simulated_say_so() -> None:
    seats = design(list(UNITS.values()), [], Plan(raters=2, per_seat=30, repeats=2))
    rows = simulated_ratings(draw_panel(Population(), 4, list(UNITS)), seats, UNITS)
    assert all(row.simulated for row in rows)
    assert {row.rater for row in rows} == {f"simulated-{number}" for number in range(1, 5)}
    assert len(rows) == 4 * 32
    mine = [row.at or "" for row in rows if row.rater == "simulated-1"]
    assert all(before < after for before, after in pairwise(mine))


def test_expected_rating_when_values_are_rounded_is_the_mean_of_many() -> None:
    population = Population(scale=(1, 5), person_spread=0.5, noise=0.9)
    random = np.random.default_rng(0)
    for latent in (0.5, 2.2, 3.0, 4.6):
        said = latent + random.normal(0, 0.5, 200_000) + random.normal(0, 0.9, 200_000)
        rounded = np.clip(np.floor(said + 0.5), 1, 5)
        assert population.expected(latent) == pytest.approx(rounded.mean(), abs=0.01)


def test_mean_rating_when_many_panels_are_asked_covers_the_planted_one() -> None:
    # 30 people; the percentile interval of so few covers some 94 %.
    population, runs, covered = Population(), 150, 0
    seats = design(list(UNITS.values()), [], Plan(raters=6, per_seat=12))
    assert len(seats) == 30
    for seed in range(runs):
        panel = draw_panel(population, 30, list(UNITS), seed)
        truth = np.mean([population.expected(value) for value in panel.latent.values()])
        rated = human_ratings(simulated_ratings(panel, seats, UNITS), "m", Resampling(500))["quality"].mean
        assert rated.low is not None and rated.high is not None
        covered += rated.low <= truth <= rated.high
    assert covered / runs == pytest.approx(0.94, abs=3.5 * math.sqrt(0.94 * 0.06 / runs))


@pytest.mark.parametrize("kappa", [0.4, 0.8453])
def test_kappa_when_many_panels_are_asked_is_the_planted_one(kappa: float) -> None:
    population, runs = Population().with_kappa(kappa), 120
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
    for seed in range(60):
        rows = simulated_ratings(draw_panel(population, 8, list(UNITS), seed), seats, UNITS)
        codes = np.zeros((8, STORIES), dtype=np.int64)
        for row in rows:
            codes[int(row.rater.rpartition("-")[2]) - 1, int(str(row.item)[1:])] = (row.value or 1) - 1
        alphas.append(krippendorff_alpha(counts_of(codes, 10), "interval"))
    error = np.std(alphas) / math.sqrt(len(alphas))
    assert np.mean(alphas) == pytest.approx(population.icc, abs=3.5 * error + 0.01)


def test_habits_when_planted_are_those_of_the_lines() -> None:
    seats = design(list(UNITS.values()), [], Plan(raters=4))
    panel = draw_panel(Population(), 4, list(UNITS)).planted(
        Reviewer(1, always=4), Reviewer(2, copies=3), Reviewer(4, pace=0.1, bias=9.0)
    )
    said = {
        number: {
            row.item: row for row in simulated_ratings(panel, seats, UNITS) if row.rater.endswith(str(number))
        }
        for number in range(1, 5)
    }
    assert {row.value for row in said[1].values()} == {4}
    assert all(said[2][item].value == row.value for item, row in said[3].items())
    assert {row.value for row in said[4].values()} == {5}
    # Log-normal seconds of median 20 x 0.1; the median of 60 has a standard error of 8 %.
    middle = np.median([row.seconds or 0 for row in said[4].values()])
    assert math.log(middle / 2) == pytest.approx(0, abs=3.5 * 1.2533 * 0.5 / math.sqrt(STORIES))


def test_answers_when_the_seed_is_the_same_are_the_same() -> None:
    seats = design(list(UNITS.values()), [], Plan(raters=2))
    first, again = (
        simulated_ratings(draw_panel(Population(), 2, list(UNITS), 7), seats, UNITS) for _ in range(2)
    )
    assert first == again
    assert first != simulated_ratings(draw_panel(Population(), 2, list(UNITS), 8), seats, UNITS)

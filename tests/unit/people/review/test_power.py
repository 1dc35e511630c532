"""Widths of intervals: against published formulas, tables, and simulations with known truth."""

import math

import numpy as np
import pytest
from scipy.stats import nct, norm, t

from fabula.errors import ConfigError
from fabula.evaluation.stats.agreement import fleiss_kappa
from fabula.evaluation.stats.paired import signed_rank
from fabula.people.review.power import (
    Components,
    Crew,
    Kappa,
    Preference,
    Quantity,
    Rating,
    Share,
    items_for,
    items_to_detect,
)

Z = norm.ppf(0.975)
RUNS = 2000
WITHIN = 3.5 * math.sqrt(0.95 * 0.05 / RUNS)
"""How far a coverage of 95 % may be off in so many simulations, by chance: 1.7 points."""


# -- closed forms


def test_share_when_votes_are_independent_has_wilsons_width() -> None:
    # Wilson's interval of 10 of 40, from its two ends.
    share, votes = 0.25, 40
    middle = (share + Z**2 / (2 * votes)) / (1 + Z**2 / votes)
    ends = [
        middle
        + sign * Z * math.sqrt(share * (1 - share) / votes + Z**2 / (4 * votes**2)) / (1 + Z**2 / votes)
        for sign in (-1, 1)
    ]
    assert Share(share).width(40, Crew(votes=1)) == pytest.approx(ends[1] - ends[0])
    assert Share().width(400, Crew()) == pytest.approx(0.0565, abs=5e-5)  # the example of the module


def test_design_effect_when_items_are_clusters_is_kishs() -> None:
    # 1 + (m - 1) rho, for m votes of each item.
    assert Components(item=0.3).design_effect(50, Crew(votes=5)) == pytest.approx(1 + 4 * 0.3)
    # 1 + (k - 1) rho, for k votes of each of 10 people: 50 x 4 / 10 = 20.
    assert Components(person=0.1).design_effect(50, Crew(votes=4, people=10)) == pytest.approx(1 + 19 * 0.1)


@pytest.mark.parametrize(("shares", "votes"), [((0.3, 0.7), 2), ((0.2, 0.3, 0.5), 3), ((0.1, 0.2, 0.7), 6)])
def test_kappa_when_it_is_zero_has_the_variance_of_fleiss_nee_and_landis(
    shares: tuple[float, ...], votes: int
) -> None:
    p = np.array(shares)
    q = 1 - p
    null = 2 / (votes * (votes - 1)) * ((p @ q) ** 2 - (p * q * (q - p)).sum()) / (p @ q) ** 2
    assert Kappa(0.0, shares).variance(votes) == pytest.approx(null)


@pytest.mark.parametrize(("kappa", "share"), [(0.2, 0.3), (0.5, 0.5), (0.85, 0.1)])
def test_kappa_when_two_people_say_yes_or_no_has_the_variance_of_bloch_and_kraemer(
    kappa: float, share: float
) -> None:
    spread = 2 * share * (1 - share)
    expected = (1 - kappa) * ((1 - kappa) * (1 - 2 * kappa) + kappa * (2 - kappa) / spread)
    assert Kappa(kappa, (share, 1 - share)).variance(2) == pytest.approx(expected)


def test_preference_when_people_are_tested_has_the_t_interval_of_their_means() -> None:
    # 20 people with 400 x 3 / 20 = 60 votes each, of which a tenth of the variance is theirs.
    wish = Preference(1.2, Components(person=0.1), test="t")
    spread = 1.2 * math.sqrt(0.1 + 0.9 / 60)
    width = 2 * t.ppf(0.975, 19) * spread / math.sqrt(20)
    assert wish.width(400, Crew(votes=3, load=60)) == pytest.approx(width)
    single = Preference(1.2, by="vote", test="t")
    assert single.width(10, Crew(votes=3)) == pytest.approx(2 * t.ppf(0.975, 29) * 1.2 / math.sqrt(30))
    item = Preference(1.2, Components(item=0.4), by="item", test="t")
    expected = 2 * t.ppf(0.975, 9) * 1.2 * math.sqrt(0.4 + 0.6 / 3) / math.sqrt(10)
    assert item.width(10, Crew(votes=3)) == pytest.approx(expected)
    assert Preference(1.0).width(10, Crew(votes=1, people=1)) == math.inf


def test_power_when_a_t_test_is_planned_is_that_of_the_noncentral_t() -> None:
    wish = Preference(1.0, by="vote", test="t")
    expected = nct.sf(t.ppf(0.95, 49), 49, 0.4 * math.sqrt(50))
    assert wish.power(0.4, 50, Crew(votes=1)) == pytest.approx(expected, abs=1e-6)
    # The usual table: 0.5 standard deviations, one-sided 5 %, power 80 %: 27 units.
    assert items_to_detect(wish, 0.5, Crew(votes=1)) == 27


# -- the inverse

QUANTITIES = [
    (Share(0.4, Components(0.2, 0.05)), 0.08), (Rating(1.1, Components(0.3, 0.1)), 0.25),
    (Preference(1.3, Components(0.1, 0.1)), 0.3), (Kappa(0.8453, (1 / 12,) * 12), 0.05),
    (Preference(1.3, Components(0.2, 0.0), by="item", test="t"), 0.3),
]  # fmt: skip


@pytest.mark.parametrize(("quantity", "width"), QUANTITIES)
@pytest.mark.parametrize("crew", [Crew(load=40), Crew(votes=5, load=25)])
def test_items_when_sought_for_a_width_are_the_fewest(quantity: Quantity, width: float, crew: Crew) -> None:
    items = items_for(quantity, width, crew)
    assert quantity.width(items, crew) <= width < quantity.width(items - 1, crew)


def test_items_when_few_people_differ_cannot_reach_a_width() -> None:
    crew = Crew(votes=3, people=5)
    with pytest.raises(ConfigError, match="since people differ") as caught:
        items_for(Rating(1.0, Components(person=0.2)), 0.2, crew)
    assert caught.value.where == "people"
    floor = 2 * Z * math.sqrt(0.2 / 5)
    assert Rating(1.0, Components(person=0.2)).width(10**7, crew) == pytest.approx(floor, abs=1e-4)
    with pytest.raises(ConfigError, match=r"power of 0\.8 cannot be reached"):
        items_to_detect(Preference(1.0, Components(person=0.5)), 0.1, crew)


def test_people_when_they_have_a_load_grow_with_the_items() -> None:
    assert Crew(votes=3, load=60).size(1000) == 50
    assert Crew(votes=3, load=60).size(10) == 3  # an item needs three
    assert Crew(votes=3).size(1000) == 3
    assert Crew(votes=3, people=20).size(1000) == 20


@pytest.mark.parametrize(
    "make",
    [
        lambda: Crew(votes=0), lambda: Crew(votes=3, people=2), lambda: Crew(votes=1, people=2, load=3),
        lambda: Components(0.7, 0.4), lambda: Components(-0.1), lambda: Kappa(1.0, (0.5, 0.5)),
        lambda: Kappa(0.5, (0.5, 0.4)), lambda: Kappa(0.5, (0.5, 0.5)).width(10, Crew(votes=1)),
    ],
)  # fmt: skip
def test_settings_when_they_cannot_be_say_so(make: object) -> None:
    with pytest.raises(ConfigError):
        make()  # type: ignore[operator]


# -- coverage in simulations


def crossed(random: np.random.Generator, items: int, crew: Crew, parts: Components) -> np.ndarray:
    """Effects of items and people on votes, shape (runs, votes), of variance ``item`` and ``person``."""
    people = crew.size(items)
    who = np.array(
        [(item + step * (1 + item // people)) % people for item in range(items) for step in range(crew.votes)]
    )
    of_items = random.choice([-1, 1], (RUNS, items)) * math.sqrt(parts.item)
    of_people = random.choice([-1, 1], (RUNS, people)) * math.sqrt(parts.person)
    return np.repeat(of_items, crew.votes, axis=1) + of_people[:, who]


def test_share_when_items_and_people_are_clusters_covers_the_truth() -> None:
    random, crew, parts = np.random.default_rng(1), Crew(votes=3, people=20), Components(0.15, 0.03)
    share, items = 0.6, 80
    chances = share + crossed(random, items, crew, parts) * math.sqrt(share * (1 - share))
    assert 0 < chances.min() < chances.max() < 1
    shares = (random.random(chances.shape) < chances).mean(axis=1)
    votes = items * crew.votes / parts.design_effect(items, crew)
    middle = (shares + Z**2 / (2 * votes)) / (1 + Z**2 / votes)
    widths = np.array([Share(float(seen), parts).width(items, crew) for seen in shares])
    assert (np.abs(middle - share) <= widths / 2).mean() == pytest.approx(0.95, abs=WITHIN)
    assert widths.mean() == pytest.approx(Share(share, parts).width(items, crew), rel=0.01)


def test_rating_when_items_and_people_differ_covers_the_truth() -> None:
    random, crew, parts = np.random.default_rng(2), Crew(votes=3, people=12), Components(0.25, 0.1)
    deviation, items = 1.1, 60
    effects = crossed(random, items, crew, parts)
    rest = random.normal(0, math.sqrt(1 - parts.item - parts.person), effects.shape)
    means = deviation * (effects + rest).mean(axis=1)
    width = Rating(deviation, parts).width(items, crew)
    assert (np.abs(means) <= width / 2).mean() == pytest.approx(0.95, abs=WITHIN)


def test_preference_when_people_are_tested_is_as_wide_as_their_t_intervals() -> None:
    random, crew, parts = np.random.default_rng(3), Crew(votes=1, load=20), Components(person=0.15)
    people, items = 25, 500
    of_people = random.normal(0, math.sqrt(0.15), (RUNS, people))
    means = of_people + random.normal(0, math.sqrt(0.85 / 20), (RUNS, people))
    reach = t.ppf(0.975, people - 1) * means.std(axis=1, ddof=1) / math.sqrt(people)
    assert 2 * reach.mean() == pytest.approx(Preference(1.0, parts, test="t").width(items, crew), rel=0.02)
    assert (np.abs(means.mean(axis=1)) <= reach).mean() == pytest.approx(0.95, abs=WITHIN)


def test_preference_when_ranks_are_tested_is_as_wide_as_hodges_and_lehmanns_interval() -> None:
    random, votes, runs = np.random.default_rng(4), 60, 400
    low, high = np.triu_indices(votes)
    rank = round(votes * (votes + 1) / 4 - Z * math.sqrt(votes * (votes + 1) * (2 * votes + 1) / 24))
    widths = []
    for values in random.normal(0, 1.2, (runs, votes)):
        walsh = np.sort((values[low] + values[high]) / 2)
        widths.append(walsh[-rank] - walsh[rank - 1])
    predicted = Preference(1.2, by="vote").width(votes, Crew(votes=1))
    assert np.mean(widths) == pytest.approx(predicted, rel=0.03)


def test_power_when_ranks_are_tested_is_how_often_a_preference_is_detected() -> None:
    random, votes, runs = np.random.default_rng(5), 45, 1500
    detected = [signed_rank(values).p_value <= 0.05 for values in random.normal(0.4, 1, (runs, votes))]
    expected = Preference(1.0, by="vote").power(0.4, votes, Crew(votes=1))
    assert np.mean(detected) == pytest.approx(expected, abs=3.5 * math.sqrt(0.2 * 0.8 / runs))


@pytest.mark.parametrize(
    ("kappa", "shares", "votes", "items"),
    [(0.8453, (1 / 12,) * 12, 3, 1000), (0.4, (0.6, 0.3, 0.1), 3, 300), (0.6, (0.2, 0.8), 5, 300)],
)
def test_kappa_when_items_are_unanimous_or_left_to_chance_covers_the_truth(
    kappa: float, shares: tuple[float, ...], votes: int, items: int
) -> None:
    random, kappas, runs = np.random.default_rng(6), [], 500
    for _ in range(runs):
        unanimous = random.random(items) < kappa
        counts = random.multinomial(votes, shares, items)
        counts[unanimous] = votes * random.multinomial(1, shares, int(unanimous.sum()))
        kappas.append(fleiss_kappa(counts.astype(np.float64)))
    width = Kappa(kappa, shares).width(items, Crew(votes))
    covered = np.abs(np.array(kappas) - kappa) <= width / 2
    assert covered.mean() == pytest.approx(0.95, abs=WITHIN * math.sqrt(RUNS / runs))
    assert 2 * Z * np.std(kappas) == pytest.approx(width, rel=3.5 / math.sqrt(2 * runs))


def test_kappa_when_people_err_about_a_true_label_is_narrower_than_planned() -> None:
    random, labels, votes, items = np.random.default_rng(7), 6, 3, 400
    skill = 1 / labels + math.sqrt(0.7) * (1 - 1 / labels)  # gives kappa 0.7
    kappas = []
    for _ in range(300):
        truth = random.integers(labels, size=(items, 1))
        wrong = (truth + random.integers(1, labels, (items, votes))) % labels
        said = np.where(random.random((items, votes)) < skill, truth, wrong)
        counts = (said[:, :, None] == np.arange(labels)).sum(axis=1)
        kappas.append(fleiss_kappa(counts.astype(np.float64)))
    assert np.mean(kappas) == pytest.approx(0.7, abs=0.01)
    assert 2 * Z * np.std(kappas) < Kappa(0.7, (1 / labels,) * labels).width(items, Crew(votes))

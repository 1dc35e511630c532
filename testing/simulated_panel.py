"""Panels of simulated reviewers with stated bias, speed, skill and bad habits, and the truths that follow.

Whatever is computed from them is a **simulation** and says nothing of people: it finds out whether estimates
give back what was planted, and whether rules find who was planted. Every line says ``simulated``, and every
reviewer is named ``simulated-1``, ``simulated-2`` and so on.

What is planted. An item has a latent value, drawn around ``mean`` with ``item_spread``; a reviewer adds a
bias, drawn around 0 with ``person_spread``, and ``noise`` each time, and says the nearest whole number of the
scale. An item has a true label, each of ``labels`` equally likely; a reviewer says it with probability
``skill``, else one of the others, all equally likely.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.random import Generator

from ..people.review.plan import Place, Seat, Unit
from ..schemas.judgement import HumanRow

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
SECONDS, PACE_SPREAD = 20.0, 0.5
"""Median seconds that an item takes, and the standard deviation of their logarithm from item to item."""


@dataclass(frozen=True)
class Reviewer:
    """A simulated reviewer."""

    number: int  # of the reviewer, from 1
    bias: float = 0.0  # added to every rating
    skill: float | None = None  # probability that a label is the true one; None: that of the panel
    pace: float = 1.0  # how many times the usual seconds are taken
    copies: int | None = None  # number of the reviewer whose answers are said, on all items that both have
    always: int | None = None  # the rating that is said whatever is shown
    lapse: float = 0.0  # probability of failing a check
    fickle: float = 0.0  # probability that a repeated item is answered at random

    @property
    def name(self) -> str:
        """The id of the reviewer."""
        return f"simulated-{self.number}"


@dataclass(frozen=True)
class Population:
    """What items and reviewers are drawn from."""

    mean: float = 3.0  # of latent values
    item_spread: float = 0.8  # their standard deviation
    person_spread: float = 0.4  # standard deviation of reviewers' biases
    noise: float = 0.6  # standard deviation of what is added anew each time
    scale: tuple[int, int] = (1, 5)  # lowest and highest rating
    labels: tuple[str, ...] = ("courage", "honesty", "kindness", "patience")  # labels that items may have
    skill: float = 0.9  # probability that a label is the true one

    @property
    def icc(self) -> float:
        """The correlation of two people's ratings of an item, far from the ends of the scale.

        Rounding to whole numbers adds 1/12 to the variance (Sheppard's correction).
        """
        items = self.item_spread**2
        return items / (items + self.person_spread**2 + self.noise**2 + 1 / 12)

    @property
    def kappa(self) -> float:
        """Fleiss' kappa of labels: ((skill - 1 / K) / (1 - 1 / K))^2 for K labels."""
        return ((self.skill - 1 / len(self.labels)) / (1 - 1 / len(self.labels))) ** 2

    def with_kappa(self, kappa: float) -> "Population":
        """Return the same with the skill that gives this kappa."""
        chance = 1 / len(self.labels)
        return replace(self, skill=chance + math.sqrt(kappa) * (1 - chance))


@dataclass(frozen=True)
class Panel:
    """Simulated reviewers and what is true of the items."""

    population: Population  # what both are drawn from
    reviewers: Mapping[int, Reviewer]  # number -> reviewer
    latent: Mapping[str, float] = field(repr=False)  # item -> latent value
    truth: Mapping[str, str] = field(repr=False)  # item -> true label
    seed: int = 42  # of all that is drawn as they answer

    def planted(self, *habits: Reviewer) -> "Panel":
        """Return the panel with some reviewers replaced."""
        return replace(self, reviewers={**self.reviewers, **{each.number: each for each in habits}})


def draw_panel(population: Population, people: int, items: Sequence[str], seed: int = 42) -> Panel:
    """Return a panel of careful reviewers, with latent values and true labels of items."""
    random = np.random.default_rng([seed, 0])
    biases = random.normal(0, population.person_spread, people)
    latent = random.normal(population.mean, population.item_spread, len(items))
    truth = random.choice(population.labels, len(items))
    reviewers = {number: Reviewer(number, float(bias)) for number, bias in enumerate(biases, 1)}
    return Panel(
        population, reviewers, dict(zip(items, map(float, latent), strict=True)),
        dict(zip(items, map(str, truth), strict=True)), seed,
    )  # fmt: skip


def simulated_ratings(
    panel: Panel, seats: Sequence[Seat], units: Mapping[str, Unit], criterion: str = "quality"
) -> list[HumanRow]:
    """Return the ratings that reviewers give; the number of a seat says who has it.

    ``units``: item -> unit, of one method; gold items may be missing.
    """
    low, high = panel.population.scale

    def rating(reviewer: Reviewer, place: Place, random: Generator) -> int:
        if reviewer.always is not None:
            return reviewer.always
        if place.repeat and random.random() < reviewer.fickle:
            return int(random.integers(low, high + 1))
        value = panel.latent[place.item] + reviewer.bias + random.normal(0, panel.population.noise)
        return int(min(max(math.floor(value + 0.5), low), high))

    def columns(item: str, said: int | str) -> dict[str, Any]:
        unit = units[item]
        return {"kind": "rating", "item": unit.story, "method": unit.treatments[0], "criterion": criterion,
                "value": said}  # fmt: skip

    return _rows(panel, seats, rating, columns)


def simulated_labels(panel: Panel, seats: Sequence[Seat], units: Mapping[str, Unit]) -> list[HumanRow]:
    """Return the moral labels that reviewers choose from the text; the number of a seat says who has it.

    ``units``: item -> unit; gold items may be missing.
    """
    names = panel.population.labels

    def label(reviewer: Reviewer, place: Place, random: Generator) -> str:
        skill = panel.population.skill if reviewer.skill is None else reviewer.skill
        truth = panel.truth[place.item]
        others = [name for name in names if name != truth]
        return truth if random.random() < skill else others[int(random.integers(len(others)))]

    def columns(item: str, said: int | str) -> dict[str, Any]:
        return {"kind": "moral_label", "item": units[item].story, "condition": "text", "labels": (said,)}

    return _rows(panel, seats, label, columns)


Answer = Callable[[Reviewer, Place, Generator], int | str]
Columns = Callable[[str, int | str], dict[str, Any]]


def _rows(panel: Panel, seats: Sequence[Seat], answer: Answer, columns: Columns) -> list[HumanRow]:
    """Return the lines of all seats: answers, copied ones, checks, and how long each took."""
    random = np.random.default_rng([panel.seed, 1])
    said = {
        (seat.number, place.item, place.repeat): answer(panel.reviewers[seat.number], place, random)
        for seat in seats
        for place in seat.places
        if not place.check
    }
    rows = []
    for seat in seats:
        reviewer, now = panel.reviewers[seat.number], BEGIN
        for place in seat.places:
            seconds = SECONDS * reviewer.pace * math.exp(random.normal(0, PACE_SPREAD))
            now += timedelta(seconds=seconds)
            if place.check:
                passed = int(random.random() >= reviewer.lapse)
                own: dict[str, Any] = {"kind": "attention", "item": place.item, "value": passed}
            else:
                mine = said[seat.number, place.item, place.repeat]
                own = columns(place.item, said.get((reviewer.copies or 0, place.item, 0), mine))
            rows.append(
                HumanRow(rater=reviewer.name, seconds=seconds, at=now.isoformat(), repeat=place.repeat,
                         simulated=True, **own)
            )  # fmt: skip
    return rows

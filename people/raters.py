"""A judge beside several people, and people beside one another, on the same instances.

Question: does a judge agree with people as well as people agree with each other?
Formula: Cohen's kappa of verdicts, Pearson's r of scores. The judge is compared with the majority of people's
    verdicts and with the mean of their scores; every two people with each other, as the ceiling.
Input: one row per rater, verdicts 0 or 1, ``nan`` where there is none.
Output: in [-1, 1]; intervals are percentiles over instances drawn with replacement, all values of an instance
    together.
Undefined when: nothing is shared, or a rater says the same of everything.
Source: EntityBench, section B.1.
Departures: the paper gives a range of people's kappa alone; here are mean, least and greatest. An instance
    on which as many people say yes as no has no majority and is left out, and counted.
Example: a judge says 1, 1, 0, 0 and the majority 1, 0, 0, 0: they agree on 3/4, by chance on 1/2, kappa 1/2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..evaluation.stats.bootstrap import mean_of_known
from ..schemas.values import Score
from ..validators.resampling import divided
from .participants import Resampling, estimate, score_of

Floats = NDArray[np.float64]
Name = Literal["kappa", "pearson"]
WHY = "too few shared instances, or all the same"


@dataclass(frozen=True)
class Table:
    """What was said."""

    judge: Floats  # shape (entries,)
    people: Floats  # shape (raters, entries)
    owners: NDArray[np.int64]  # the instance, from 0, that each entry is about; shape (entries,)


@dataclass(frozen=True)
class Agreement:
    """How far a judge and people agree."""

    name: Name  # ``kappa`` or ``pearson``
    # judge beside people together. Its counts: entries that people answered, of these used, tied, and without
    # an answer of the judge.
    judge: Score
    people: Score  # mean over every two people
    least: float | None  # of every two people; None where no two can be compared
    greatest: float | None  # of every two people


def agreement(name: Name, table: Table, resampling: Resampling) -> Agreement:
    """Return how far a judge and people agree, and people with each other."""
    together = majority(table.people) if name == "kappa" else mean_of_known(table.people.T)
    pairs = list(combinations(range(len(table.people)), 2))
    first = np.stack([table.judge, *(table.people[left] for left, _ in pairs)], axis=1)
    second = np.stack([together, *(table.people[other] for _, other in pairs)], axis=1)
    there = np.isfinite(first) & np.isfinite(second)
    columns = (np.where(there, first, 0.0), np.where(there, second, 0.0), there.astype(np.float64))
    formula = {"kappa": _kappa, "pearson": _pearson}[name]

    def statistic(weights: Floats) -> Floats:
        values = _values(formula, columns, weights[:, table.owners])
        return np.stack([values[:, 0], mean_of_known(values[:, 1:])], axis=1)

    instances = int(table.owners.max()) + 1 if len(table.owners) else 0
    made = estimate(statistic, instances, resampling)
    single = _values(formula, columns, np.ones((1, len(table.owners))))[0, 1:]
    known = single[np.isfinite(single)]
    answered = np.isfinite(table.people).any(axis=0)
    silent = answered & ~np.isfinite(table.judge)
    counts = {
        "answered": int(answered.sum()), "used": int(there[:, 0].sum()),
        "tied": int((answered & ~silent & ~np.isfinite(together)).sum()), "without_judge": int(silent.sum()),
    }  # fmt: skip
    compared = {"pairs": len(pairs), "pairs_compared": len(known)}
    return Agreement(
        name,
        score_of(float(made.values[0]), WHY, counts, (made.low[0], made.high[0])),
        score_of(float(made.values[1]), WHY, compared, (made.low[1], made.high[1])),
        float(known.min()) if len(known) else None,
        float(known.max()) if len(known) else None,
    )


def majority(verdicts: Floats) -> Floats:
    """Return what more people say of each entry, 0 or 1; ``nan`` for a tie or no answer.

    ``verdicts``: shape (raters, entries), 0, 1 or ``nan``.
    """
    share = mean_of_known(verdicts.T)
    return np.where(share == 0.5, np.nan, np.round(share))


Formula = Callable[[Floats, Floats, Floats, Floats, Floats], Floats]


def _values(formula: Formula, columns: tuple[Floats, Floats, Floats], weights: Floats) -> Floats:
    """Return a formula of weighted means; shape (replicates, columns)."""
    x, y, there = columns
    count = weights @ there
    x_mean, y_mean = divided(weights @ x, count), divided(weights @ y, count)
    squares = (divided(weights @ (x * x), count), divided(weights @ (y * y), count))
    return formula(x_mean, y_mean, divided(weights @ (x * y), count), *squares)


def _kappa(x: Floats, y: Floats, both: Floats, _x_square: Floats, _y_square: Floats) -> Floats:
    """Return Cohen's kappa from shares of yes; of verdicts 0 and 1 that is all that it needs."""
    observed, chance = 1 - x - y + 2 * both, x * y + (1 - x) * (1 - y)
    return divided(observed - chance, np.where(1 - chance > _NOTHING, 1 - chance, 0.0))


def _pearson(x: Floats, y: Floats, both: Floats, x_square: Floats, y_square: Floats) -> Floats:
    spread = (x_square - x * x) * (y_square - y * y)
    return divided(both - x * y, np.sqrt(np.where(spread > _NOTHING, spread, 0.0)))


_NOTHING = 1e-12
"""Rounding, not spread."""

"""Ranks as the public summary of ViStoryBench's leaderboard makes them: five categories, and one overall.

Question: where does a method stand where one place has to be said?
Formula: methods are ranked in each score, values that are equal up to rounding sharing the mean of their
    places and a missing value having the last one; the mean of a category's ranks is ranked again; of several
    runs of a method the one with the lowest mean over the categories counts. Among those runs the same is
    done once more, as whole numbers without holes, and so is the mean of the five.
Input: means over stories by run and score.
Output: whole numbers from 1, the best; equal ones where methods are level.
Undefined when: nobody has a value in a category. The public code ranks all first there, which changes no
    overall rank.
Source: ViStoryBench, ``utils/summarize_leaderboard.py``.
Departures from the source: its fixed list of methods is the methods of the evaluation. Of runs of a method
    that are level the first one counts, where the code takes any.
These ranks weigh a judge's rating like a cosine, and know no intervals: our own are by score, with intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..stats.ranks import mean_ranks

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "character": ("cids_self", "cids_cross"),
    "style": ("csd_self", "csd_cross"),
    "prompt": ("shot", "interaction", "scene", "action"),
    "quality": ("aesthetic",),
    "diversity": ("inception",),
}
"""Category -> its scores; the copy-paste rate and OCCM count in none."""

Values = Mapping[str, float]


@dataclass(frozen=True)
class OfficialRank:
    """One method."""

    method: str  # its name
    run: str  # which of its runs counts
    ranks: Mapping[str, int | None]  # category -> place; None where no method has a value in it
    overall: int  # place by the mean of those


def official_ranks(
    runs: Mapping[str, Values], variants: Mapping[str, str] | None = None
) -> tuple[OfficialRank, ...]:
    """Return the methods by their overall rank.

    ``runs``: run -> score -> its mean over stories; higher is better in all of them. ``variants``: run -> the
    method that it is a run of; one that is not listed is a method of its own.
    """
    named = variants or {}
    every = _category_ranks(runs, list(runs))
    best: dict[str, str] = {}
    for run in runs:
        method = named.get(run, run)
        mean = sum(every[category][run] for category in CATEGORIES)
        if method not in best or mean < sum(every[category][best[method]] for category in CATEGORIES):
            best[method] = run
    chosen = _category_ranks(runs, list(best.values()))
    whole = {category: _whole(ranks) for category, ranks in chosen.items()}
    means = {run: float(sum(whole[category][run] for category in CATEGORIES)) for run in best.values()}
    overall = _whole(means)
    measured = {
        category for category, names in CATEGORIES.items()
        if any(name in values for values in runs.values() for name in names)
    }  # fmt: skip
    rows = []
    for method, run in best.items():
        places = {category: whole[category][run] if category in measured else None for category in CATEGORIES}
        rows.append(OfficialRank(method, run, places, overall[run]))
    return tuple(sorted(rows, key=lambda row: (row.overall, row.method)))


def _category_ranks(runs: Mapping[str, Values], among: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return category -> run -> rank of the mean of its ranks in the scores of the category."""
    made = {}
    for category, names in CATEGORIES.items():
        columns = [_ranks({run: runs[run].get(name) for run in among}) for name in names]
        means = {run: sum(column[run] for column in columns) / len(columns) for run in among}
        made[category] = _ranks({run: -mean for run, mean in means.items()})
    return made


def _ranks(values: Mapping[str, float | None]) -> dict[str, float]:
    """Return places from 1 for the highest; equal values share a mean place, None has the last one."""
    there = [run for run, value in values.items() if value is not None]
    places = mean_ranks(-np.array([values[run] for run in there], dtype=np.float64))
    return dict.fromkeys(values, float(len(values))) | dict(zip(there, places.tolist(), strict=True))


def _whole(ranks: Mapping[str, float]) -> dict[str, int]:
    """Return ranks as whole numbers without holes."""
    order = sorted(set(ranks.values()))
    return {run: order.index(rank) + 1 for run, rank in ranks.items()}

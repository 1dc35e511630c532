"""Tables of a report on shot images: scores, where methods stand, polar charts, comparisons."""

from collections.abc import Mapping, Sequence

from ...schemas.score import Score
from ..images.leaderboard import Leaderboard
from ..images.scores import ImageScores, MethodScores
from ..metrics.registry import in_order, label_of, metric_of
from ..stats.paired import Paired
from .comparing import comparison
from .model import Comparison, Measure, ScoreRow, ScoreTable, Unit
from .shots_model import (
    LeaderColumn,
    LeaderRow,
    Leaders,
    Place,
    Polar,
    PolarAxis,
    PolarChart,
    Sector,
)

MOST_PAIRS = 60
"""Pairs of methods in all scores up to which the page lists every one."""


def unit_of(name: str) -> Unit:
    """Return how a score is printed."""
    return "number" if metric_of(name).digits == 3 else "plain"


def measure_of(name: str) -> Measure:
    """Return the column of a score."""
    return Measure(name=name, label=label_of(name), unit=unit_of(name), better=metric_of(name).better)


def headline(scores: ImageScores, order: Sequence[str]) -> ScoreTable:
    """Return every score of every method."""
    methods = {one.method: one for one in scores.methods}
    names = in_order(dict.fromkeys(name for one in scores.methods for name in one.scores))
    return ScoreTable(
        name="headline", title="Scores",
        note="Means over the stories that have a value, with 95 % intervals over stories.",
        measures=tuple(measure_of(name) for name in names),
        rows=tuple(
            ScoreRow(label=name, scores=dict(methods[name].scores))
            for name in order
        ),
    )  # fmt: skip


def leaders(board: Leaderboard) -> Leaders:
    """Return a leaderboard for the page."""
    columns = []
    for name in board.names:
        ranked = sum(name in cells and cells[name].rank is not None for cells in board.cells.values())
        known = metric_of(name)
        columns.append(
            LeaderColumn(
                name=name,
                label=label_of(name),
                digits=known.digits,
                higher=known.higher if known.ranked else None,
                ranked=ranked,
            )
        )
    rows = tuple(
        LeaderRow(
            method=method,
            unranked=board.unranked.get(method),
            places={
                name: Place(
                    score=one.score, rank=one.rank, low=one.low, high=one.high, shared=one.shared,
                    stories=one.stories, better=one.better, worse=one.worse, why=one.why,
                )
                for name, one in board.cells[method].items()
            },
        )
        for method in board.methods
    )  # fmt: skip
    by = "" if board.lead is None else f" Rows are sorted by {label_of(board.lead)}."
    return Leaders(
        note="Methods are ranked by their mean over the stories for which all ranked methods have a value; "
        'ranks x to y are the 95 % interval of the rank over resampled stories. "Better than n" counts '
        "the methods that this one beats in both paired tests, bootstrap and signed-rank, at 0.05 with "
        f"Holm's correction for the pairs of methods.{by} "
        "There is no overall rank: scores measure different things.",
        columns=tuple(columns),
        rows=rows,
    )


def polar(scores: ImageScores, board: Leaderboard) -> Polar | None:
    """Return the polar charts; None where there are fewer than three scores to show."""
    names = [name for name in in_order(board.names) if metric_of(name).column is not None]
    methods = {one.method: one for one in scores.methods}
    several = len(methods) > 1
    full: dict[str, float] = {}
    for name in names:
        top = _best(name, methods, board) if several else metric_of(name).top
        if top is not None and top > 0:
            full[name] = top
    if len(full) < 3:
        return None
    axes = tuple(
        PolarAxis(
            name=name, label=label_of(name), group=metric_of(name).group, digits=metric_of(name).digits,
            full=top,
        )
        for name, top in full.items()
    )  # fmt: skip
    charts = tuple(
        PolarChart(
            method=method,
            sectors=tuple(_sector(methods[method].scores.get(axis.name), axis) for axis in axes),
            values={
                axis.name: methods[method].scores[axis.name]
                for axis in axes
                if axis.name in methods[method].scores
            },
        )
        for method in board.methods
    )
    note = (
        "A sector's length is the score as a share of the best score of all ranked methods, which reaches "
        "the outer circle (Table S6 of the ViStoryBench paper)."
        if several
        else "With one method there is no best to compare with: a sector's length is the score as a share of "
        "the highest possible value (1 for similarities, 4 for ratings, 100 for OCCM, 10 for "
        "aesthetics); the inception score has none and is left out."
    )
    return Polar(
        note=f"{note} The line across a sector is its 95 % interval; the part beyond the outer circle or "
        "below 0 is cut off. A score without a value has no sector. The copy-paste rate (lower is better) "
        "and the CLIP score (not in Table S6) are not shown.",
        axes=axes, charts=charts,
    )  # fmt: skip


def _best(name: str, methods: Mapping[str, MethodScores], board: Leaderboard) -> float | None:
    ranked = [one for method, one in methods.items() if method not in board.unranked]
    values = [
        score.value
        for one in ranked or methods.values()
        if (score := one.scores.get(name)) is not None and score.value is not None
    ]
    return max(values, default=None)


def _sector(score: Score | None, axis: PolarAxis) -> Sector:
    def share(value: float | None) -> float | None:
        return None if value is None else min(1.0, max(0.0, value / axis.full))

    if score is None:
        return Sector(name=axis.name, radius=None)
    return Sector(name=axis.name, radius=share(score.value), low=share(score.low), high=share(score.high))


def comparisons(found: Sequence[Paired], board: Leaderboard) -> tuple[Comparison, ...]:
    """Return every pair in every score; the page shows all, or each method against the first of a score."""
    first = {
        name: next((method for method in board.methods if _rank(board, method, name) == 1), None)
        for name in board.names
    }
    return tuple(
        comparison(
            one, label_of(name), higher=metric_of(name).higher, unit=unit_of(name),
            shown=len(found) <= MOST_PAIRS or first[name] in (one.first, one.second),
        )
        for name in board.names
        for one in found
        if one.about["metric"] == name
    )  # fmt: skip


def _rank(board: Leaderboard, method: str, name: str) -> int | None:
    standing = board.cells[method].get(name)
    return None if standing is None else standing.rank

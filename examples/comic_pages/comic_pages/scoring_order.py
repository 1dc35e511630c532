"""Share of panel pairs in the right order.

Question: do the pictures of a page alone tell in which order they belong?
Formula: pairs of panels that a judge left in their order, over all pairs, n (n - 1) / 2; (tau + 1) / 2 of
    Kendall's tau. The mean over the votes on a page, then over pages.
Input: judgements of kind ``panels.order``, with the panels in the order that was given, from 1.
Output: [0, 1], higher is better; 0.5 is chance.
Undefined when: no judge gave an order; such pages are counted, and have no value.
Example: the order 2, 1, 3, 4 leaves 5 of 6 pairs: 0.833.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from fabula.evaluation.archive.archive import check_alike, read_archive
from fabula.evaluation.archive.replies import last_attempts
from fabula.evaluation.protocol import UNCERTAINTY, Chosen, Scoring
from fabula.evaluation.report.model import Measure, ReportDocument, ScoreRow, ScoreTable
from fabula.evaluation.stats.uncertainty import Pair, Paired, Uncertainty, paired
from fabula.schemas.values import Score

MEASURE = Measure(name="pairs_in_order", label="Pairs in order", better="high")


def pairs_in_order(order: Sequence[int]) -> float:
    """Return the share of pairs of panels that stand in their order."""
    return fmean(first < second for first, second in combinations(order, 2))


@dataclass(frozen=True)
class OrderScores:
    """The share of pairs in order.

    Attributes:
        pages: method -> page -> its value; None where no judge gave an order.
        manifest: of the evaluation.
    """

    pages: Mapping[str, Mapping[str, float | None]]
    manifest: Mapping[str, Any]

    def methods(self) -> dict[str, Score]:
        """Return the score of each method."""
        known = {
            name: [value for value in pages.values() if value is not None]
            for name, pages in self.pages.items()
        }
        return {
            name: Score.ratio(sum(values), len(values), "no judge gave an order", pages=len(self.pages[name]))
            for name, values in known.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return the scores as plain JSON; values are fractions."""
        methods = {name: score.as_json() for name, score in self.methods().items()}
        return {"kind": self.manifest["kind"], "methods": methods}

    def lines(self) -> Iterator[str]:
        """Yield one line per method."""
        for name, score in self.methods().items():
            value = "-" if score.value is None else f"{100 * score.value:.1f} %"
            yield f"{name}: {value} of pairs in order, {score.counts['pages']} pages"


@dataclass(frozen=True)
class OrderComparison:
    """Methods of two evaluations against each other, paired over pages."""

    comparisons: tuple[Paired, ...]

    def as_json(self) -> dict[str, Any]:
        """Return them as plain JSON."""
        return {"comparisons": [pair.as_json() for pair in self.comparisons]}

    def lines(self) -> Iterator[str]:
        """Yield one line per pair."""
        yield from (pair.line() for pair in self.comparisons)


def score(folder: Path, chosen: Chosen | None = None) -> OrderScores:  # noqa: ARG001 - as the verb asks
    """Return the scores of an evaluation."""
    archive = read_archive(folder)
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for judgement in last_attempts(archive.judgements):
        votes = values[str(judgement.method)][judgement.unit]
        if judgement.parsed is not None:
            votes.append(pairs_in_order(judgement.parsed["order"]))
    pages = {
        name: {page: fmean(votes) if votes else None for page, votes in by_page.items()}
        for name, by_page in values.items()
    }
    return OrderScores(pages, archive.manifest.as_json())


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> OrderComparison:
    """Return methods of the same name against each other; without such, each against each."""
    check_alike(read_archive(first).manifest, read_archive(second).manifest, allowed)
    ours, theirs = score(first).pages, score(second).pages
    same = [(name, name) for name in ours if name in theirs]
    pairs = []
    for name, other in same or [(name, other) for name in ours for other in theirs]:
        both = [(ours[name][page], theirs[other].get(page)) for page in ours[name]]
        gaps = [mine - its for mine, its in both if mine is not None and its is not None]
        pairs.append(Pair(name, other, np.array(gaps), reach=1.0))
    given = chosen.of("resamples", *UNCERTAINTY)
    return OrderComparison(paired(pairs, "page", Uncertainty(**given)))


def report(folder: Path, chosen: Chosen) -> ReportDocument:  # noqa: ARG001 - as the verb asks
    """Return what the page shows."""
    scores = score(folder)
    rows = tuple(
        ScoreRow(label=name, scores={MEASURE.name: value}) for name, value in scores.methods().items()
    )
    table = ScoreTable(
        name="order", title="Share of panel pairs in the right order", measures=(MEASURE,), rows=rows
    )
    return ReportDocument(
        kind=scores.manifest["kind"],
        protocol="Panel order",
        units="pages",
        title="Do the panels tell their order?",
        facts={"Methods": str(len(rows))},
        reading=("Judges see the panels of a page shuffled, and put them into order; 50 % is chance.",),
        headline=table,
        manifest=dict(scores.manifest),
    )


SCORING = Scoring("panel orders (comic-order)", score, compare, report, of_report=())

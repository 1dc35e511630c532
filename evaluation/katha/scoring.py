"""Scoring, comparing and showing evaluations of storyboards as the commands ask for it."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocol import UNCERTAINTY, Chosen, Scoring
from ..recoverability.compare import KathaComparison, compare_folders, compare_within
from ..recoverability.definitions import Definitions
from ..recoverability.score import judged_folder, read_weights, scores_of, write_tables
from ..recoverability.scores import KathaScores
from ..report.model import ReportDocument
from .affected import Affected, affected_judgements

if TYPE_CHECKING:
    from ..report.formats import Table


DIFFERENCE = "STG over the questions that are valid for all methods (negative: the first loses less)"


def definitions_of(chosen: Chosen) -> Definitions:
    """Return the definitions that were chosen."""
    given = chosen.of("matcher", "nonresponse", "support", "resamples", *UNCERTAINTY)
    weights = chosen.options.get("weights")
    return Definitions(weights=None if weights is None else read_weights(weights), **given)


def score(folder: Path, chosen: Chosen) -> KathaScores:
    """Return the scores, and write the tables behind them where they are asked for."""
    definitions, tables = definitions_of(chosen), chosen.options.get("tables")
    judged = judged_folder(
        folder, chosen.options.get("release"), definitions,
        splits=chosen.options.get("split", ()), read=chosen.stories,
    )  # fmt: skip
    if tables is not None:
        write_tables(tables, folder, judged, definitions)
    return scores_of(judged, definitions)


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> KathaComparison:
    """Return the methods of two evaluations against each other."""
    release, definitions = chosen.options.get("release"), definitions_of(chosen)
    return compare_folders(first, second, release, definitions, allowed, read=chosen.stories)


def within(folder: Path, chosen: Chosen) -> KathaComparison:
    """Return the methods of one evaluation against each other."""
    release = chosen.options.get("release")
    return compare_within(folder, release, definitions_of(chosen), read=chosen.stories)


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    """Return what the page shows."""
    from .report.page import katha_report

    release, outputs = chosen.options.get("release"), chosen.options.get("outputs", ())
    return katha_report(folder, release, outputs, read=chosen.stories)


def affected(folder: Path, old: Path, new: Path, chosen: Chosen) -> Affected:
    """Return which judgements stay valid under another version of the release."""
    return affected_judgements(folder, old, new, chosen.stories)


def tables(scores: KathaScores) -> "Iterator[Table]":
    """Yield the scores as tables: main numbers, details, each judge alone, and what was counted."""
    from ..report.formats import comparison_table
    from .report.tables import accounting, details, headline, judges_table

    yield headline(scores)
    if scores.comparisons:
        yield comparison_table(scores.comparisons, "points", DIFFERENCE)
    yield from details(scores)
    yield judges_table(scores)
    yield from accounting(scores)


def of_people(document: Mapping[str, Any]) -> "Iterator[Table]":
    """Yield what a calibration found as tables."""
    from .report.people import people_tables

    yield from people_tables(document)


SCORING = Scoring(
    "storyboards (katha)", score, compare, report, affected,
    ("release", "split", "matcher", "support", "weights", "tables", "nonresponse"),
    tables=tables, of_people=of_people, within=within, difference=DIFFERENCE, compared_by="gap",
)  # fmt: skip

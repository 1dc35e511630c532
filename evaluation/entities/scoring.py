"""Scoring and comparing evaluations of episodes as the commands ask for it."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ...errors import ConfigError
from ..protocol import UNCERTAINTY, Chosen, Scoring
from ..report.model import ReportDocument
from .metrics.aggregate import Definitions
from .scores.compare import EntityComparisons, compare_folders
from .scores.manifests import ManifestRule
from .scores.score import score_folder
from .scores.scores import EntityScores

if TYPE_CHECKING:
    from ..report.formats import Table

OPTIONS = ("coverage", "actions", "gap", "manifest")
OF_REPORT = ("stories", "methods", "megabytes", "coverage", "actions", "gap")


def definitions_of(chosen: Chosen) -> Definitions:
    """Return the definitions that were chosen."""
    return Definitions(**chosen.of("coverage", "actions", "gap", "resamples", *UNCERTAINTY))


def rule_of(chosen: Chosen) -> ManifestRule:
    """Return which rule says what evaluations may be compared."""
    given = chosen.options.get("manifest", "ours")
    for rule in get_args(ManifestRule):
        if rule == given:
            return rule  # type: ignore[no-any-return]
    raise ConfigError("--manifest", what=f"there is no rule {given!r}", fix="choose ours or b5")


def score(folder: Path, chosen: Chosen) -> EntityScores:
    """Return the scores."""
    return score_folder(folder, definitions_of(chosen))


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> EntityComparisons:
    """Return the methods of two evaluations, or of one, against each other."""
    return compare_folders(first, second, definitions_of(chosen), allowed, rule_of(chosen))


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    """Return what the page shows."""
    from ..shots.report.cards import MEGABYTES
    from .report.page import EpisodesReport, episodes_report

    given = chosen.options
    shown, methods = tuple(given.get("stories", ())), tuple(given.get("methods", ()))
    megabytes = given.get("megabytes", MEGABYTES)
    return episodes_report(folder, EpisodesReport(definitions_of(chosen), shown, methods, megabytes))


def tables(scores: EntityScores) -> "Iterator[Table]":
    """Yield the scores in the layout of the paper: Tables 4, 12 to 15 and 19 to 22."""
    from .scores.tables import score_tables

    yield from score_tables(scores)


def by_method(scores: EntityScores) -> "Table":
    """Return the metrics of Table 4 with a row for each method."""
    from .scores.tables import methods_table

    return methods_table(scores)


def compared(made: EntityComparisons) -> "Iterator[Table]":
    """Yield a comparison in the layout of the paper: Tables 5, 16 to 18 and 23."""
    from .scores.tables import comparison_tables

    yield from comparison_tables(made)


def of_people(document: Mapping[str, Any]) -> "Iterator[Table]":
    """Yield what a calibration found as tables."""
    from .report.numbers import people_tables

    yield from people_tables(document)


SCORING = Scoring(
    "videos of episodes (episodes)", score, compare, report, options=OPTIONS,
    of_report=OF_REPORT, tables=tables, by_method=by_method,
    compared=compared, of_people=of_people, unit="number",
    published={"entitybench@3776439": {"coverage": "code"}},
)  # fmt: skip

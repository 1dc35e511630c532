"""Scoring and comparing evaluations of episodes as the commands ask for it."""

from collections.abc import Collection
from pathlib import Path
from typing import get_args

from ...errors import ConfigError
from ..protocol import UNCERTAINTY, Chosen, Scoring, later
from ..report.model import ReportDocument
from .metrics.aggregate import Definitions
from .published import ManifestRule
from .scores.scores import EntityComparisons, EntityScores, compare_folders, score_folder

DEFINED = ("coverage", "actions", "unseen", "gap")
OPTIONS = (*DEFINED, "manifest")
OF_REPORT = ("stories", "methods", "megabytes", *DEFINED)


def definitions_of(chosen: Chosen) -> Definitions:
    return Definitions(**chosen.of(*DEFINED, "resamples", *UNCERTAINTY))


def rule_of(chosen: Chosen) -> ManifestRule:
    """Return which rule says what evaluations may be compared."""
    given = chosen.options.get("manifest", "ours")
    for rule in get_args(ManifestRule):
        if rule == given:
            return rule  # type: ignore[no-any-return]
    raise ConfigError("--manifest", what=f"there is no rule {given!r}", fix="choose ours or b5")


def score(folder: Path, chosen: Chosen) -> EntityScores:
    return score_folder(folder, definitions_of(chosen))


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> EntityComparisons:
    """Return the methods of two evaluations, or of one, against each other."""
    return compare_folders(first, second, definitions_of(chosen), allowed, rule_of(chosen))


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    from ..report.showing import MEGABYTES, Wanted
    from .report.page import episodes_report

    given = chosen.options
    shown, methods = tuple(given.get("stories", ())), tuple(given.get("methods", ()))
    megabytes = given.get("megabytes", MEGABYTES)
    return episodes_report(folder, Wanted(definitions_of(chosen), shown, methods, megabytes))


SCORING = Scoring(
    "videos of episodes (episodes)", score, compare, report, options=OPTIONS,
    of_report=OF_REPORT, tables=later("entities.scores.tables:score_tables"),
    by_method=later("entities.scores.tables:methods_table"),
    compared=later("entities.scores.tables:comparison_tables"),
    of_people=later("entities.report.page:people_tables"), unit="number",
    published={"entitybench@3776439": {"coverage": "code"}},
)  # fmt: skip

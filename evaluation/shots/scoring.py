"""Scoring, comparing and showing evaluations of shot images as the commands ask for it."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from ..archive.archive import read_archive
from ..comparing import Comparisons
from ..protocol import UNCERTAINTY, Chosen, Scoring, later
from ..report.model import ReportDocument
from ..stats.tables import read_aliases
from .compare import compare_folders
from .definitions import Definitions, read_definitions
from .found import read_found
from .scores import ImageScores, score_folder
from .tables import scored_shots, write_scores

OF_REPORT = ("define", "unranked", "stories", "methods", "megabytes")

CODE = ("cids=code", "copy-paste=code", "occm=code", "csd=code", "alignment=code")
"""What the public code of ViStoryBench computes; docs/images.md says where it and the paper differ."""


def definitions_of(chosen: Chosen) -> Definitions:
    """Return the definitions that were chosen."""
    return read_definitions(chosen.options.get("define", ()), **chosen.of("resamples", *UNCERTAINTY))


def score(folder: Path, chosen: Chosen) -> ImageScores:
    """Return the scores, and write them as tables where these are asked for."""
    scores, tables = score_folder(folder, definitions_of(chosen)), chosen.options.get("tables")
    scores = replace(scores, variants=read_aliases(chosen.options.get("alias", ())))
    if tables is not None:
        write_scores(tables, scores, scored_shots(read_archive(folder), read_found(folder), scores))
    return scores


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> Comparisons:
    """Return the methods of two evaluations, or of one, against each other."""
    return compare_folders(first, second, definitions_of(chosen), allowed)


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    """Return what the page shows."""
    from ..report.coverage import LEAST
    from ..report.pictures import MEGABYTES
    from ..report.showing import Wanted
    from .report.page import images_report

    given = chosen.options
    shown, methods = tuple(given.get("stories", ())), tuple(given.get("methods", ()))
    megabytes, unranked = given.get("megabytes", MEGABYTES), tuple(given.get("unranked", ()))
    least = given.get("least_coverage", LEAST)
    wanted = Wanted(definitions_of(chosen), shown, methods, megabytes, unranked, least)
    return images_report(folder, given.get("release"), given.get("outputs", ()), wanted)


SCORING = Scoring(
    "shots (images)",
    score,
    compare,
    report,
    None,
    ("define", "tables", "alias"),
    ("release", "outputs", *OF_REPORT),
    tables=later("shots.report.tables:score_tables"),
    of_people=later("shots.report.tables:people_tables"),
    unit="number",
    published={"vistorybench@514cc31": {"define": CODE}},
)

"""Scoring, comparing and showing evaluations of videos as the commands ask for it."""

from collections.abc import Collection
from pathlib import Path

from ...errors import ConfigError
from ..comparing import Comparisons
from ..protocol import UNCERTAINTY, Chosen, Scoring, later
from ..report.model import ReportDocument
from .score import EventScores, compare_folders, score_folder
from .votes import Definitions


def definitions_of(chosen: Chosen) -> Definitions:
    """Return the definitions that were chosen; what no answer counts as is called ``zero`` here."""
    given = chosen.of("voting", "nonresponse", "resamples", *UNCERTAINTY)
    if given.get("nonresponse") == "incorrect":
        given["nonresponse"] = "zero"
    return Definitions(**given)


def suite_of(chosen: Chosen) -> Path | None:
    """Return the suite that was judged: as given, or that of the given release of events."""
    suite, release = (chosen.options.get(name) for name in ("suite", "release"))
    if suite is not None and release is not None:
        raise ConfigError(
            "--release", what="--suite and a release of events are both given, and one is enough",
            fix="leave one out",
        )  # fmt: skip
    return suite if suite is not None else release


def score(folder: Path, chosen: Chosen) -> EventScores:
    """Return the scores."""
    return score_folder(folder, suite_of(chosen), definitions_of(chosen))


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> Comparisons:
    """Return the methods of two evaluations, or of one, against each other."""
    return compare_folders(first, second, suite_of(chosen), definitions_of(chosen), allowed)


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    """Return what the page shows."""
    from .report import events_report

    if chosen.options.get("outputs"):
        raise ConfigError(
            "--outputs", what="this option is for evaluations of storyboards; this one is of videos",
            fix="leave it out: the frames that judges saw are kept in the run folder",
        )  # fmt: skip
    return events_report(folder, chosen.options.get("release"))


SCORING = Scoring(
    "videos (events)",
    score,
    compare,
    report,
    None,
    ("release", "suite", "voting", "nonresponse"),
    tables=later("events.report:tables_of"),
    of_people=later("events.report:people_tables"),
    difference="completion rates (positive: the first completes more)",
    compared_by="average",
)

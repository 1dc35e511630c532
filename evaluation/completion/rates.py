"""Completion rates per method and video, from scored evaluations or people: what a suite is graded by."""

from collections.abc import Sequence
from pathlib import Path

from ...errors import ConfigError, InputError, UserError
from ..tables import read_table
from .scores import EventScores


def rates_of(scores: Sequence[EventScores], judge: str | None = None) -> dict[str, dict[str, float | None]]:
    """Return method -> file name -> completion rate; null where there is no answer.

    Args:
        scores: scored evaluations.
        judge: whose; None where there is one only.

    Raises:
        ConfigError: there are several judges and none is named, it has no scores, or a method has two.
    """
    panels = [panel for one in scores for panel in one.panels]
    judges = sorted({panel.panel.judge for panel in panels})
    if judge is None and len(judges) > 1:
        raise ConfigError(
            "--judge",
            what="several judges voted, and none of them is named",
            fix=f"name one of: {', '.join(judges)}",
        )
    chosen = [panel for panel in panels if judge is None or panel.panel.judge == judge]
    if not chosen:
        raise ConfigError(
            "--judge", what=f"{judge} did not vote here", fix=f"name one of: {', '.join(judges)}"
        )
    rates: dict[str, dict[str, float | None]] = {}
    for panel in chosen:
        if panel.panel.method in rates:
            raise ConfigError(
                "--results", what=f"the method {panel.panel.method} is in two evaluations",
                fix="leave one of them out",
            )  # fmt: skip
        rates[panel.panel.method] = {video.unit: video.rate for video in panel.videos}
    return rates


COLUMNS = ("method", "unit", "rate")


def read_rates(path: str | Path) -> dict[str, dict[str, float | None]]:
    """Return method -> file name -> rate from a table with the columns method, unit and rate in [0, 1].

    Raises:
        InputError: a column is missing, a rate is no share, or a video is there twice; all is listed.
    """
    table = read_table(path)
    problems = [
        UserError(
            str(path),
            what=f"the table has no column {name}, only {', '.join(table.columns)}",
            fix="add the column",
        )
        for name in COLUMNS
        if name not in table.columns
    ]
    rates: dict[str, dict[str, float | None]] = {}
    for number, row in enumerate(table.rows if not problems else (), 2):
        place = f"{path} row {number}"
        try:
            rate = float(row["rate"])
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1:
            problems.append(
                UserError(place, expected="a rate from 0 to 1", found=row["rate"], fix="correct it")
            )
        if row["unit"] in rates.setdefault(row["method"], {}):
            problems.append(UserError(place, what=f"{row['unit']} is in the table twice", fix="remove one"))
        rates[row["method"]][row["unit"]] = rate
    if problems:
        raise InputError(problems)
    return rates

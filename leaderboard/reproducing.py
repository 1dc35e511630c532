"""Scoring a submission again, number by number; withdrawing one."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import ConfigError, FabulaError, InputError, UserError
from ..evaluation.report.formats import written
from ..schemas.csv_table import CsvTable
from ..schemas.plain_files import read_plain, reason_of
from .board import Retraction, read_leaderboard, score_tables, write_leaderboard
from .opening import SCORES
from .submission import release_of, submission_named, submissions_in

SHOWN = 20
"""So many differences are printed."""


@dataclass(frozen=True)
class Changed:
    """A number that is not what was submitted; empty where it is not there."""

    number: str  # table, row and measure
    stated: str  # as it was submitted: value and ends of the interval
    ours: str  # as it comes out now


@dataclass(frozen=True)
class Reproduced:
    """A submission that was scored again."""

    name: str  # of the submission
    numbers: int  # how many numbers were compared, intervals included
    differences: tuple[Changed, ...]  # those that are not the same

    @property
    def same(self) -> bool:
        """Whether every number is the same."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        differences = [vars(each) for each in self.differences]
        return {"name": self.name, "numbers": self.numbers, "same": self.same, "differences": differences}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        if self.same:
            yield f"{self.name}: all {self.numbers:,} numbers are the same"
            return
        yield f"{self.name}: {len(self.differences):,} of {self.numbers:,} numbers differ"
        for each in self.differences[:SHOWN]:
            yield f"  {each.number}: submitted {each.stated or 'nothing'}, now {each.ours or 'nothing'}"


def reproduce(folder: Path, name: str, release: Path | None = None) -> Reproduced:
    """Score the archive of a submission again and compare every number with what was submitted."""
    leaderboard = read_leaderboard(folder)
    with submission_named(folder, name) as (files, submission):
        board = leaderboard.board(submission.board)
        try:
            tables = score_tables(files.folder, release or release_of(board, folder), board.resamples)
        except FabulaError:
            raise
        except Exception as error:  # anybody may have made it
            what = f"it cannot be scored: {type(error).__name__}: {error}"[:300]
            fix = "see what is wrong with it: fabula leaderboard check"
            raise InputError([UserError(name, what=what, fix=fix)]) from error
        try:
            stated = _numbers(read_plain(files.folder / SCORES).decode("utf-8"))
        except (OSError, ValueError) as error:
            what = f"its scores cannot be read: {reason_of(error)}"
            fix = "make it again with fabula leaderboard submit"
            raise InputError([UserError(f"{name} {SCORES}", what=what, fix=fix)]) from error
    ours = _numbers(written(tables, "csv"))
    places = list(dict.fromkeys([*stated, *ours]))
    return Reproduced(
        name,
        len(places),
        tuple(
            Changed(number, stated.get(number, ""), ours.get(number, ""))
            for number in places
            if stated.get(number) != ours.get(number)
        ),
    )


def _numbers(text: str) -> dict[str, str]:
    """Return table, row, measure and column -> number, as text."""
    return {
        " / ".join([row["table"], row["row"], row["measure"], column]): row[column]
        for _, row in CsvTable(text).named()
        for column in ("value", "low", "high", "numerator", "denominator")
        if row.get(column)
    }


def retract(folder: Path, name: str, reason: str, date: str | None = None) -> Retraction:
    """Withdraw a submission: it stays listed with the reason, and is not ranked."""
    leaderboard = read_leaderboard(folder)
    names = [path.name.removesuffix(".zip") for path in submissions_in(folder)]
    if name not in names:
        fix = f"name one of: {', '.join(names) or 'none'}"
        raise ConfigError(name, what="there is no such submission", fix=fix)
    if not reason.strip():
        raise ConfigError("--reason", what="it is empty", fix="say why, in a sentence")
    retraction = Retraction(date=date or datetime.now(UTC).date().isoformat(), reason=reason.strip())
    retracted = {**leaderboard.retracted, name: retraction}
    write_leaderboard(folder, leaderboard.model_copy(update={"retracted": retracted}))
    return retraction

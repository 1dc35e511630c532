"""People's completion rates of videos, from a plain table."""

from pathlib import Path

from ...errors import InputError, UserError
from ..tables import read_table

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

"""Published tables: rows of papers, which nobody here ran, each with the paper and the table that it is from.

Where a paper prints two numbers for one cell, both stand here, in tables of their own.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import Field

from ..errors import ConfigError
from ..evaluation.report.model import Measure, ScoreRow, ScoreTable
from ..schemas.plain_files import parse_json
from ..schemas.values import Own, Score


class PublishedTable(Own):
    """Rows of one printed table."""

    key: str = Field(description="Name on the command line.")
    paper: str = Field(description="Short title of the paper.")
    place: str = Field(description="Which table it is, and which part of it.")
    about: str = Field(description="What was scored, by whom.")
    disagrees: tuple[str, ...] = Field(default=(), description="Where the paper prints other numbers.")
    measures: tuple[Measure, ...] = Field(description="Columns; values are as they are printed.")
    rows: dict[str, tuple[float | None, ...]] = Field(description="Method -> its numbers, by column.")

    def table(self) -> ScoreTable:
        """Return it as a table of scores."""
        names = [measure.name for measure in self.measures]
        return ScoreTable(
            name=f"published-{self.key}",
            title=f"{self.paper}, {self.place}",
            note=" ".join(
                [f"{self.about} Published, not run by us: no intervals, no archive.", *self.disagrees]
            ),
            measures=self.measures,
            rows=tuple(
                ScoreRow(label=method, scores=dict(zip(names, map(_printed, values), strict=True)))
                for method, values in self.rows.items()
            ),
        )


def _printed(value: float | None) -> Score:
    if value is None:
        return Score(value=None, status="undefined", reason="not printed")
    return Score(value=value, status="ok")


@cache
def published_tables() -> dict[str, PublishedTable]:
    """Return all published tables by their keys."""
    document: Any = parse_json((files(__package__) / "published.json").read_bytes())
    tables = [PublishedTable.model_validate_json(_text(each)) for each in document["tables"]]
    return {table.key: table for table in tables}


def _text(document: Any) -> bytes:  # noqa: ANN401 - any JSON
    from ..schemas.canonical import canonical_bytes

    return canonical_bytes(document)


def published_table(key: str) -> PublishedTable:
    """Return a published table.

    Raises:
        ConfigError: there is none of that name.
    """
    known = published_tables()
    if key not in known:
        there = ", ".join(known)
        raise ConfigError(
            "--published", what=f"there is no published table {key}", fix=f"choose one of: {there}"
        )
    return known[key]

"""Printed tables of the papers, as data: every number as it is printed, with its source."""

from functools import cache
from importlib.resources import files

from pydantic import Field

from ...errors import ConfigError
from ...evaluation.report.model import Measure, ScoreRow, ScoreTable
from ...schemas.values import Own, Score

Cell = float | tuple[float, float] | None
"""A printed number, or it and half the width of its printed interval; shares as fractions."""


class PublishedTable(Own):
    """Rows of one printed table."""

    key: str = Field(description="Name on the command line.")
    paper: str = Field(description="The benchmark that the paper is about.")
    source: str = Field(description="Which table it is, and which part of it.")
    about: str = Field(description="What was scored, by whom.")
    disagrees: tuple[str, ...] = Field(default=(), description="Where the paper prints other numbers.")
    measures: tuple[Measure, ...] = Field(description="Columns.")
    rows: dict[str, tuple[Cell, ...]] = Field(description="Method -> its numbers, by column.")

    def table(self) -> ScoreTable:
        """Return it as a table of scores."""
        names = [measure.name for measure in self.measures]
        return ScoreTable(
            name=f"published-{self.key}",
            title=f"{self.paper}, {self.source}",
            note=" ".join([f"{self.about} Published, not run by us.", *self.disagrees]),
            measures=self.measures,
            rows=tuple(
                ScoreRow(label=method, scores=dict(zip(names, map(_printed, cells), strict=True)))
                for method, cells in self.rows.items()
            ),
        )


class _Document(Own):
    tables: tuple[PublishedTable, ...]


def _printed(cell: Cell) -> Score:
    if cell is None:
        return Score(value=None, status="undefined", reason="not printed")
    value, half = cell if isinstance(cell, tuple) else (cell, None)
    ends = {} if half is None else {"low": round(value - half, 6), "high": round(value + half, 6)}
    return Score(value=value, status="ok", **ends)


@cache
def published_tables() -> dict[str, PublishedTable]:
    """Return all published tables by their keys."""
    content = (files(__package__) / "published.json").read_bytes()
    return {table.key: table for table in _Document.model_validate_json(content).tables}


def published_table(key: str) -> PublishedTable:
    """Return a published table."""
    known = published_tables()
    if key not in known:
        what, fix = f"there is no published table {key}", f"choose one of: {', '.join(known)}"
        raise ConfigError("--published", what=what, fix=fix)
    return known[key]

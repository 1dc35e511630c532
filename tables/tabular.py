"""What results have in common: they are tables, for a notebook, a frame, a paper, a figure."""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, MissingRequirement
from .figure import Figure, bars
from .grid import Grid, arrow_of, html_of, latex_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Tabular:
    """A result that is one or more tables; each class says which, the main one first."""

    __slots__ = ()

    def grids(self) -> Iterable[Grid]:
        """Return its tables."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_of(self.grids())

    def to_arrow(self, name: str | None = None) -> "pa.Table":
        """Return one of its tables as an Arrow table.

        Args:
            name: which; the first by default.

        Raises:
            ConfigError: there is none of that name.
        """
        grid = self._grid(name)
        return arrow_of(grid.columns, grid.rows)

    def to_pandas(self, name: str | None = None) -> "pd.DataFrame":
        """Return one of its tables as a pandas frame; as :meth:`to_arrow`.

        Raises:
            MissingRequirement: pandas is not installed.
        """
        _library("pandas")
        frame: pd.DataFrame = self.to_arrow(name).to_pandas(split_blocks=True, self_destruct=True)
        return frame

    def to_polars(self, name: str | None = None) -> "pl.DataFrame":
        """Return one of its tables as a polars frame; as :meth:`to_arrow`.

        Raises:
            MissingRequirement: polars is not installed.
        """
        frame: pl.DataFrame = _library("polars").from_arrow(self.to_arrow(name))
        return frame

    def to_latex(self) -> str:
        """Return all its tables as LaTeX; the document needs the package booktabs."""
        return latex_of(self.grids())

    def plot(self) -> Figure:
        """Return a figure of its main table: a bar for each row, by the first column of numbers.

        Raises:
            ConfigError: it has no numbers.
        """
        grid = self._grid(None)
        for number, column in enumerate(grid.columns):
            values = [row[number] for row in grid.rows]
            numbers = [float(value) for value in values if isinstance(value, int | float)]
            if numbers and len(numbers) == len(values):
                labels = [str(row[0]) for row in grid.rows]
                return bars(f"{grid.title}: {column}", labels, numbers)
        raise ConfigError(grid.title, what="there are no numbers to draw", fix="use to_pandas()")

    def _grid(self, name: str | None) -> Grid:
        grids = list(self.grids())
        for grid in grids:
            if name in (None, grid.name):
                return grid
        names = ", ".join(dict.fromkeys(grid.name for grid in grids))
        raise ConfigError(f"table {name}", what="there is no such table", fix=f"use one of: {names}")


def _library(name: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingRequirement(
            name, what="the library is not installed", fix=f"pip install {name}"
        ) from error

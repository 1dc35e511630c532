"""What results have in common: they are tables, for a notebook, a frame, a paper."""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, MissingRequirement
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
        """Return one of its tables as an Arrow table."""
        grid = self._grid(name)
        return arrow_of(grid.columns, grid.rows)

    def to_pandas(self, name: str | None = None) -> "pd.DataFrame":
        """Return one of its tables as a pandas frame; as :meth:`to_arrow`."""
        _library("pandas")
        frame: pd.DataFrame = self.to_arrow(name).to_pandas(split_blocks=True, self_destruct=True)
        return frame

    def to_polars(self, name: str | None = None) -> "pl.DataFrame":
        """Return one of its tables as a polars frame; as :meth:`to_arrow`."""
        frame: pl.DataFrame = _library("polars").from_arrow(self.to_arrow(name))
        return frame

    def to_latex(self) -> str:
        """Return all its tables as LaTeX; the document needs the package booktabs."""
        return latex_of(self.grids())

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

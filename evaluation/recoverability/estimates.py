"""Values of many metrics at once, with bootstrap intervals over stories."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...schemas.score import Score
from ..stats.bootstrap import percentile_interval, resampled_sums
from .definitions import Definitions

Floats = NDArray[np.float64]


@dataclass
class Sheet:
    """Columns of sums per story, side by side under names, so that all are resampled together.

    Attributes:
        stories: how many rows there are.
    """

    stories: int
    _parts: list[Floats] = field(default_factory=list, repr=False)
    _places: dict[tuple[str, ...], slice] = field(default_factory=dict, repr=False)
    _width: int = 0

    def add(self, name: tuple[str, ...], columns: Floats) -> None:
        """Add columns, shape (stories, some)."""
        self._parts.append(columns)
        self._places[name] = slice(self._width, self._width + columns.shape[1])
        self._width += columns.shape[1]

    def matrix(self) -> Floats:
        """Return all columns, shape (stories, columns)."""
        if len(self._parts) != 1:
            joined = np.concatenate(self._parts, axis=1) if self._parts else np.zeros((self.stories, 0))
            self._parts = [joined]
        return self._parts[0]

    def part(self, sums: Floats, name: tuple[str, ...]) -> Floats:
        """Return the columns of one name out of sums of all, shape (..., some)."""
        return sums[..., self._places[name]]

    def resampled(
        self, definitions: Definitions, stories: NDArray[np.bool_] | None = None
    ) -> tuple[Floats, Floats]:
        """Return the sums over all stories, shape (columns,), and over resamples, (resamples, columns).

        Args:
            definitions: how often to draw, and from which seed.
            stories: which stories there are, shape (stories,); None for all. A single one has no interval.
        """
        matrix = self.matrix() if stories is None else self.matrix()[stories]
        drawn = definitions.resamples if len(matrix) > 1 else 0
        return matrix.sum(axis=0), resampled_sums(matrix, drawn, definitions.seed)


@dataclass(frozen=True)
class Estimates:
    """Named values with the ends of their intervals; ``nan`` where there is none.

    Attributes:
        values: name -> value.
        low: name -> lower end of the 95 % interval.
        high: name -> upper end.
        replicates: name -> its values in the resamples, shape (resamples,).
    """

    values: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]
    replicates: Mapping[str, Floats] = field(repr=False)

    def score(self, name: str, why_undefined: str, **more: Any) -> Score:  # noqa: ANN401 - fields of a score
        """Return one of the values as a score; ``more`` are its counts, numerator and denominator."""
        value = self.values[name]
        if np.isnan(value):
            return Score(value=None, status="undefined", reason=why_undefined, counts=more.get("counts", {}))
        ends = {"low": _end(self.low[name]), "high": _end(self.high[name])}
        return Score(value=value, status="ok", **ends, **more)


def estimates(
    names: Sequence[str], sums: Floats, drawn: Floats, statistic: Callable[[Floats], Floats]
) -> Estimates:
    """Return the values of a statistic of sums, and their percentile intervals.

    Args:
        names: of the values.
        sums: over all stories, shape (columns,).
        drawn: over resamples, shape (resamples, columns).
        statistic: sums of shape (..., columns) -> values of shape (..., names).
    """
    values, replicates = statistic(sums), statistic(drawn)
    low, high = percentile_interval(replicates)
    return Estimates(
        dict(zip(names, values.tolist(), strict=True)),
        dict(zip(names, low.tolist(), strict=True)),
        dict(zip(names, high.tolist(), strict=True)),
        dict(zip(names, replicates.T, strict=True)),
    )


def _end(value: float) -> float | None:
    # Resampled sums may differ in their last bits from machine to machine; ten digits do not.
    return None if np.isnan(value) else round(value, 10)

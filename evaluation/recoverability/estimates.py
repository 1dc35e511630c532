"""Values of many metrics at once, with bootstrap intervals over stories."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...schemas.values import Score
from ...validators.resampling import resampled_sums
from .definitions import Definitions
from .recoverability import Of, Rate

Floats = NDArray[np.float64]
Key = tuple[str, ...]


@dataclass
class Sheet:
    """Columns of sums per story, side by side under names, so that all are resampled together."""

    stories: int  # how many rows there are
    _parts: list[Floats] = field(default_factory=list, repr=False)
    _places: dict[Key, slice] = field(default_factory=dict, repr=False)
    _made: dict[Key, tuple[Mapping[str, Rate], Of]] = field(default_factory=dict, repr=False)
    _width: int = 0

    def add(
        self, name: Key, columns: Floats, rates: Mapping[str, Rate] | None = None, of: Of | None = None
    ) -> None:
        """Add columns, shape (stories, some), and what is made of them.

        ``rates``: name -> what it is, of each value in order. ``of``: sums of the columns, shape (..., some)
        -> these values, shape (..., rates).
        """
        self._parts.append(columns)
        self._places[name] = slice(self._width, self._width + columns.shape[1])
        self._width += columns.shape[1]
        if rates is not None and of is not None:
            self._made[name] = rates, of

    def estimates(self, drawn: "Drawn", *under: str) -> "Estimates":
        """Return the values of all columns whose names begin so, with intervals."""
        made = {name: how for name, how in self._made.items() if name[: len(under)] == under}

        def statistic(sums: Floats) -> Floats:
            return np.concatenate([of(self.part(sums, name)) for name, (_, of) in made.items()], axis=-1)

        return estimates(
            {name: rate for rates, _ in made.values() for name, rate in rates.items()}, drawn, statistic
        )

    def matrix(self) -> Floats:
        """Return all columns, shape (stories, columns)."""
        if len(self._parts) != 1:
            joined = np.concatenate(self._parts, axis=1) if self._parts else np.zeros((self.stories, 0))
            self._parts = [joined]
        return self._parts[0]

    def part(self, sums: Floats, name: Key) -> Floats:
        """Return the columns of one name out of sums of all, shape (..., some)."""
        return sums[..., self._places[name]]

    def resampled(self, definitions: Definitions, stories: NDArray[np.bool_] | None = None) -> "Drawn":
        """Return the sums over all stories and over resampled ones.

        ``stories``: which stories there are, shape (stories,); None for all. A single one has no interval.
        """
        matrix = self.matrix() if stories is None else self.matrix()[stories]
        drawn = definitions.resamples if len(matrix) > 1 else 0
        return Drawn(matrix, matrix.sum(axis=0), resampled_sums(matrix, drawn, definitions.seed), definitions)


@dataclass(frozen=True)
class Drawn:
    """Sums over stories, as they are and resampled."""

    rows: Floats = field(repr=False)  # the stories, shape (stories, columns)
    sums: Floats = field(repr=False)  # over all of them, shape (columns,)
    resampled: Floats = field(repr=False)  # over resamples, shape (resamples, columns)
    definitions: Definitions  # how intervals are made


@dataclass(frozen=True)
class Estimates:
    """Named values with the ends of their intervals; ``nan`` where there is none."""

    values: Mapping[str, float]  # name -> value
    low: Mapping[str, float]  # name -> lower end of the 95 % interval
    high: Mapping[str, float]  # name -> upper end
    # name -> its values in the resamples, shape (resamples,)
    replicates: Mapping[str, Floats] = field(repr=False)
    rates: Mapping[str, Rate] = field(repr=False)  # name -> what it is

    def score(self, name: str, **more: Any) -> Score:  # noqa: ANN401 - fields of a score
        """Return one of the values as a score; ``more`` are its counts, numerator and denominator."""
        value = self.values[name]
        if np.isnan(value):
            why = self.rates[name].why
            return Score(value=None, status="undefined", reason=why, counts=more.get("counts", {}))
        ends = {"low": _end(self.low[name]), "high": _end(self.high[name])}
        return Score(value=value, status="ok", **ends, **more)


def estimates(rates: Mapping[str, Rate], drawn: Drawn, statistic: Of) -> Estimates:
    """Return the values of a statistic of sums, and their intervals.

    A value stands on the stories that have it on their own.

    ``rates``: name -> what it is, for each value in order. ``statistic``: sums of shape (..., columns) ->
    values of shape (..., rates).
    """
    values, replicates = statistic(drawn.sums), statistic(drawn.resampled)
    stories = (~np.isnan(statistic(drawn.rows))).sum(axis=0)
    lowest, highest = np.array([rate.range for rate in rates.values()], dtype=np.float64).T
    low, high = drawn.definitions.ends(values, replicates, stories, (lowest, highest))
    return Estimates(
        dict(zip(rates, values.tolist(), strict=True)),
        dict(zip(rates, low.tolist(), strict=True)),
        dict(zip(rates, high.tolist(), strict=True)),
        dict(zip(rates, replicates.T, strict=True)),
        rates,
    )


def _end(value: float) -> float | None:
    # Resampled sums may differ in their last bits from machine to machine; ten digits do not.
    return None if np.isnan(value) else round(value, 10)

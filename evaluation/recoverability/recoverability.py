"""Recoverability and the Semantic Trajectory Gap.

Question: how much of what the story's text lets a judge answer do the images alone let it answer?
Formula: per dimension k, R_z^k = questions answered right under evidence z / questions counted (Eq. 17);
    R_z the mean of R_z^k over dimensions (Eq. 18); STG_k = R_text^k - R_image^k and STG = R_text - R_image
    (Eq. 21-22); latent gap: the mean of STG_k over causal, emotional, consequence and moral (Eq. 13).
Input: sums of verdicts per story and dimension, see :mod:`.pooling`; counts >= 0.
Output: R in [0, 1], higher is better; STG in [-1, 1], lower is better, below 0 a warning (Table 32).
Undefined when: no question is counted.
Source: KathaTrace, Eq. 8-13, 17-22, 31-38.
Departures from the source: a dimension without a counted question is left out of the means, and the score
    says how many dimensions it stands on; values are fractions, shown as percentage points.
Example: one dimension, four questions, text right on 3, images on 1: R_text 0.75, R_image 0.25, STG 0.5.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...schemas.values import Score
from ...validators.resampling import divided, resampled_sums
from ..metrics.metric import Quantity
from ..stats.uncertainty import mean_of_known
from .matching import DIMENSIONS, LATENT, Definitions
from .pooling import Sums

Floats = NDArray[np.float64]
Of = Callable[[Floats], Floats]
"""Sums of shape (..., columns) -> values of shape (...), or of shape (..., rates)."""


@dataclass(frozen=True, kw_only=True)
class Rate(Quantity):
    """A score of storyboards."""

    needs: tuple[str, ...]  # what must have been judged: kind of judgement, and condition
    why: str  # why there is no value where there is none
    # makes it of the sums of its file's columns; None where :class:`.recoverability.Rates` does
    of: Of | None = None
    shown: bool = True  # whether reports have a column of it


def share(part: int, whole: int) -> Of:
    """Return the share of one column in another."""
    return lambda sums: divided(sums[..., part], sums[..., whole])


def gap(text: int, image: int, whole: int) -> Of:
    """Return the difference of two columns' shares in a third."""
    return lambda sums: share(text, whole)(sums) - share(image, whole)(sums)


def values_of(rates: tuple[Rate, ...], sums: Floats) -> Floats:
    """Return the values of rates that have a formula of their own, shape (..., rates)."""
    return np.stack([rate.of(sums) for rate in rates if rate.of is not None], axis=-1)


BOTH = ("question:text", "question:image")
NO_QUESTION = "no question was counted"
TEXT = Rate(name="text", label="From text", direction="higher", range=(0, 1), needs=BOTH, why=NO_QUESTION)
IMAGE = Rate(name="image", label="From images", direction="higher", range=(0, 1), needs=BOTH, why=NO_QUESTION)


def _gap(name: str, label: str) -> Rate:
    needs = (*BOTH, "question:text_image")
    return Rate(name=name, label=label, direction="lower", range=(-1, 1), needs=needs, why=NO_QUESTION)


GAP, LATENT_GAP = _gap("gap", "STG"), _gap("latent_gap", "Latent STG")
GAP_WITHOUT_MORAL = _gap("gap_without_moral", "STG without moral")
LATENT_GAP_WITHOUT_MORAL = _gap("latent_gap_without_moral", "Latent STG without moral")
METRICS = (TEXT, IMAGE, GAP, LATENT_GAP, GAP_WITHOUT_MORAL, LATENT_GAP_WITHOUT_MORAL)
"""Of all dimensions together; each dimension has the first three."""
WITHOUT_MORAL = tuple(name for name in DIMENSIONS if name != "moral")
LATENT_WITHOUT_MORAL = tuple(name for name in LATENT if name != "moral")


@dataclass(frozen=True)
class Rates:
    """Recoverability per dimension; the last axis of both is that of the dimensions, ``nan`` where none."""

    text: Floats  # under text-only evidence, shape (..., dimensions)
    image: Floats  # under image-only evidence, shape (..., dimensions)

    @classmethod
    def of(cls, sums: Sums) -> "Rates":
        return cls(divided(sums.text, sums.counted), divided(sums.image, sums.counted))

    @property
    def gaps(self) -> Floats:
        """STG_k, shape (..., dimensions)."""
        return self.text - self.image

    def overall(self) -> tuple[Floats, Floats, Floats]:
        """Return R_text, R_image and STG, each of shape (...)."""
        text, image = mean_of_known(self.text), mean_of_known(self.image)
        return text, image, text - image

    def mean_gap(self, dimensions: Sequence[str]) -> Floats:
        """Return the mean of STG_k over some dimensions, shape (...)."""
        return mean_of_known(self.gaps[..., [DIMENSIONS.index(name) for name in dimensions]])

    def everything(self) -> Floats:
        """Return every value that is reported, in the order of :func:`named`; shape (..., values)."""
        whole = [part[..., None] for part in self.overall()]
        means = [
            self.mean_gap(dimensions)[..., None]
            for dimensions in (LATENT, WITHOUT_MORAL, LATENT_WITHOUT_MORAL)
        ]
        return np.concatenate([self.text, self.image, self.gaps, *whole, *means], axis=-1)


def named() -> dict[str, Rate]:
    """Return what :meth:`Rates.everything` holds, by name and in order."""
    per_dimension = {f"{rate.name}.{name}": rate for rate in METRICS[:3] for name in DIMENSIONS}
    return per_dimension | {rate.name: rate for rate in METRICS}


# -- Values of many metrics at once, with bootstrap intervals over stories

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

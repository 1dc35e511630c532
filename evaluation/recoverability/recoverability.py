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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...validators.resampling import divided
from ..metrics.metric import Quantity
from ..stats.uncertainty import mean_of_known
from .items import DIMENSIONS, LATENT
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
        """Return the rates of sums."""
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

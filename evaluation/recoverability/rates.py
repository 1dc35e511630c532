"""What a score of storyboards is, as one value: a rate of sums over stories, or a difference of rates."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..metrics.quantity import Quantity
from ..stats.bootstrap import divided

Floats = NDArray[np.float64]
Of = Callable[[Floats], Floats]
"""Sums of shape (..., columns) -> values of shape (...)."""


@dataclass(frozen=True, kw_only=True)
class Rate(Quantity):
    """A score of storyboards.

    Attributes:
        needs: what must have been judged: kind of judgement, and condition.
        why: why there is no value where there is none.
        of: makes it of the sums of its file's columns; None where :class:`.recoverability.Rates` does.
        shown: whether reports have a column of it.
    """

    needs: tuple[str, ...]
    why: str
    of: Of | None = None
    shown: bool = True


def share(part: int, whole: int) -> Of:
    """Return the share of one column in another."""
    return lambda sums: divided(sums[..., part], sums[..., whole])


def gap(text: int, image: int, whole: int) -> Of:
    """Return the difference of two columns' shares in a third."""
    return lambda sums: share(text, whole)(sums) - share(image, whole)(sums)


def values_of(rates: tuple[Rate, ...], sums: Floats) -> Floats:
    """Return the values of rates that have a formula of their own, shape (..., rates)."""
    return np.stack([rate.of(sums) for rate in rates if rate.of is not None], axis=-1)

"""What the values of a score look like: the lowest, the middle and the highest of all that there are."""

from collections.abc import Callable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from ...schemas.canonical import digest
from ...tables.numbers import Unit
from ..metrics.metric import Quantity
from .model import Example, Examples, Frame, Snap

T = TypeVar("T")
Level = Literal["low", "middle", "high"]
ENDMOST: tuple[Level, ...] = ("low", "high")
ENDS = {True: "Higher is better.", False: "Lower is better.", None: "Neither end is better."}


class Valued(NamedTuple, Generic[T]):
    """One thing with a value: what it is in words, and what makes its pictures."""

    value: float
    text: str
    thing: T


def examples_of(
    quantity: Quantity,
    meaning: str,
    valued: Sequence[Valued[T]],
    pictures: Callable[[T], Sequence[Frame | Snap]],
    unit: Unit = "number",
) -> Examples | None:
    """Return the card of a score; None where nothing has a value.

    Args:
        quantity: the score.
        meaning: what it measures, and of what these are values.
        valued: everything that has a value; among equal values a hash of the words decides.
        pictures: makes the pictures of one of them.
        unit: how values are printed.
    """
    if not valued:
        return None
    ordered = sorted(valued, key=lambda one: (round(one.value, 9), digest(one.text)))
    places: dict[Level, int] = {"low": 0, "middle": len(ordered) // 2, "high": len(ordered) - 1}
    names: tuple[Level, ...] = tuple(places) if len(ordered) > 2 else ENDMOST[: len(ordered)]
    return Examples(
        name=quantity.name, label=quantity.label, note=f"{meaning} {ENDS[quantity.higher]}", unit=unit,
        total=len(ordered),
        shown=tuple(
            Example(
                level=level, value=ordered[places[level]].value, text=ordered[places[level]].text,
                frames=tuple(pictures(ordered[places[level]].thing)),
            )
            for level in names
        ),
    )  # fmt: skip

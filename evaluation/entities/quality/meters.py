"""Measures of a shot taken while its frames go by: each keeps the few frames that its next groups need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ....models.vision.store import VectorStore, group_key
from ....models.vision.types import Rows
from ...metrics.vectors import Floats
from .motion import Measure

if TYPE_CHECKING:
    from PIL.Image import Image


class Unmeasured(Exception):
    """A shot has no value of a measure; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A frame, and what its pixels are known by."""

    image: "Image" = field(repr=False)
    key: bytes


Window = Callable[[int, Picture], tuple[Picture, ...] | None]
"""Given every frame with its number, returns the group that it completes."""


def each(_: int, picture: Picture) -> tuple[Picture, ...]:
    """Return every frame by itself."""
    return (picture,)


def pairs(step: int = 1) -> Window:
    """Return a window on pairs: every ``step``-th frame and the one of them before it."""
    held: list[Picture] = []

    def add(number: int, picture: Picture) -> tuple[Picture, ...] | None:
        if number % step:
            return None
        held.append(picture)
        return (held.pop(0), picture) if len(held) > 1 else None

    return add


def with_first() -> Window:
    """Return a window on every frame but the first, with that and the one before it."""
    first: list[Picture] = []
    following = pairs()

    def add(number: int, picture: Picture) -> tuple[Picture, ...] | None:
        first.append(picture) if not first else None
        pair = following(number, picture)
        return None if pair is None else (first[0], *pair)

    return add


def around() -> Window:
    """Return a window on frames 2i, 2i + 1 and 2i + 2."""
    held: list[Picture] = []

    def add(number: int, picture: Picture) -> tuple[Picture, ...] | None:
        held.append(picture)
        if number % 2 or not number:
            return None
        group = tuple(held)
        del held[:2]
        return group

    return add


@dataclass(slots=True)
class Meter:
    """One measure of a shot."""

    window: Window  # which frames make a group
    measure: Measure  # makes a number of each group
    conclude: Callable[[Floats], float]  # makes the shot's value of the numbers, in their order
    batch: int  # groups that are measured at once
    least: int  # frames that a shot needs at least
    numbers: list[float] = field(default_factory=list)
    waiting: list[tuple[Picture, ...]] = field(default_factory=list)

    def add(self, number: int, picture: Picture, store: VectorStore) -> None:
        """Take in the next frame of the shot."""
        group = self.window(number, picture)
        if group is not None:
            self.waiting.append(group)
        if len(self.waiting) >= self.batch:
            self._measure(store)

    def value(self, frames: int, store: VectorStore) -> float:
        """Return the value of a shot of so many frames."""
        if self.waiting:
            self._measure(store)
        if not self.numbers:
            raise Unmeasured(f"it takes at least {self.least} frames, and the shot has {frames}")
        values = np.array(self.numbers, dtype=np.float64)
        if not np.isfinite(values).all():
            lost = int((~np.isfinite(values)).sum())
            raise Unmeasured(f"the model gave no number for {lost} of {len(values)} groups of frames")
        return self.conclude(values)

    def _measure(self, store: VectorStore) -> None:
        def make(groups: Sequence[tuple[Picture, ...]]) -> Rows:
            return self.measure.values([tuple(picture.image for picture in group) for group in groups])

        identity = self.measure.identity
        if identity:
            keys = [group_key(identity, [picture.key for picture in group]) for group in self.waiting]
            rows = store.kept(keys, self.waiting, make, self.batch)
        else:
            rows = make(self.waiting)
        self.numbers += [float(value) for value in rows[:, 0]]
        self.waiting = []


def mean(values: Floats) -> float:
    """Return the mean."""
    return float(values.mean())


def share_above(threshold: float) -> Callable[[Floats], float]:
    """Return what says which share of values is above a threshold."""
    return lambda values: float((values > threshold).mean())


def read_off(
    meters: Mapping[str, Meter], images: "Iterable[tuple[Image, bytes]]", store: VectorStore
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the values of all meters, and for those without one the reason.

    ``images``: every frame of a shot in order, with what its pixels are known by. ``store``: keeps what
    models make of frames.
    """
    size, count = None, 0
    for number, (image, key) in enumerate(images):
        size, count = size or image.size, number + 1
        if image.size != size:
            text = f"{size[0]} x {size[1]} to {image.size[0]} x {image.size[1]}"
            raise Unmeasured(f"the frames change their size from {text} at frame {number}")
        for meter in meters.values():
            meter.add(number, Picture(image, key), store)
    values: dict[str, float | None] = {}
    why: dict[str, str] = {}
    for name, meter in meters.items():
        try:
            values[name] = meter.value(count, store)
        except Unmeasured as reason:
            values[name], why[name] = None, str(reason)
    return values, why

"""Measures of a shot taken while its frames go by: each keeps the few frames that its next groups need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ....models.vision.flow import margins
from ....models.vision.networks import pixels_of
from ....models.vision.store import Encoder, Flow, Predictor, Rows, VectorStore, group_key
from ....models.vision.weights import library
from ...metrics.vectors import Floats

if TYPE_CHECKING:
    from PIL.Image import Image


# -- What is measured of two or three frames: likeness, difference, motion, and the frame between two others
#
# A measure makes one number of each group of frames. Groups of one measure share frames, and each frame goes
# through an encoder once in a batch.

Group: TypeAlias = "tuple[Image, ...]"

FASTEST = 0.05
"""Share of the pixels, those that move most, whose mean is the motion of a pair (VBench)."""


class Measure(Protocol):
    """Makes numbers of groups of frames."""

    @property
    def identity(self) -> str:
        """What its numbers depend on; empty where they are not worth keeping."""
        ...

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        ...


class Likeness:
    """How alike the vectors of a frame are to those of frames before it.

    The last frame of a group is compared with each of the others. One other: their cosine (Eq. 2). Several:
    the mean of the cosines, none of them below 0 (VBench: the previous and the first frame).
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @property
    def identity(self) -> str:
        """What its numbers depend on."""
        return f"{self._encoder.identity}/likeness"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        images = {id(image): image for group in groups for image in group}
        rows = self._encoder.encode(list(images.values())).astype(np.float64)
        by_image = dict(zip(images, rows, strict=True))
        return _column([self._value([by_image[id(image)] for image in group]) for group in groups])

    def _value(self, rows: Sequence[Any]) -> float:
        cosines = [float(row @ rows[-1]) for row in rows[:-1]]
        if len(cosines) == 1:
            return cosines[0]
        return sum(cosine if np.isnan(cosine) else max(0.0, cosine) for cosine in cosines) / len(cosines)


class Steadiness:
    """1 minus the mean absolute difference of two frames, whose pixels are taken from 0 to 1 (Eq. 3)."""

    identity = ""

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        return _column([1 - _difference(pixels_of(first), pixels_of(second)) for first, second in groups])


class Motion:
    """How many pixels the fastest twentieth of a picture moves to the next one, as VBench has it.

    Edges are repeated up to sides that are multiples of 8 before that, as there, and count.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    @property
    def identity(self) -> str:
        """What its numbers depend on."""
        return f"{self._flow.identity}/motion"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        flows = self._flow.flows([(_padded(first), _padded(second)) for first, second in groups])
        return _column([fastest(flow) for flow in flows])


def fastest(flow: Rows) -> float:
    """Return the mean length of the longest twentieth of the vectors of a flow, shape (2, height, width)."""
    lengths = np.sqrt(np.square(flow.astype(np.float64)).sum(axis=0)).ravel()
    return float(np.sort(lengths)[::-1][: max(1, int(lengths.size * FASTEST))].mean())


class Reconstruction:
    """How well two frames foretell the one between them: 1 minus the mean absolute difference from it.

    Flow from each of the two to the other gives that to their middle (0 to 1/2: -F01/4 + F10/4, and
    mirrored), as if every pixel moved evenly and straight. Both frames are moved there. A pixel is the mean
    of both, or that of one of them where it would come from outside the other.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    @property
    def identity(self) -> str:
        """What its numbers depend on."""
        return f"{self._flow.identity}/reconstruction-visible"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        ends = [pair for first, _, last in groups for pair in ((first, last), (last, first))]
        flows = self._flow.flows(ends)
        made = []
        for number, (first, middle, last) in enumerate(groups):
            there, back = flows[2 * number], flows[2 * number + 1]
            between = self._between(pixels_of(first), pixels_of(last), (back - there) / 4)
            made.append(1 - _difference(between, pixels_of(middle)))
        return _column(made)

    def _between(self, first: Rows, last: Rows, shift: Rows) -> Rows:
        """Return the frame between two; ``shift`` says where it finds itself in the first."""
        early, seen_early = _moved(first, shift)
        late, seen_late = _moved(last, -shift)
        mean = (early + late) / 2
        single = np.where(seen_early, early, late)
        return np.asarray(np.where(seen_early == seen_late, mean, single), dtype=np.float32)


class Rating:
    """What a predictor says of a single frame, times a factor."""

    def __init__(self, predictor: Predictor, factor: float) -> None:
        self._predictor, self._factor = predictor, factor

    @property
    def identity(self) -> str:
        """What its numbers depend on."""
        return f"{self._predictor.identity}/times-{self._factor}"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        return _column(self._predictor.predict([image for (image,) in groups])[:, 0] * self._factor)


def _moved(pixels: Rows, shift: Rows) -> tuple[Rows, Any]:
    """Return a picture sampled at places that are shifted, and which of them lie in it, shape (h, w)."""
    torch = library()
    height, width = pixels.shape[-2:]
    across = np.arange(width, dtype=np.float32) + shift[0]
    down = np.arange(height, dtype=np.float32)[:, None] + shift[1]
    seen = (across >= 0) & (across <= width - 1) & (down >= 0) & (down <= height - 1)
    ends = (max(width - 1, 1), max(height - 1, 1))
    grid = np.stack([2 * across / ends[0] - 1, 2 * down / ends[1] - 1], axis=-1)
    sampled = torch.nn.functional.grid_sample(
        torch.from_numpy(pixels)[None], torch.from_numpy(grid.astype(np.float32))[None],
        mode="bilinear", padding_mode="border", align_corners=True,
    )  # fmt: skip
    return np.asarray(sampled[0].numpy(), dtype=np.float32), seen


def _padded(image: "Image") -> "Image":
    left, right, top, bottom = margins(*image.size)
    if not (left or right or top or bottom):
        return image
    from PIL import Image as Pillow

    return Pillow.fromarray(np.pad(np.asarray(image), ((top, bottom), (left, right), (0, 0)), mode="edge"))


def _difference(first: Rows, second: Rows) -> float:
    """Return the mean absolute difference of two pictures of 0 to 255, as a share of that."""
    return float(np.abs(first - second).mean(dtype=np.float64)) / 255


def _column(values: Sequence[float] | Rows) -> Rows:
    return np.asarray(values, dtype=np.float32).reshape(-1, 1)


# --


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

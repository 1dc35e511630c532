"""What is measured of two or three frames: likeness, difference, motion, and the frame between two others.

A measure makes one number of each group of frames. Groups of one measure share frames, and each frame goes
through an encoder once in a batch.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....models.vision.flow import margins
from ....models.vision.tensors import pixels_of
from ....models.vision.types import Encoder, Flow, Predictor, Rows
from ....models.vision.weights import library

if TYPE_CHECKING:
    from PIL.Image import Image

    Group = tuple[Image, ...]

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

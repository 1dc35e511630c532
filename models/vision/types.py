"""What detectors and encoders take and give, whatever library is behind them; cutting out a box."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Rows = NDArray[np.float32]
Masks = NDArray[np.bool_]
"""A mask, shape (height, width): true where a thing is."""
Device = Literal["cpu", "cuda", "mps"]
Dtype = Literal["float32", "float16", "bfloat16"]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in a picture, in pixels from the upper left corner."""

    left: float  # smallest x; ``right`` is beyond the largest
    top: float  # smallest y; ``bottom`` is beyond the largest
    right: float  # see ``left``
    bottom: float  # see ``top``
    score: float = 1.0  # of the detector, 0 to 1
    label: str = ""  # what was found

    @property
    def area(self) -> float:
        """Width times height; 0 where there is nothing in it."""
        return max(0.0, self.right - self.left) * max(0.0, self.bottom - self.top)

    def within(self, width: int, height: int) -> "Box":
        """Return the part of the box that lies in a picture of a size."""
        return Box(
            max(0.0, self.left), max(0.0, self.top), min(float(width), self.right),
            min(float(height), self.bottom), self.score, self.label,
        )  # fmt: skip

    def overlap(self, other: "Box") -> float:
        """Return intersection over union with another box, 0 to 1."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        shared = max(0.0, width) * max(0.0, height)
        union = self.area + other.area - shared
        return shared / union if union > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Card:
    """What a model is, as far as its results depend on it."""

    name: str  # ours, such as ``clip-vit-l-14``
    source: str  # where the weights come from: an id on the Hub, or an address
    revision: str  # the pinned revision, or the hash of the file
    input: str  # what a picture becomes: size, how it is brought to it, normalisation
    dimensions: int  # length of a vector; 0 for a detector
    tolerance: float  # most by which a component changes with the size and the order of batches
    licence: str  # of the weights, in short


@runtime_checkable
class VisionModel(Protocol):
    """What every model has."""

    @property
    def card(self) -> Card:
        """What it is."""
        ...

    @property
    def identity(self) -> str:
        """What its results depend on: name, revision, dtype and class of device."""
        ...


@runtime_checkable
class Encoder(VisionModel, Protocol):
    """Makes a unit vector of a picture."""

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, dimensions), rows of length 1; ``nan`` where there is nothing to encode."""
        ...


@dataclass(frozen=True, slots=True)
class TextRows:
    """What an encoder made of texts."""

    rows: Rows  # shape (texts, dimensions), rows of length 1, in the space of the vectors of pictures
    cut: tuple[int, ...]  # how many tokens of each text did not fit and were left out


@runtime_checkable
class TextEncoder(Encoder, Protocol):
    """Makes unit vectors of pictures and of texts, in one space."""

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return the vectors of texts, and what did not fit."""
        ...


@runtime_checkable
class Detector(VisionModel, Protocol):
    """Finds things in a picture."""

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Return the boxes of each picture, highest score first."""
        ...


@runtime_checkable
class Grounder(VisionModel, Protocol):
    """Finds what a text describes in a picture, each text by itself."""

    def ground(
        self, images: "Sequence[Image]", texts: Sequence[Sequence[str]], batch: int = 1
    ) -> list[list[tuple[Box, ...]]]:
        """Return the boxes of each text in its picture, highest score first.

        Args:
            images: the pictures.
            texts: of each picture, what is looked for.
            batch: pairs of a picture and a text that are looked at together.
        """
        ...


@runtime_checkable
class Predictor(VisionModel, Protocol):
    """Makes numbers of a picture that are no unit vector: a score, or class probabilities."""

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, values)."""
        ...


@runtime_checkable
class Flow(VisionModel, Protocol):
    """Finds out where each pixel of a picture is in another one."""

    def flows(self, pictures: "Sequence[tuple[Image, Image]]") -> Rows:
        """Return shape (pairs, 2, height, width): by how many pixels each moved right, and down.

        Raises:
            ValueError: the pictures are not all of one size.
        """
        ...


@dataclass(frozen=True, slots=True)
class Points:
    """Points that tell a segmenter what is meant, as shares of width and height from the upper left."""

    inside: tuple[tuple[float, float], ...]  # where the thing is
    outside: tuple[tuple[float, float], ...] = ()  # where it is not


@runtime_checkable
class Segmenter(VisionModel, Protocol):
    """Tells which pixels of a picture belong to a thing."""

    def segment(self, images: "Sequence[Image]", points: Sequence[Points]) -> list[Masks]:
        """Return the mask of one thing in each picture, as large as the picture."""
        ...


def identity_of(card: Card, dtype: Dtype, device: Device) -> str:
    """Return what results of a model depend on."""
    return f"{card.name}@{card.revision}/{dtype}/{device}"


def suppressed(boxes: Sequence[Box], most: float) -> tuple[Box, ...]:
    """Return boxes without those that overlap a better one by more than ``most`` (non-maximum suppression).

    The order is by score, then by place, so that it never depends on the order given.
    """
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom)):
        if all(box.overlap(other) <= most for other in kept):
            kept.append(box)
    return tuple(kept)


Definition = Literal["clamped", "trimmed"]
TRIM = 0.01
"""Share of width and height that ``trimmed`` takes off each side."""


def cut(image: "Image", box: Box, definition: Definition = "clamped") -> "Image | None":
    """Return the part of a picture that lies in a box, in RGB; None where no pixel does."""
    if definition == "trimmed":
        across, down = TRIM * (box.right - box.left), TRIM * (box.bottom - box.top)
        box = Box(box.left + across, box.top + down, box.right - across, box.bottom - down)
    inside = box.within(image.width, image.height)
    edges = (int(inside.left), int(inside.top), int(inside.right), int(inside.bottom))
    if edges[2] <= edges[0] or edges[3] <= edges[1]:
        return None
    part = image.crop(edges)
    return part if part.mode == "RGB" else part.convert("RGB")

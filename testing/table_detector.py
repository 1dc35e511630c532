"""Models for tests that need no library but numpy and know :mod:`.drawn_shots`: what they see is known.

Settings name them by their place, such as ``fabula.testing.table_detector:load_table_detector``. They stand
in for real models; their numbers mean nothing beyond the drawings.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..media.images import open_picture
from ..models.vision.store import Box, Card, Rows, TextRows, identity_of
from ..models.vision.weights import Place
from .drawn_shots import CAST, draw_shot

if TYPE_CHECKING:
    from PIL.Image import Image

_BINS = 4  # of each channel in a histogram of colours
_NEAR = 8  # most by which a channel may be off for a pixel to have a colour
_LEAST = 0.002  # share of a picture's pixels that a figure covers at least

SETTINGS = (
    f"detect_characters.model={__name__}:load_table_detector",
    f"encode_crops.pictures={__name__}:load_colour_encoder",
    f"encode_crops.faces={__name__}:load_head_encoder",
    f"encode_pictures.style={__name__}:load_colour_encoder",
    f"encode_pictures.aesthetic={__name__}:load_brightness",
    f"encode_pictures.inception={__name__}:load_colour_classes",
    f"encode_pictures.clip={__name__}:load_colour_texts",
)
"""Settings, as ``--set`` takes them, with which ``evaluate images`` uses the models here."""


class Plain:
    """What models for tests share: a card, and an identity that depends on nothing else."""

    def __init__(self, name: str, dimensions: int) -> None:
        self.card = Card(name, type(self).__module__, "1", "RGB as it is", dimensions, 0.0, "Apache-2.0")

    @property
    def identity(self) -> str:
        return identity_of(self.card, "float32", "cpu")


class TableDetector(Plain):
    """A detector of the drawn cast, by its table of colours.

    In each picture one figure of each character is found, also where it was scaled.
    """

    def __init__(self) -> None:
        super().__init__("table-detector", 0)
        self.seen = 0
        """Pictures looked at since it was made."""

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Return the boxes of each picture, highest score first."""
        self.seen += len(images)
        return [figures_in(image) for image in images]


class ColourEncoder(Plain):
    """An encoder whose vector is the histogram of a picture's colours.

    Args:
        name: of its card.
        head: whether only the head of a drawn figure is looked at; a picture without one has no vector.
    """

    def __init__(self, name: str = "colour-encoder", *, head: bool = False) -> None:
        super().__init__(name, _BINS**3)
        self._head = head
        self.seen = 0
        """Pictures encoded since it was made."""

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 64); ``nan`` for a picture without what is looked at."""
        self.seen += len(images)
        rows = [histogram(_head(image) if self._head else _pixels(image)) for image in images]
        return np.stack(rows) if rows else np.empty((0, _BINS**3), dtype=np.float32)


class ColourTexts(ColourEncoder):
    """An encoder of texts, too: a text is close to the drawing of whom it names; 77 words fit."""

    def __init__(self) -> None:
        super().__init__("colour-texts")
        self.read = 0
        """Texts encoded since it was made."""

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return the vectors of drawings with everybody whom a text names."""
        self.read += len(texts)
        drawings = [draw_shot([key for key, *_ in CAST if key in text], 1) for text in texts]
        rows = [histogram(_pixels(open_picture(drawing).image)) for drawing in drawings]
        return TextRows(np.stack(rows), tuple(max(0, len(text.split()) - 77) for text in texts))


class ColourPredictor(Plain):
    """A predictor: one value, 1 to 10 with a picture's brightness, or shares of 64 colours.

    Args:
        classes: whether it gives the shares.
    """

    def __init__(self, *, classes: bool = False) -> None:
        super().__init__("colour-classes" if classes else "colour-brightness", 0)
        self._classes = classes
        self.seen = 0
        """Pictures looked at since it was made."""

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, 1) or (images, 64)."""
        self.seen += len(images)
        return np.array([self._one(_pixels(image)) for image in images], dtype=np.float32)

    def _one(self, pixels: Rows) -> Rows:
        if not self._classes:
            return np.array([1 + 9 * float(pixels.mean()) / 255], dtype=np.float32)
        counts = _counts(pixels)
        return np.asarray(counts / counts.sum(), dtype=np.float32)


def load_table_detector(place: Place) -> TableDetector:
    """Return a detector that knows the drawn cast."""
    return TableDetector()


def load_colour_encoder(place: Place) -> ColourEncoder:
    """Return the encoder of whole pictures: in the place of CLIP, DINOv2 and CSD."""
    return ColourEncoder()


def load_head_encoder(place: Place) -> ColourEncoder:
    """Return the encoder of heads, which not every picture has: in the place of encoders of faces."""
    return ColourEncoder("head-encoder", head=True)


def load_colour_texts(place: Place) -> ColourTexts:
    """Return the encoder of pictures and texts: in the place of CLIP, for the CLIP score."""
    return ColourTexts()


def load_brightness(place: Place) -> ColourPredictor:
    """Return the predictor of one value: in the place of the aesthetic predictor."""
    return ColourPredictor()


def load_colour_classes(place: Place) -> ColourPredictor:
    """Return the predictor of shares: in the place of Inception."""
    return ColourPredictor(classes=True)


class StillFlow(Plain):
    """A flow that sees no motion anywhere, and how many pairs it was shown."""

    def __init__(self) -> None:
        super().__init__("still-flow", 0)
        self.seen = 0

    def flows(self, pictures: "Sequence[tuple[Image, Image]]") -> Rows:
        """Return shape (pairs, 2, height, width)."""
        self.seen += len(pictures)
        first, _ = pictures[0]
        return np.zeros((len(pictures), 2, first.height, first.width), dtype=np.float32)


def load_still_flow(place: Place) -> StillFlow:
    """Return the flow that sees no motion: in the place of RAFT."""
    return StillFlow()


def figures_in(image: "Image") -> tuple[Box, ...]:
    """Return the boxes of the drawn cast in a picture, in the order of the cast; scores fall with it."""
    pixels = _pixels(image)
    boxes = []
    for index, (key, _, _, colour) in enumerate(CAST):
        found = _has(pixels, colour) | _has(pixels, _opposite(colour))
        if _has(pixels, colour).mean() < _LEAST:
            continue
        rows, columns = np.flatnonzero(found.any(axis=1)), np.flatnonzero(found.any(axis=0))
        edges = (float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))
        boxes.append(Box(*edges, score=0.9 - 0.1 * index, label=key))
    return tuple(boxes)


def histogram(pixels: Rows) -> Rows:
    """Return the unit vector of a histogram of colours, shape (64,); ``nan`` where there is no pixel."""
    counts = _counts(pixels)
    with np.errstate(invalid="ignore"):
        return np.asarray(counts / np.linalg.norm(counts), dtype=np.float32)


def _counts(pixels: Rows) -> Rows:
    levels = (pixels.reshape(-1, 3) * _BINS // 256).astype(np.int64)
    codes = levels @ np.array([_BINS * _BINS, _BINS, 1])
    return np.bincount(codes, minlength=_BINS**3).astype(np.float32)


def _pixels(image: "Image") -> Rows:
    return np.asarray(image.convert("RGB"), dtype=np.float32)


def _head(image: "Image") -> Rows:
    pixels = _pixels(image)
    heads = [_has(pixels, _opposite(colour)) for *_, colour in CAST]
    largest = max(heads, key=lambda mask: int(mask.sum()))
    return np.asarray(pixels[largest], dtype=np.float32)


def _has(pixels: Rows, colour: tuple[int, int, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.asarray((np.abs(pixels - np.array(colour, dtype=np.float32)) <= _NEAR).all(axis=-1))


def _opposite(colour: tuple[int, int, int]) -> tuple[int, int, int]:
    return (255 - colour[0], 255 - colour[1], 255 - colour[2])

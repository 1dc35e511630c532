"""Loaders of registered models that count what they are asked: settings name them as ``counted:style``."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fabula.models.vision.registry import open_vision
from fabula.models.vision.store import Box, Detector, Encoder, Predictor, Rows, VisionModel
from fabula.models.vision.weights import Place
from fabula.testing.table_detector import load_table_detector

if TYPE_CHECKING:
    from PIL.Image import Image

ASKED: Counter[str] = Counter()
"""Role of a model -> pictures that it was given in this process."""


class Counted:
    """A model whose pictures are counted; the subclass says what is done with them."""

    def __init__(self, role: str, model: VisionModel) -> None:
        self.role, self.card, self.identity = role, model.card, model.identity


class CountedEncoder(Counted):
    """An encoder."""

    def __init__(self, role: str, model: VisionModel) -> None:
        super().__init__(role, model)
        self._model = cast("Encoder", model)

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Count pictures, and return their unit vectors."""
        ASKED[self.role] += len(images)
        return self._model.encode(images)


class CountedPredictor(Counted):
    """A predictor."""

    def __init__(self, role: str, model: VisionModel) -> None:
        super().__init__(role, model)
        self._model = cast("Predictor", model)

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Count pictures, and return their values."""
        ASKED[self.role] += len(images)
        return self._model.predict(images)


class CountedDetector(Counted):
    """A detector."""

    def __init__(self, role: str, model: Detector) -> None:
        super().__init__(role, model)
        self._model = model

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Count pictures, and return their boxes."""
        ASKED[self.role] += len(images)
        return self._model.detect(images)


def detector(place: Place) -> CountedDetector:
    """Return a detector that knows the drawn figures: what random weights find means nothing."""
    return CountedDetector("detector", load_table_detector(place))


def style(place: Place, local: Path | None = None) -> CountedEncoder:
    """Return the encoder of style."""
    return CountedEncoder("style", open_vision("csd-vit-l", place, {"local": local}))


def crops(place: Place, local: Path | None = None) -> CountedEncoder:
    """Return the encoder of crops."""
    return CountedEncoder("crops", open_vision("clip-vit-l-14", place, {"local": local}))


def classes(place: Place, local: Path | None = None) -> CountedPredictor:
    """Return the predictor of classes."""
    return CountedPredictor("classes", open_vision("inception-v3", place, {"local": local}))

"""Detections of the drawn film, made from its truth with noise, and vectors of colours in place of models.

The vectors are histograms of the colours of a crop: no face recognition, and never to be called so.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..models.vision.store import Box, Card, Rows, cut, identity_of
from ..models.vision.weights import Place
from ..schemas.canonical import Json
from .drawn_film import HEIGHT, WIDTH, Box4, DrawnFilm, Standing

if TYPE_CHECKING:
    from PIL.Image import Image

_BINS = 6
ENCODER = "drawn-colours"


@dataclass(frozen=True, slots=True)
class Noise:
    """How a detector errs."""

    miss: float = 0.05  # share of people who are missed
    jitter: float = 0.02  # spread of the edges of boxes, in shares of their height
    false: float = 0.02  # false boxes in a frame, on average
    least: float = 0.3  # share of a figure that must show
    faceless: float = 0.25  # share of faces that are missed


class Plain:
    """What models for tests share: a card, and an identity that depends on nothing else."""

    def __init__(self, name: str, dimensions: int) -> None:
        self.card = Card(name, type(self).__module__, "1", "RGB as it is", dimensions, 0.0, "Apache-2.0")

    @property
    def identity(self) -> str:
        return identity_of(self.card, "float32", "cpu")


class DrawnColours(Plain):
    """An encoder: the square roots of how the colours of a crop are spread over 216 bins with soft edges."""

    def __init__(self) -> None:
        super().__init__(ENCODER, _BINS**3)

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 216)."""
        return (
            np.stack([colours(image) for image in images]) if images else np.empty((0, _BINS**3), np.float32)
        )


def load_drawn_colours(place: Place) -> DrawnColours:
    """Return the encoder: in the place of ArcFace and DINOv2."""
    return DrawnColours()


def colours(image: "Image") -> Rows:
    """Return the unit vector of a picture's colours."""
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64).reshape(-1, 3) / 255 * (_BINS - 1)
    low = np.minimum(pixels.astype(np.int64), _BINS - 2)
    part = pixels - low
    shares = np.zeros(_BINS**3)
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(corner, part, 1 - part), axis=1)
        codes = (low + corner) @ np.array([_BINS * _BINS, _BINS, 1])
        shares += np.bincount(codes, weights=weight, minlength=_BINS**3)
    unit: Rows = np.sqrt(shares / shares.sum()).astype(np.float32)
    return unit


def detections(
    film: DrawnFilm, noise: Noise | None = None, *, every: int = 2, seed: int = 1
) -> Iterator[Json]:
    """Yield rows as a file of detections has them, frame by frame; ``video`` is ``film``.

    ``every``: every so many frames of a shot are looked at.
    """
    errs, random = noise or Noise(), np.random.default_rng(seed)
    for shot in film.shots:
        for frame in range(shot.first, shot.last + 1, every):
            image = film.frame(frame)
            for one in film.standing(frame):
                if one.visible >= errs.least and random.random() >= errs.miss:
                    yield _row(frame, image, one, errs, random)
            for _ in range(int(random.poisson(errs.false))):
                left, top = random.uniform((0, 0), (WIDTH - 60, HEIGHT - 90))
                box = (float(left), float(top), float(left + 40), float(top + 85))
                yield _described(frame, image, box, None, float(random.uniform(0.1, 0.65)))


def write_detections(path: Path, rows: Iterator[Json] | Sequence[Json]) -> Path:
    """Write rows as JSON lines, with a header that says what made them."""
    header = {
        "format": "fabula-detections", "version": 1, "detector": "drawn truth with noise",
        "face_encoder": ENCODER, "body_encoder": ENCODER,
    }  # fmt: skip
    with path.open("w", encoding="utf-8") as file:
        for row in (header, *rows):
            file.write(json.dumps(row) + "\n")
    return path


def _row(frame: int, image: "Image", standing: Standing, errs: Noise, random: np.random.Generator) -> Json:
    height = standing.box[3] - standing.box[1]
    box = _moved(standing.box, random.normal(0, errs.jitter * height, 4))
    score = float(np.clip(0.45 + 0.5 * standing.visible + random.normal(0, 0.05), 0.05, 0.99))
    face = standing.face
    if face is not None and random.random() < errs.faceless:
        face = None
    if face is not None:
        face = _moved(face, random.normal(0, errs.jitter * height / 2, 4))
    return _described(frame, image, box, face, score)


def _described(frame: int, image: "Image", box: Box4, face: Box4 | None, score: float) -> Json:
    return {
        "video": "film", "frame": frame, "box": list(box), "score": round(score, 4),
        "face": None if face is None else list(face),
        "face_score": None if face is None else 0.9,
        "face_embedding": None if face is None else _vector(image, face),
        "body_embedding": _vector(image, box),
    }  # fmt: skip


def _vector(image: "Image", box: Box4) -> list[float]:
    part = cut(image, Box(*box))
    assert part is not None, "boxes of drawn figures have pixels"
    return [round(float(value), 6) for value in colours(part)]


def _moved(box: Box4, by: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Box4:
    left, top, right, bottom = (round(edge + float(move), 2) for edge, move in zip(box, by, strict=True))
    left, top = min(max(0.0, left), WIDTH - 4.0), min(max(0.0, top), HEIGHT - 4.0)
    return left, top, max(left + 3, min(WIDTH, right)), max(top + 3, min(HEIGHT, bottom))

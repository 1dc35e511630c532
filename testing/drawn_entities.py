"""Videos of the written episodes whose every box is known, and models that read the drawn truth.

A place is the colour of the background, everybody and everything else a rectangle of its own colour that
grows from frame to frame. What is drawn faded is found by the detector and is not what the description says.
Settings name the models by their place, such as ``fabula.testing.drawn_entities:load_truth_grounder``. They
stand in for real ones; their numbers mean nothing beyond the drawings.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..models.vision.store import Box, Rows, TextRows, vector_key
from ..models.vision.weights import Place
from ..schemas.canonical import digest
from ..schemas.entities import LISTS, EntityEpisode, EpisodeShot
from .drawn_videos import Encoder, write_frames
from .table_detector import Plain
from .written_episodes import CAST

if TYPE_CHECKING:
    from PIL.Image import Image

Colour = tuple[int, int, int]
Fault = Literal["absent", "faded", "changed"]
"""Not drawn; drawn in another colour, which is found with doubt; only in part as it should be."""
Picture = NDArray[np.uint8]

COLOURS: Mapping[str, Colour] = {
    "Ana": (200, 40, 40), "Ben": (40, 60, 200), "the red cup": (235, 180, 40),
    "the old ladder": (120, 60, 160), "The Kitchen": (150, 190, 150), "The Garden": (210, 210, 160),
}  # fmt: skip
"""Name -> colour."""
NOWHERE: Colour = (96, 96, 96)
"""Background of a shot without a place."""
SIZE = (320, 180)
"""Width and height of a frame."""
RIGHT, FADED = 0.3, 0.1
"""Similarity of a crop to the description of what it shows, and of what it shows faded."""
LOSSLESS = Encoder("ffv1", pixels="bgr0", key_every=1)
_PLACES = ("The Kitchen", "The Garden")
_NEAR = 5  # most by which a channel may be off
_LEAST = 0.001  # share of a picture that shows of what is found
_CHANGED = 0.6  # from there down, what is changed has its faded colour
_SLOT = 78  # pixels between the left edges of what stands beside each other
_BINS = 6  # of each channel in how colours are spread

SETTINGS = (
    f"ground_entities.detector={__name__}:load_truth_grounder",
    f"ground_entities.text={__name__}:load_truth_texts",
    f"encode_appearances.encoder={__name__}:load_truth_vectors",
    "draw_grids.wanted=true",
)
"""Settings, as ``--set`` takes them, with which episodes are looked at by the models here."""


def faded(name: str) -> Colour:
    """Return the colour of something that is drawn faded."""
    red, green, blue = COLOURS[name]
    return (red // 2 + 12, green // 2 + 12, blue // 2 + 12)


def box_of(place: int, frame: int) -> Box:
    """Return where the rectangle at a place from the left is in a frame."""
    left, tall = 8 + _SLOT * place, 70 + 4 * frame
    return Box(left, 176 - tall, left + 40 + frame, 176)


def draw_frame(names: Sequence[str], frame: int, faults: Mapping[str, Fault] | None = None) -> Picture:
    """Return a frame of a shot, shape (180, 320, 3).

    ``faults``: name -> what is wrong with how it is drawn.
    """
    wrong = faults or {}
    shown = {name: faded(name) if wrong.get(name) == "faded" else COLOURS[name]
             for name in names if wrong.get(name) != "absent"}  # fmt: skip
    ground = next((colour for name, colour in shown.items() if name in _PLACES), NOWHERE)
    picture = np.full((SIZE[1], SIZE[0], 3), ground, dtype=np.uint8)
    standing = [name for name in names if name not in _PLACES]
    for place, name in enumerate(standing):
        if name in shown:
            box = box_of(place, frame)
            picture[int(box.top) : int(box.bottom), int(box.left) : int(box.right)] = shown[name]
            if wrong.get(name) == "changed":
                low = int(box.top + _CHANGED * (box.bottom - box.top))
                picture[low : int(box.bottom), int(box.left) : int(box.right)] = faded(name)
    return picture


def names_of(shot: EpisodeShot) -> list[str]:
    """Return the names of all that a shot shows, in the order of its schedule."""
    return [name for kind in LISTS.values() for name in shot.scheduled.names(kind)]


def write_outputs(
    folder: Path,
    episodes: Iterable[Mapping[str, Any]],
    faults: Mapping[str, Mapping[str, Fault]] | None = None,
    frames: int = 12,
) -> Path:
    """Write a video of every shot of some episodes, without loss, and return the folder.

    ``faults``: ``<episode>/<shot>`` -> name -> what is wrong with how it is drawn. ``frames``: of every
    video, at most 25.
    """
    for document in episodes:
        script = EntityEpisode.model_validate(document)
        for shot in script.shots():
            wrong = (faults or {}).get(f"{script.story_name}/{shot.key}", {})
            pictures = [draw_frame(names_of(shot), frame, wrong) for frame in range(frames)]
            path = folder / str(script.story_name) / f"{shot.scene:03d}_{shot.number:03d}.mkv"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_frames(path, pictures, LOSSLESS)
    return folder


def find_in(image: "Image", name: str) -> tuple[Box, ...]:
    """Return the box of something in a picture, drawn rightly or faded; of a place, the whole picture."""
    pixels = np.asarray(image.convert("RGB"), dtype=np.int16)
    for colour, score in ((COLOURS[name], 0.9), (faded(name), 0.5)):
        there = (np.abs(pixels - np.array(colour)) <= _NEAR).all(axis=-1)
        if there.mean() >= _LEAST:
            if name in _PLACES:
                return (Box(0, 0, image.width, image.height, score, name),)
            rows, columns = np.flatnonzero(there.any(axis=1)), np.flatnonzero(there.any(axis=0))
            edges = (float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))
            return (Box(*edges, score, name),)
    return ()


def name_in(text: str) -> str | None:
    """Return of whom or what a description is, or the beginning of one; names are descriptions, too."""
    words = text.lower().rstrip(". ")
    known = [(name, description) for name, description in CAST.values()]
    return next(
        (name for name, description in known if words and description.lower().startswith(words)),
        next((name for name in COLOURS if name.lower() == words), None),
    )


class TruthGrounder(Plain):
    """A detector that finds what a description is about by its colour.

    Args:
        log: file that gets a line whenever it looks, the same for the same pictures and texts.
    """

    def __init__(self, log: str | None = None) -> None:
        super().__init__("truth-grounder", 0)
        self._log = log
        self.seen = 0
        """Pairs of a picture and a text that were looked at since it was made."""

    def ground(
        self, images: "Sequence[Image]", texts: Sequence[Sequence[str]], batch: int = 1
    ) -> list[list[tuple[Box, ...]]]:
        """Return the boxes of each text in its picture."""
        assert batch >= 1
        self.seen += sum(map(len, texts))
        if self._log is not None:
            key = digest([[vector_key("", image).hex() for image in images], [list(some) for some in texts]])
            with Path(self._log).open("a", encoding="utf-8") as log:
                log.write(f"{key}\n")
        named = [[name_in(text) for text in some] for some in texts]
        return [
            [() if name is None else find_in(image, name) for name in some]
            for image, some in zip(images, named, strict=True)
        ]


class TruthTexts(Plain):
    """An encoder in whose space a crop is as similar to a description as it shows what that is about."""

    def __init__(self) -> None:
        super().__init__("truth-texts", len(COLOURS) + 1)

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors of what most of each picture shows, shape (images, 7)."""
        rows = np.zeros((len(images), len(COLOURS) + 1), dtype=np.float64)
        for row, image in zip(rows, images, strict=True):
            pixels = np.asarray(image.convert("RGB"), dtype=np.int16)[::4, ::4]
            share = [
                (float((np.abs(pixels - np.array(colour)) <= _NEAR).all(axis=-1).mean()), number, near)
                for number, name in enumerate(COLOURS)
                for colour, near in ((COLOURS[name], RIGHT), (faded(name), FADED))
            ]
            most, number, near = max(share)
            if most:
                row[number] = near
            row[-1] = np.sqrt(1 - (row[:-1] ** 2).sum())
        return rows.astype(np.float32)

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return the unit vector of what each text describes; 77 words fit."""
        rows = np.zeros((len(texts), len(COLOURS) + 1), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            name = name_in(text)
            row[-1 if name is None else list(COLOURS).index(name)] = 1
        return TextRows(rows, tuple(max(0, len(text.split()) - 77) for text in texts))


def colours(image: "Image") -> Rows:
    """Return the square roots of how the colours of a picture are spread over 216 bins with soft edges."""
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


class TruthVectors(Plain):
    """An encoder: how the colours of a picture are spread, looked at in 32 x 32 of its pixels."""

    def __init__(self) -> None:
        super().__init__("truth-vectors", _BINS**3)

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 216)."""
        rows = [colours(image.resize((32, 32), 0)) for image in images]
        return np.stack(rows) if rows else np.empty((0, _BINS**3), dtype=np.float32)


def load_truth_vectors(place: Place) -> TruthVectors:
    """Return the encoder of crops and frames: in the place of DINOv2."""
    return TruthVectors()


def load_truth_grounder(place: Place, log: str | None = None) -> TruthGrounder:
    """Return the detector: in the place of GroundingDINO."""
    return TruthGrounder(log)


def load_truth_texts(place: Place) -> TruthTexts:
    """Return the encoder of crops and descriptions: in the place of CLIP."""
    return TruthTexts()

"""Stage: where the entities of a shot are in its frames, and the crop that stands for each (Eq. 7-12).

The one grounding pass of a shot: judges of fidelity, of pairs and of actions, vectors and the page all use
what is found here. Boxes and vectors are kept in the user's store, so that only what is new is looked for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....media.images import encode_image, open_picture
from ....media.kept_files import keep_file
from ....media.quality import sharpness
from ....models.vision.needs import opened
from ....models.vision.store import Box, Grounder, GroundingStore, Rows, TextEncoder
from ....schemas.canonical import Json, sha256_bytes
from .settings import Grounding, GroundSettings

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Crops of entities: how a box becomes a crop, and how good a crop is (EntityBench, Eq. 7-11)
#
# Both definitions cut whole pixels with a margin, and rate a crop by the product of three numbers. ``paper``
# scales crops to 224 x 224 pixels and takes the variance of the Laplacian and the area of the box; ``code``
# leaves them in their size and takes second differences and the area of the padded crop. All functions are
# pure.

SIDE = 224
"""Pixels a side of a crop (Table 11)."""
QUERY_WORDS = 12
"""Words of a description that ``code`` looks for."""
_SHARP, _AREA = (100.0, 200.0), (2.0, 5.0)
"""Middle and spread of the logistic functions of sharpness, and of area in percent (Eq. 8 and 9)."""


class Pixels(NamedTuple):
    """A rectangle of whole pixels; ``right`` and ``bottom`` are beyond it."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        """How many pixels it has."""
        return max(0, self.right - self.left) * max(0, self.bottom - self.top)


@dataclass(frozen=True, slots=True)
class Rating:
    """How good a crop is."""

    clip: float  # similarity to the description, -1 to 1 (Eq. 7).
    sharpness: float  # 0 to 1 (Eq. 8).
    area: float  # 0 to 1 (Eq. 9).

    @property
    def selection(self) -> float:
        """The product, by which the canonical crop is chosen (Eq. 10)."""
        return self.clip * self.sharpness * self.area


def query_of(description: str, definition: Grounding) -> str:
    """Return what is looked for: the whole description, or its first twelve words."""
    return description if definition == "paper" else " ".join(description.split()[:QUERY_WORDS])


def padded(box: Box, size: tuple[int, int], padding: float) -> Pixels:
    """Return the pixels of a crop: those of the box and a margin, as far as they are in the picture.

    ``box``: in pixels. ``padding``: share of the box's width and height that is added on each side; whole
    pixels, rounded down.
    """
    left, top = max(0, int(box.left)), max(0, int(box.top))
    right, bottom = min(size[0], int(box.right)), min(size[1], int(box.bottom))
    across, down = int((right - left) * padding), int((bottom - top) * padding)
    return Pixels(
        max(0, left - across), max(0, top - down), min(size[0], right + across), min(size[1], bottom + down)
    )


def crop_of(image: "Image", pixels: Pixels, definition: Grounding) -> "Image | None":
    """Return the crop; None where no pixel is in it."""
    if not pixels.area:
        return None
    crop = image.crop(pixels)
    if definition == "code":
        return crop
    from PIL.Image import Resampling

    return crop.resize((SIDE, SIDE), Resampling.BICUBIC)


def crop_sharpness(crop: "Image", definition: Grounding) -> float:
    """Return how sharp a crop is, before it is brought to 0 to 1; 0 of less than 3 x 3 pixels."""
    if definition == "paper":
        return sharpness(np.asarray(crop.convert("L"), dtype=np.float64))
    grey = np.asarray(crop, dtype=np.uint8).mean(axis=2)
    if min(grey.shape) < 3:
        return 0.0
    return float(np.diff(grey, n=2, axis=1).var() + np.diff(grey, n=2, axis=0).var())


def area_percent(box: Box, pixels: Pixels, size: tuple[int, int], definition: Grounding) -> float:
    """Return the area of the box, or of the padded crop, in percent of the picture."""
    return 100.0 * (box.area if definition == "paper" else pixels.area) / (size[0] * size[1])


def rating_of(clip: float, sharp: float, percent: float) -> Rating:
    """Return how good a crop is."""
    return Rating(clip, logistic((sharp - _SHARP[0]) / _SHARP[1]), logistic((percent - _AREA[0]) / _AREA[1]))


def best_of(ratings: Sequence[Rating]) -> int:
    """Return which rating is the best, the first of equals (Eq. 11)."""
    return max(range(len(ratings)), key=lambda index: (ratings[index].selection, -index))


def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value))."""
    return 1.0 / (1.0 + math.exp(-value))


# --

SPEC = StageSpec(
    name="ground_entities",
    version=2,
    shape="map",
    reads=("shot", "frames"),
    writes=("grounded",),
    libraries=("pillow", "numpy"),
    settings=GroundSettings,
    patience=40,
)
ABSENT: Json = {"status": "absent", "boxes": {}, "canonical": None}


@dataclass(frozen=True)
class _Means:
    """Who looks, what keeps what they see, and where crops go."""

    detector: Grounder
    text: TextEncoder
    store: GroundingStore
    settings: GroundSettings
    folder: Path | None


@dataclass(frozen=True)
class _Candidate:
    """A box in one of the frames that are grounded, with its crop."""

    frame: int
    box: Box
    crop: "Image"
    percent: float


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the boxes of every entity in every frame, and its status and canonical crop.

    Null where nobody looks, and for a shot without frames.
    """
    settings = tools.own(GroundSettings)
    if settings.detector is None or settings.text is None or all(_invalid(item) for item in items):
        return [Made({"grounded": None}) for _ in items]
    detector = opened(settings.detector, settings, "grounder")
    text = opened(settings.text, settings, "text encoder")
    with GroundingStore.of_user() as store:
        means = _Means(detector, text, store, settings, tools.store)
        return [Made({"grounded": None if _invalid(item) else _grounded(item, means)}) for item in items]


def _invalid(item: Item) -> bool:
    return item["frames"]["invalid"] is not None


def _grounded(item: Item, means: _Means) -> Json:
    frames, entities = item["frames"], item["shot"]["entities"]
    assert means.folder is not None, "a run keeps its frames in a folder"
    indices = sorted({*frames["ground"], *frames["grid"]})
    images = {index: open_picture(means.folder / frames["pictures"][str(index)]).image for index in indices}
    descriptions = [entity["description"] for entity in entities]
    queries = [query_of(text, means.settings.definition) for text in descriptions]
    boxes = means.store.boxes(
        means.detector, list(images.values()), [queries] * len(images), means.settings.pairs_at_once
    )
    known = means.store.texts(means.text, descriptions, means.settings.batch)
    made = {}
    for number, entity in enumerate(entities):
        by_frame = {index: row[number] for index, row in zip(indices, boxes, strict=True)}
        candidates = [
            candidate
            for index in frames["ground"]
            for candidate in _candidates(index, images[index], by_frame[index], means.settings)
        ]
        row = _entity(by_frame, candidates, known.rows[number], means)
        made[entity["key"]] = {**row, "cut": known.cut[number]} if known.cut[number] else row
    return {
        "models": {"detector": means.detector.identity, "text": means.text.identity},
        "entities": made,
    }


def _candidates(
    frame: int, image: "Image", boxes: Sequence[Box], settings: GroundSettings
) -> "list[_Candidate]":
    made = []
    for box in boxes:
        pixels = padded(box, image.size, settings.padding)
        crop = crop_of(image, pixels, settings.definition)
        if crop is not None:
            percent = area_percent(box, pixels, image.size, settings.definition)
            made.append(_Candidate(frame, box, crop, percent))
    return made


def _entity(
    by_frame: Mapping[int, Sequence[Box]], candidates: Sequence[_Candidate], text: Rows, means: _Means
) -> Json:
    """Return what is known of one entity in a shot: absent without a box in the frames that are grounded."""
    boxes = {
        str(index): [[*_edges(box), box.score] for box in some] for index, some in by_frame.items() if some
    }
    if not candidates:
        return {**ABSENT, "boxes": boxes}
    rows = means.store.rows(means.text, [candidate.crop for candidate in candidates], means.settings.batch)
    ratings = [
        rating_of(float(row.astype(float) @ text.astype(float)),
                  crop_sharpness(candidate.crop, means.settings.definition), candidate.percent)
        for candidate, row in zip(candidates, rows, strict=True)
    ]  # fmt: skip
    best = best_of(ratings)
    present = ratings[best].clip >= means.settings.present_from
    return {
        "status": "present" if present else "weak",
        "boxes": boxes,
        "canonical": _canonical(candidates[best], ratings[best], means.folder),
    }


def _canonical(chosen: _Candidate, rating: Rating, folder: Path | None) -> Json:
    data = encode_image(chosen.crop, format="png")
    name = f"{sha256_bytes(data)}.png"
    if folder is not None:
        keep_file(data, name, folder)
    return {
        "frame": chosen.frame, "box": _edges(chosen.box), "score": chosen.box.score, "clip": rating.clip,
        "sharpness": rating.sharpness, "area": rating.area, "selection": rating.selection,
        "file": name, "width": chosen.crop.width, "height": chosen.crop.height,
    }  # fmt: skip


def _edges(box: Box) -> list[float]:
    return [box.left, box.top, box.right, box.bottom]

"""Stage: where the entities of a shot are in its frames, and the crop that stands for each (Eq. 7-12).

The one grounding pass of a shot: judges of fidelity, of pairs and of actions, vectors and the page all use
what is found here. Boxes and vectors are kept in the user's store, so that only what is new is looked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....media.images import encode_image, open_picture
from ....media.kept_files import keep_file
from ....models.vision.needs import opened
from ....models.vision.store import GroundingStore
from ....models.vision.types import Box, Grounder, Rows, TextEncoder
from ....schemas.canonical import Json, sha256_bytes
from .crops import Rating, area_percent, best_of, crop_of, crop_sharpness, padded, query_of, rating_of
from .settings import GroundSettings

if TYPE_CHECKING:
    from PIL.Image import Image

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

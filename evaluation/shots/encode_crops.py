"""Stage: vectors of the crops of a story's pictures and of its characters' references.

A reference is cropped to its best box. Where no reference of a character has a box, or no crop of any has a
vector, all of them count whole, as the public code has it; a reference without a box beside others that have
one has no vector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.vision.needs import opened
from ...models.vision.store import VectorStore
from ...models.vision.types import Definition, Rows
from ...schemas.canonical import Json
from ..metrics.vectors import packed
from .found import crop_of, open_shot
from .settings import CropSettings

if TYPE_CHECKING:
    from PIL.Image import Image

SPEC = StageSpec(
    name="encode_crops",
    version=3,
    shape="map",
    reads=("story", "shots", "boxes"),
    writes=("crops",),
    libraries=("pillow", "numpy"),
    settings=CropSettings,
    patience=20,
)


@dataclass(frozen=True)
class _Means:
    """The encoders by name, and what keeps their vectors."""

    models: Mapping[str, Any]
    store: VectorStore
    settings: CropSettings

    def rows(self, name: str, images: "Sequence[Image | None]") -> Rows:
        """Return a row for every picture, ``nan`` where there is none."""
        there = [index for index, image in enumerate(images) if image is not None]
        some = [image for image in images if image is not None]
        made = self.store.rows(self.models[name], some, self.settings.batch)
        rows = np.full((len(images), max(1, made.shape[1])), np.nan, dtype=np.float32)
        if there:
            rows[there] = made
        return rows

    def all(self, names: Sequence[str], images: "Sequence[Image | None]") -> dict[str, Rows]:
        """Return the rows of several encoders."""
        return {name: self.rows(name, images) for name in names}


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the vectors by encoder; null where nobody looked for characters or nobody encodes."""
    settings = tools.own(CropSettings)
    names = tuple(dict.fromkeys((*settings.pictures, *settings.faces)))
    if not names or all(item["boxes"] is None for item in items):
        return [Made({"crops": None}) for _ in items]
    models = {name: opened(name, settings, "encoder") for name in names}
    with VectorStore.of_user() as store:
        means = _Means(models, store, settings)
        return [
            Made({"crops": None if item["boxes"] is None else _crops(item, names, means)}) for item in items
        ]


def _crops(item: Item, names: Sequence[str], means: _Means) -> Json:
    sheets = item["story"]["script"].get("Characters", {})
    encoders = {key: means.settings.encoders(sheet.get("tag")) for key, sheet in sheets.items()}
    references, mirrors, whole = {}, {}, []
    for key, images in item["story"]["references"].items():
        opened_images = [open_shot(image["file"]) for image in images]
        boxes = item["boxes"]["references"][key]
        pictures = _cut_references(opened_images, boxes, means.settings.reference_crop)
        rows = means.all(encoders[key], pictures)
        if images and encoders[key] and not _known(rows):
            whole.append(key)
            pictures = [*opened_images]
            rows = means.all(encoders[key], pictures)
        references[key] = {name: packed(table) for name, table in rows.items()}
        mirrors[key] = _mirror(pictures, rows, means)
    shots = {}
    for shot in item["shots"]:
        if shot["file"] is not None:
            wanted = {name for key in shot["expected"] for name in encoders[key]}
            shots[str(shot["number"])] = _shot(item, shot, names, wanted, means)
    return {
        "encoders": {key: list(some) for key, some in encoders.items()},
        "models": {name: means.models[name].identity for name in names},
        "shots": shots, "references": references, "mirrors": mirrors, "whole_references": whole,
    }  # fmt: skip


def _cut_references(
    images: "Sequence[Image]", boxes: Sequence[Json], definition: Definition
) -> "list[Image | None]":
    """Return each reference cropped to its best box; None where it has none."""
    pairs = zip(images, boxes, strict=True)
    return [crop_of(image, some[0], definition) if some else None for image, some in pairs]


def _known(rows: Mapping[str, Rows]) -> bool:
    """Whether any picture has a vector by any of the encoders."""
    return any(bool((~np.isnan(table).any(axis=1)).any()) for table in rows.values())


def _mirror(pictures: "Sequence[Image | None]", rows: Mapping[str, Rows], means: _Means) -> Json:
    """Return the vectors of the mirror image of the first reference that an encoder knows."""
    from PIL import ImageOps

    for index, picture in enumerate(pictures):
        if picture is not None and any(not np.isnan(table[index]).any() for table in rows.values()):
            made = means.all(tuple(rows), [ImageOps.mirror(picture)])
            return {name: packed(table) for name, table in made.items()}
    return {}


def _shot(item: Item, shot: Json, names: Sequence[str], wanted: set[str], means: _Means) -> Json:
    """Return a shot's rows by encoder; those that tell nobody on stage have no vectors."""
    image = open_shot(shot["file"])
    cut = [crop_of(image, box) for box in item["boxes"]["shots"][str(shot["number"])]]
    nothing = np.full((len(cut), 1), np.nan, dtype=np.float32)
    return {name: packed(means.rows(name, cut) if name in wanted else nothing) for name in names}

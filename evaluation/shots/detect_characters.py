"""Stage: where characters are in the pictures of a story, and in the references of its characters."""

from collections.abc import Sequence

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.vision.needs import opened
from ...models.vision.store import VectorStore
from ...schemas.canonical import Json
from .found import BoxRows, boxes_of, open_shot
from .settings import DetectSettings

SPEC = StageSpec(
    name="detect_characters",
    version=2,
    shape="map",
    reads=("story", "shots"),
    writes=("boxes",),
    libraries=("pillow", "numpy"),
    settings=DetectSettings,
    patience=20,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the boxes of every picture, as left, top, right, bottom and score; null where nobody looks."""
    settings = tools.own(DetectSettings)
    if settings.model is None:
        return [Made({"boxes": None}) for _ in items]
    detector = BoxRows(opened(settings.model, settings, "detector"))
    with VectorStore.of_user() as store:
        return [Made({"boxes": _boxes(item, detector, store, settings.batch)}) for item in items]


def _boxes(item: Item, detector: BoxRows, store: VectorStore, batch: int) -> Json:
    def found(files: Sequence[str]) -> list[list[list[float]]]:
        images = [open_shot(file) for file in files]
        return [boxes_of(row) for row in store.rows(detector, images, batch)]

    there = [shot for shot in item["shots"] if shot["file"] is not None]
    shots = found([shot["file"] for shot in there])
    return {
        "model": detector.identity,
        "shots": {str(shot["number"]): boxes for shot, boxes in zip(there, shots, strict=True)},
        "references": {
            key: [boxes[:1] for boxes in found([image["file"] for image in images])]
            for key, images in item["story"]["references"].items()
        },
    }

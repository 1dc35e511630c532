"""Stage: vectors of the canonical crops of a shot, and of its first and last frame (EntityBench, B.4.2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....media.images import open_picture
from ....media.kept_files import kept_bytes
from ....models.vision.needs import opened
from ....models.vision.store import VectorStore
from ....schemas.canonical import Json
from ...metrics.vectors import packed
from .ground_entities import SIDE
from .settings import AppearanceSettings

if TYPE_CHECKING:
    from PIL.Image import Image

SPEC = StageSpec(
    name="encode_appearances",
    version=2,
    shape="map",
    reads=("shot", "frames", "grounded"),
    writes=("vectors",),
    libraries=("pillow", "numpy"),
    settings=AppearanceSettings,
    patience=20,
)
CENTRED = ("dinov2-base", "dinov2-l-14")
"""Encoders of ours that make the shorter side 256 pixels long and look at the 224 x 224 in the middle."""
_AROUND = 256
_AGAIN = "evaluate into a new folder with --reuse and this run"


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the vectors, each of shape (1, dimensions); null where nobody looks, and without frames.

    Crops of weak appearances have vectors, too; absent entities have none.
    """
    settings = tools.own(AppearanceSettings)
    if settings.encoder is None or all(item["frames"]["invalid"] is not None for item in items):
        return [Made({"vectors": None}) for _ in items]
    encoder = opened(settings.encoder, settings, "encoder")
    whole = settings.definition == "paper" and settings.encoder in CENTRED
    with VectorStore.of_user() as store:

        def vectors(item: Item) -> Json:
            if item["frames"]["invalid"] is not None:
                return None
            names = _pictures(item)
            assert tools.store is not None, "a run keeps its pictures in a folder"
            contents = [kept_bytes(tools.store, name, fix=_AGAIN) for name in names.values()]
            images = [open_picture(content).image for content in contents]
            seen = [whole_view(image) for image in images] if whole else images
            rows = store.rows(encoder, seen, settings.batch)
            made = {key: packed(rows[number : number + 1]) for number, key in enumerate(names)}
            first, last = (made.pop(part) for part in ("first", "last"))
            return {"model": encoder.identity, "crops": made, "first": first, "last": last}

        return [Made({"vectors": vectors(item)}) for item in items]


def whole_view(image: "Image") -> "Image":
    """Return a picture of which an encoder of :data:`CENTRED` sees all, at 224 x 224 pixels (Table 11).

    The picture, made 224 x 224, is the middle of one of 256 x 256: what is cut off around it is not of it.
    """
    from PIL import Image as Pillow

    margin = (_AROUND - SIDE) // 2
    around = Pillow.new("RGB", (_AROUND, _AROUND))
    around.paste(image.resize((SIDE, SIDE), Pillow.Resampling.BICUBIC), (margin, margin))
    return around


def _pictures(item: Item) -> dict[str, str]:
    """Return ``first``, ``last`` or the key of an entity -> the file of what is encoded."""
    frames, grounded = item["frames"], item["grounded"]
    entities = {} if grounded is None else grounded["entities"]
    crops = {key: entity["canonical"]["file"] for key, entity in entities.items() if entity["canonical"]}
    ends = {part: frames["pictures"][str(frames[part])] for part in ("first", "last")}
    return {**crops, **ends}

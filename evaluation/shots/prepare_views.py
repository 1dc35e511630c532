"""Stage: pictures and crops as judges get them: encoded once, kept by content, without metadata."""

from typing import TYPE_CHECKING

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...media.images import Picture
from ...schemas.canonical import Json
from ..judging.pictures import keep_pictures, prepare_picture
from .found import crop_of, open_shot
from .settings import ViewSettings

if TYPE_CHECKING:
    from PIL.Image import Image

SPEC = StageSpec(
    name="prepare_views",
    version=2,
    shape="map",
    reads=("shots", "matches"),
    writes=("views",),
    libraries=("pillow",),
    settings=ViewSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the file in the run's store of every picture and every matched crop; none without judges."""
    settings = tools.own(ViewSettings)
    shots: dict[str, Json] = {}
    crops: list[Json] = []
    for shot in item["shots"] if settings.wanted else ():
        if shot["file"] is None:
            continue
        image = open_shot(shot["file"])
        shots[str(shot["number"])] = _view(image, settings, tools)
        for match in item["matches"]:
            if match["shot"] != shot["number"]:
                continue
            cut = image if match["box"] is None else crop_of(image, match["box"])
            if cut is not None:
                crops.append({**match, **_view(cut, settings, tools)})
    return Made({"views": {"shots": shots, "crops": crops}})


def _view(image: "Image", settings: ViewSettings, tools: Tools) -> dict[str, Json]:
    prepared = prepare_picture(Picture(image, "PNG"), settings)
    if tools.store is not None:
        keep_pictures([prepared], tools.store)
    return {"file": prepared.file_name, "width": prepared.width, "height": prepared.height}

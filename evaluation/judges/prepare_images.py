"""Stage: the pictures of a storyboard as judges get them, decoded and encoded once, kept by content."""

from pathlib import Path

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...errors import InputError
from .images import ImageSettings, keep_pictures, prepare_storyboard

SPEC = StageSpec(
    name="prepare_images",
    version=1,
    shape="map",
    reads=("shown",),
    writes=("frames",),
    libraries=("pillow",),
    settings=ImageSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return name, size and notes of each picture, in story order; none for an invalid generation."""
    assert isinstance(tools.settings, ImageSettings)
    files = [Path(file) for file in item["shown"]["files"]]
    try:
        pictures = prepare_storyboard(files, tools.settings)
    except InputError as error:
        return Failed("picture", str(error))  # it could be read when it was checked
    if tools.store is not None:
        keep_pictures(pictures, tools.store)
    frames = [
        {"file": one.file_name, "width": one.width, "height": one.height, "notes": list(one.notes)}
        for one in pictures
    ]
    return Made({"frames": frames})

"""Stage: the pictures of a storyboard as judges get them, decoded and encoded once, kept by content."""

from pathlib import Path

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...errors import InputError
from ...schemas.canonical import sha256_file
from ..judging.settings import ImageSettings, keep_pictures, prepare_storyboard
from ..outputs.layout import UNREADABLE

SPEC = StageSpec(
    name="prepare_images",
    version=4,
    shape="map",
    reads=("shown",),
    writes=("frames", "unusable"),
    libraries=("pillow",),
    settings=ImageSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return name, size and notes of each picture, in story order; none for an invalid generation.

    Of a video these are the frames that the outputs ask for.

    A storyboard with a file that holds no picture is as invalid as one with a missing file: ``unusable`` says
    so. It fails only where files are no longer those that were found.
    """
    shown = item["shown"]
    files = [Path(file) for file in shown["files"]]
    try:
        pictures = prepare_storyboard(files, tools.own(ImageSettings), frames=shown.get("sampled", 1))
    except InputError as error:
        changed = [file for file, sha256 in zip(files, shown["sha256"], strict=True) if _hash(file) != sha256]
        if changed:
            return Failed("picture", f"{changed[0]} has changed since it was found; {error}")
        return Made({"frames": [], "unusable": [UNREADABLE]})
    if tools.store is not None:
        keep_pictures(pictures, tools.store)
    frames = [
        {"file": one.file_name, "width": one.width, "height": one.height, "notes": list(one.notes)}
        for one in pictures
    ]
    return Made({"frames": frames, "unusable": []})


def _hash(file: Path) -> str | None:
    try:
        return sha256_file(file)
    except OSError:
        return None

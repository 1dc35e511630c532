"""The copy-paste baseline: each shot is the first reference images of who is on stage, side by side.

It copies, so character similarity and copy-paste rate are as high as they can be, and the script is not
followed (ViStoryBench, supplement section F.1). A shot without anybody on stage is a plain ground.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import TargetError
from ..media.images import Picture, encode, open_picture
from ..releases.shots.tree import ShotSet, ShotStory
from ..schemas.canonical import canonical_bytes, write_atomic, writing

if TYPE_CHECKING:
    from PIL.Image import Image

METHOD = "copy-paste"
HEIGHT = 512
"""Height of every picture, in pixels."""
WIDTH = HEIGHT * 16 // 9
"""Width of a shot without anybody on stage."""
GROUND = (128, 128, 128)


UNFINISHED = ".unfinished.json"
"""File in the folder until every picture is there; it says of which set they are."""


def write_copy_paste(shot_set: ShotSet, out: Path) -> int:
    """Write the baseline's outputs for a set: ``<story>/shot_01.png`` and so on.

    A folder that was begun for the same set is continued: pictures that are there are whole, and stay.

    Returned: how many pictures there are.
    """
    pictures = 0
    with writing(out):
        _begin(shot_set, out)
        for story in shot_set.stories:
            folder = out / story.story_id
            folder.mkdir(exist_ok=True)
            for part in folder.glob(".*.part"):  # of a picture that was being written
                part.unlink()
            places = {folder / f"shot_{shot.index:02d}.png": shot for shot in story.script.shots}
            missing = [path for path in places if not path.exists()]
            opened = _first_references(shot_set, story) if missing else {}
            for path in missing:
                cast = [
                    opened[key] for key in dict.fromkeys(story.script.cast(places[path])) if key in opened
                ]
                write_atomic(path, [stitch(cast)])
            pictures += len(places)
        (out / UNFINISHED).unlink()
    return pictures


def _begin(shot_set: ShotSet, out: Path) -> None:
    """Make the folder, or see that it is the unfinished one of this set."""
    mark, note = out / UNFINISHED, canonical_bytes({"method": METHOD, "set": shot_set.sha256})
    if mark.is_file():
        if mark.read_bytes() != note:
            raise TargetError(
                str(out), what="a call that was interrupted began this folder for another set of scripts",
                fix="give that set again, or choose another folder with --out",
            )  # fmt: skip
        return
    if out.exists() and not (out.is_dir() and _is_bare(out)):
        raise TargetError(
            str(out), what="the folder exists already",
            fix="choose another with --out",
        )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    for part in out.glob(f".{UNFINISHED}.*.part"):
        part.unlink()
    write_atomic(mark, [note])


def _is_bare(folder: Path) -> bool:
    """Whether nothing is in a folder but what a killed first step left."""
    return all(path.name.startswith(f".{UNFINISHED}.") for path in folder.iterdir())


def stitch(pictures: Sequence[Picture]) -> bytes:
    """Return a PNG with the pictures side by side, all scaled to one height."""
    from PIL import Image

    parts = [_scaled(picture) for picture in pictures]
    width = sum(part.width for part in parts) or WIDTH
    whole = Image.new("RGB", (width, HEIGHT), GROUND)
    left = 0
    for part in parts:
        whole.paste(part, (left, 0))
        left += part.width
    return encode(Picture(whole, "PNG"))


def _scaled(picture: Picture) -> "Image":
    from PIL import Image

    width = max(1, round(picture.width * HEIGHT / picture.height))
    return picture.image.resize((width, HEIGHT), Image.Resampling.LANCZOS)


def _first_references(shot_set: ShotSet, story: ShotStory) -> dict[str, Picture]:
    return {key: open_picture(shot_set.path(images[0])) for key, images in story.references.items() if images}

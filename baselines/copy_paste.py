"""The copy-paste baseline: each shot is the first reference images of who is on stage, side by side.

It copies, so character similarity and copy-paste rate are as high as they can be, and the script is not
followed (ViStoryBench, supplement section F.1). A shot without anybody on stage is a plain ground.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import TargetError
from ..media.images import Picture, encode, open_picture
from ..releases.shot_tree import ShotSet, ShotStory
from ..schemas.canonical import write_atomic

if TYPE_CHECKING:
    from PIL.Image import Image

METHOD = "copy-paste"
HEIGHT = 512
"""Height of every picture, in pixels."""
WIDTH = HEIGHT * 16 // 9
"""Width of a shot without anybody on stage."""
GROUND = (128, 128, 128)


def write_copy_paste(shot_set: ShotSet, out: Path) -> int:
    """Write the baseline's outputs for a set: ``<story>/shot_01.png`` and so on.

    Args:
        shot_set: the set; a character without a usable reference image is left out of its shots.
        out: a new folder.

    Returns:
        How many pictures were written.

    Raises:
        TargetError: the folder is there already, or cannot be written.
    """
    if out.exists():
        raise TargetError(
            str(out), expected="a folder that is not there yet", found="something there",
            fix="choose another with --out",
        )  # fmt: skip
    written = 0
    try:
        for story in shot_set.stories:
            folder = out / story.story_id
            folder.mkdir(parents=True)
            opened = _first_references(shot_set, story)
            for shot in story.script.shots:
                cast = [opened[key] for key in dict.fromkeys(story.script.cast(shot)) if key in opened]
                write_atomic(folder / f"shot_{shot.index:02d}.png", [stitch(cast)])
                written += 1
    except OSError as error:
        raise TargetError(
            str(out), expected="a folder that can be written", found=error.strerror or str(error),
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip
    return written


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

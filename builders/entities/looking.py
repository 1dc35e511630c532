"""What the stages that look at people share: frames of many shots at once, and what is in a box."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator

from ...media.video import Frame, frames_at
from ...models.vision.crop import cut
from ...models.vision.types import Box
from .drafts import Box4

if TYPE_CHECKING:
    from PIL.Image import Image


ModelName = Annotated[str | None, BeforeValidator(lambda name: None if name == "none" else name)]
"""Name of a model; ``none``, or null, for none."""


def frames_of(file: str, wanted: Mapping[str, Sequence[int]]) -> Iterator[tuple[Frame, tuple[str, ...]]]:
    """Yield the frames of a video that some shots want, ascending, each with the ids of those shots.

    The video is gone through once, whatever the number of shots.

    Args:
        file: the video.
        wanted: id of a shot -> frames.

    Raises:
        MediaProblem: the video cannot be read. MissingRequirement: the extra ``video`` is not installed.
    """
    who: dict[int, list[str]] = {}
    for shot, numbers in wanted.items():
        for number in numbers:
            who.setdefault(number, []).append(shot)
    for frame in frames_at(Path(file), sorted(who)):
        yield frame, tuple(who[frame.index])


def cut_out(image: "Image", box: Box4, around: float = 0.0) -> "Image | None":
    """Return the part of a picture in a box, with a share of its sides around it; None where no pixel is."""
    left, top, right, bottom = box
    across, down = around * (right - left), around * (bottom - top)
    return cut(image, Box(left - across, top - down, right + across, bottom + down))

"""What the stages that look at people share: settings, opening models, and frames of many shots at once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from ...media.video import Frame, frames_at
from ...models.vision.crop import cut
from ...models.vision.devices import Place
from ...models.vision.registry import Kind, open_vision
from ...models.vision.types import Box, Device, Dtype, VisionModel
from ...schemas.base import Own
from ...schemas.canonical import canonical_text
from .drafts import Box4

if TYPE_CHECKING:
    from PIL.Image import Image


ModelName = Annotated[str | None, BeforeValidator(lambda name: None if name == "none" else name)]
"""Name of a model; ``none``, or null, for none."""


class LookSettings(Own):
    """Where models run, and what they are given besides their name."""

    device: Device = Field(default="cpu", description="Class of device: cpu, cuda or mps.")
    dtype: Dtype = Field(default="float32", description="Numbers of the models: float32, float16, bfloat16.")
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Name of a model -> settings of its loader, such as local."
    )
    batch: int = Field(default=16, ge=1, le=1024, description="Pictures that a model gets at once.")


def opened(name: str, settings: LookSettings, kind: Kind, defaults: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of that kind
    """Return a model of a kind, loaded once in a process.

    Args:
        name: of the model.
        settings: where it runs, and its options.
        kind: what it has to be.
        defaults: options where the settings give none.

    Raises:
        ConfigError, MissingRequirement: as :func:`fabula.models.vision.registry.open_vision`.
    """
    options = {**defaults, **settings.options.get(name, {})}
    return _opened(name, Place(settings.device, settings.dtype), canonical_text(options), kind)


@cache
def _opened(name: str, place: Place, options: str, kind: Kind) -> VisionModel:
    import json

    return open_vision(name, place, json.loads(options), kind)


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

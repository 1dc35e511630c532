"""What the stages that look at people share: settings, opening models, and frames of many shots at once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from ...errors import MissingRequirement
from ...media.video import Frame, frames_at
from ...models.vision.crop import cut
from ...models.vision.looking import VisionSettings
from ...models.vision.looking import opened as opened_once
from ...models.vision.registry import Kind, files_of
from ...models.vision.types import Box
from ...models.vision.weights import Source, revision_of
from ...schemas.canonical import canonical_text, digest
from .drafts import Box4

if TYPE_CHECKING:
    from PIL.Image import Image


ModelName = Annotated[str | None, BeforeValidator(lambda name: None if name == "none" else name)]
"""Name of a model; ``none``, or null, for none."""


class LookSettings(VisionSettings):
    """Where models run, what they are given besides their name, and what they were when the run began."""

    weights: dict[str, str] = Field(
        default_factory=dict,
        description="Name of a model -> hash of the files that its options name, as the run began with them.",
    )

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models that look."""
        return ()


def opened(name: str, settings: LookSettings, kind: Kind, defaults: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of that kind
    """Return a model of a kind, loaded once in a process, with the weights that the run began with.

    Args:
        name: of the model.
        settings: where it runs, and its options.
        kind: what it has to be.
        defaults: options where the settings give none.

    Raises:
        ConfigError: as :func:`fabula.models.vision.registry.open_vision`.
        MissingRequirement: as there; or its files are others than those that the run began with.
    """
    began, now = settings.weights.get(name), _files_hash(name, canonical_text(settings.options.get(name, {})))
    if began is not None and began != now:
        raise MissingRequirement(
            f"weights of {name}", expected=f"the files that the run began with, {began[:12]}",
            found="nothing" if now is None else f"others, {now[:12]}",
            fix="put them back, or build again with `fabula build entities`: what they saw is looked at anew",
        )  # fmt: skip
    return opened_once(name, settings, kind, defaults)


@cache
def _files_hash(name: str, options: str) -> str | None:
    return files_hash(name, json.loads(options))


def files_hash(name: str, options: Mapping[str, Any]) -> str | None:
    """Return a hash of the files and folders that a model's options name, None where none of them is there.

    Raises:
        ConfigError: there is no such model, or an option is wrong. MissingRequirement: one cannot be read.
    """
    files = {key: path for key, path in files_of(name, options).items() if path.exists()}
    hashes = {key: revision_of(Source(name), path) for key, path in sorted(files.items())}
    return digest(hashes) if hashes else None


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

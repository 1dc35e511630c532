"""Stage: the frames of a shot that are looked at, decoded once, kept without loss in the run's store.

Grounding, action grids, judges of locations and vectors of first and last frames take their pixels there.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....media.images import MediaProblem, encode_image, keep_file
from ....media.quality import sharpness
from ....media.video import frames_at, outline, walk_frames
from ....schemas.canonical import Json, sha256_bytes
from ...outputs.entities import FEWEST
from .settings import FrameSettings, Locations, frames_of

if TYPE_CHECKING:
    from PIL.Image import Image

SPEC = StageSpec(
    name="take_frames",
    version=1,
    shape="map",
    reads=("shot",),
    writes=("frames",),
    libraries=("pillow", "av", "numpy"),
    settings=FrameSettings,
    patience=4,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return which frames were taken and where they are kept; for a shot without usable video, why not."""
    settings, shot = tools.own(FrameSettings), item["shot"]
    file, code = shot["video"]["file"], shot["code"]
    if file is None or code is not None:
        return Made({"frames": _none(code or "missing", "there is no video of the shot")})
    try:
        return Made({"frames": _taken(Path(file), shot["video"], settings, tools.store)})
    except MediaProblem as problem:
        return Made({"frames": _none(problem.code, f"expected {problem.expected}, found {problem.found}")})


def _none(code: str, reason: str) -> Json:
    return {
        "invalid": code, "reason": reason, "count": None, "fps": None, "width": None, "height": None,
        "pictures": {}, "ground": [], "grid": [], "scene": [], "first": None, "last": None,
    }  # fmt: skip


def _taken(path: Path, video: Json, settings: FrameSettings, store: Path | None) -> Json:
    info = outline(path)
    start, stop = video["start"], video["stop"]
    count = info.frames if stop is None else stop - start
    if count < FEWEST:
        raise MediaProblem(
            str(path), code="too_few_frames", expected=f"at least {FEWEST} frames", found=str(count),
            fix="generate the shot again",
        )  # fmt: skip
    choice = frames_of(settings.grounding, count)
    indices = sorted({0, count - 1, *choice.grounded})
    # A film is decoded where shots are; a shot's own video from end to end, as damage shows in no other way.
    frames = (
        walk_frames(path, indices) if stop is None else frames_at(path, [start + index for index in indices])
    )
    pictures: dict[int, str] = {}
    sharp: dict[int, float] = {}
    size = (0, 0)
    for index, frame in zip(indices, frames, strict=True):
        data = encode_image(frame.image, format="png")
        pictures[index], size = f"{sha256_bytes(data)}.png", frame.image.size
        if store is not None:
            keep_file(data, pictures[index], store)
        if index in choice.ground:
            sharp[index] = frame_sharpness(frame.image, settings.locations)
    return {
        "invalid": None, "reason": None, "count": count, "fps": str(info.fps),
        "width": size[0], "height": size[1],
        "pictures": {str(index): name for index, name in pictures.items()},
        "ground": list(choice.ground), "grid": list(choice.grid),
        "scene": sorted(choice.ground, key=lambda index: (-sharp[index], index)),
        "first": 0, "last": count - 1,
    }  # fmt: skip


def frame_sharpness(image: "Image", definition: Locations) -> float:
    """Return how sharp a frame is, for choosing those by which a location is judged.

    Args:
        image: the frame, in its own size.
        definition: ``paper`` takes the variance of the Laplacian of luma (Eq. 8), ``code`` the sum of the
            variances of first differences of the mean of the channels, across and down.
    """
    if definition == "paper":
        return sharpness(np.asarray(image.convert("L"), dtype=np.float64))
    grey = np.asarray(image, dtype=np.float64).mean(axis=2)
    return float(np.diff(grey, axis=1).var() + np.diff(grey, axis=0).var())

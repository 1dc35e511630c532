"""Stage: the frames of a shot that are looked at, kept without loss in the run's store.

Grounding, action grids, judges of locations and vectors of first and last frames take their pixels there.
Where the shot's quality was measured, its frames were kept on the way, and no video is opened here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....media.images import MediaProblem, encode_image
from ....media.kept_files import keep_file
from ....media.quality import sharpness
from ....media.video import VideoInfo, frames_at, outline, walk_frames
from ....schemas.canonical import Json, sha256_bytes
from ...outputs.entities import FEWEST
from .settings import FrameSettings, Grounding, Locations, frames_of

if TYPE_CHECKING:
    from PIL.Image import Image


# -- The frames of a shot that are looked at, kept without loss while its video is decoded
#
# Whoever decodes a shot keeps them for all: measures of quality need every frame of it, so where these are
# taken, no stage after them decodes the video again. One frame is in memory at a time.


@dataclass(frozen=True, slots=True)
class ShotVideo:
    """The video of a shot: a file of its own, or a part of a film."""

    path: Path  # the file
    info: VideoInfo  # what the file is
    span: tuple[int, int] | None  # first frame in the file, and the one behind the last; None for all of it

    @classmethod
    def of(cls, video: Json) -> "ShotVideo":
        """Return the video of a shot as ``list_shots`` describes it."""
        path, start, stop = Path(video["file"]), video["start"], video["stop"]
        return cls(path, outline(path), None if stop is None else (start or 0, stop))

    @property
    def count(self) -> int:
        """How many frames the shot has."""
        return self.info.frames if self.span is None else self.span[1] - self.span[0]

    def frames(self, indices: Sequence[int]) -> "Iterator[tuple[int, Image]]":
        """Yield frames by their number in the shot, which ascend.

        A film is decoded where shots are; a shot's own video from end to end, as damage shows in no other
        way.
        """
        if self.span is None:
            decoded = walk_frames(self.path, indices)
        else:
            decoded = frames_at(self.path, [self.span[0] + index for index in indices])
        for index, frame in zip(indices, decoded, strict=True):
            yield index, frame.image


class FrameKeeper:
    """Keeps those frames of a shot that are grounded or stand at its ends, as they go by.

    ``shot``: the video. ``definition``: whose frames are grounded. ``store``: the folder that pictures are
    kept in; None keeps none.

    Attributes:
        wanted: the numbers of these frames, ascending; none of a shot that is too short to be looked at.
    """

    def __init__(self, shot: ShotVideo, definition: Grounding, store: Path | None) -> None:
        self._shot, self._definition, self._store = shot, definition, store
        self.wanted: tuple[int, ...] = ()
        self._ground: frozenset[int] = frozenset()
        if shot.count >= FEWEST:
            choice = frames_of(definition, shot.count)
            self.wanted = tuple(sorted({0, shot.count - 1, *choice.grounded}))
            self._ground = frozenset(choice.ground)
        self._pictures: dict[str, str] = {}
        self._sharp: dict[Locations, dict[str, float]] = {name: {} for name in get_args(Locations)}
        self._size = (0, 0)

    def add(self, index: int, image: "Image") -> None:
        """Take in a frame of the shot."""
        if index not in self.wanted:
            return
        data = encode_image(image, format="png")
        self._pictures[str(index)], self._size = f"{sha256_bytes(data)}.png", image.size
        if self._store is not None:
            keep_file(data, self._pictures[str(index)], self._store)
        if index in self._ground:
            for definition, sharp in self._sharp.items():
                sharp[str(index)] = frame_sharpness(image, definition)

    def taken(self) -> Json:
        """Return what is kept, and how sharp it is under each definition; null where a frame is lacking."""
        if not self.wanted or len(self._pictures) < len(self.wanted):
            return None
        return {
            "definition": self._definition, "count": self._shot.count, "fps": str(self._shot.info.fps),
            "width": self._size[0], "height": self._size[1], "pictures": self._pictures, "sharp": self._sharp,
        }  # fmt: skip


def frame_sharpness(image: "Image", definition: Locations) -> float:
    """Return how sharp a frame is, for choosing those by which a location is judged.

    ``definition``: ``paper`` takes the variance of the Laplacian of luma (Eq. 8), ``code`` the sum of the
    variances of first differences of the mean of the channels, across and down.
    """
    if definition == "paper":
        return sharpness(np.asarray(image.convert("L"), dtype=np.float64))
    grey = np.asarray(image, dtype=np.float64).mean(axis=2)
    return float(np.diff(grey, axis=1).var() + np.diff(grey, axis=0).var())


# --

SPEC = StageSpec(
    name="take_frames",
    version=2,
    shape="map",
    reads=("shot", "taken"),
    writes=("frames",),
    libraries=("pillow", "av", "numpy"),
    settings=FrameSettings,
    patience=4,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return which frames were taken and where they are kept; for a shot without usable video, why not."""
    settings, shot, taken = tools.own(FrameSettings), item["shot"], item["taken"]
    file, code = shot["video"]["file"], shot["code"]
    if file is None or code is not None:
        return Made({"frames": _none(code or "missing", "there is no video of the shot")})
    try:
        if taken is None or taken["definition"] != settings.grounding:
            taken = _taken(shot["video"], settings, tools.store)
    except MediaProblem as problem:
        return Made({"frames": _none(problem.code, f"expected {problem.expected}, found {problem.found}")})
    return Made({"frames": _frames(taken, settings)})


def _none(code: str, reason: str) -> Json:
    return {
        "invalid": code, "reason": reason, "count": None, "fps": None, "width": None, "height": None,
        "pictures": {}, "ground": [], "grid": [], "scene": [], "first": None, "last": None,
    }  # fmt: skip


def _taken(video: Json, settings: FrameSettings, store: Path | None) -> Json:
    """Decode a shot and return what was kept of it."""
    shot = ShotVideo.of(video)
    if shot.count < FEWEST:
        raise MediaProblem(
            str(shot.path), code="too_few_frames", expected=f"at least {FEWEST} frames",
            found=str(shot.count), fix="generate the shot again",
        )  # fmt: skip
    keeper = FrameKeeper(shot, settings.grounding, store)
    for index, image in shot.frames(keeper.wanted):
        keeper.add(index, image)
    return keeper.taken()


def _frames(taken: Json, settings: FrameSettings) -> Json:
    count, sharp = taken["count"], taken["sharp"][settings.locations]
    choice = frames_of(settings.grounding, count)
    return {
        "invalid": None, "reason": None, "count": count, "fps": taken["fps"],
        "width": taken["width"], "height": taken["height"], "pictures": taken["pictures"],
        "ground": list(choice.ground), "grid": list(choice.grid),
        "scene": sorted(choice.ground, key=lambda index: (-sharp[str(index)], index)),
        "first": 0, "last": count - 1,
    }  # fmt: skip

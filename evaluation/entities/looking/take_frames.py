"""Stage: the frames of a shot that are looked at, kept without loss in the run's store.

Grounding, action grids, judges of locations and vectors of first and last frames take their pixels there.
Where the shot's quality was measured, its frames were kept on the way, and no video is opened here.
"""

from pathlib import Path

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....media.images import MediaProblem
from ....schemas.canonical import Json
from ...outputs.entities import FEWEST
from .kept_frames import FrameKeeper, ShotVideo
from .settings import FrameSettings, frames_of

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

"""Stage: the frames of a video as judges get them, evenly taken (Eq. 2), encoded once, kept by content."""

from pathlib import Path

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem
from ..judging.pictures import ImageSettings, keep_pictures
from .settings import FrameSettings, prepare_video

SPEC = StageSpec(
    name="take_frames",
    version=2,
    shape="map",
    reads=("video",),
    writes=("frames", "taken"),
    libraries=("pillow", "av"),
    settings=FrameSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return name, size, number and time of each frame; none, and why, for a video that cannot be judged."""
    settings = tools.own(FrameSettings)
    file = item["video"]["file"]
    if file is None:
        return Made({"frames": [], "taken": {"invalid": "missing", "reason": "no such file"}})
    encoding = ImageSettings.model_validate(
        {name: getattr(settings, name) for name in ImageSettings.model_fields}
    )
    try:
        video = prepare_video(Path(file), encoding, count=settings.count)
    except MediaProblem as problem:
        return Made({"frames": [], "taken": {"invalid": problem.code, "reason": problem.found}})
    if tools.store is not None:
        keep_pictures(video.pictures, tools.store)
    frames = [
        {
            "file": picture.file_name, "width": picture.width, "height": picture.height,
            "index": index, "time": str(time),
        }
        for picture, index, time in zip(video.pictures, video.indices, video.times, strict=True)
    ]  # fmt: skip
    info = {
        "video_frames": video.info.frames,
        "duration": str(video.info.duration),
        "fps": str(video.info.fps),
    }
    return Made({"frames": frames, "taken": {"invalid": None, **info}})

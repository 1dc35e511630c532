"""Stage: the shots of a video, found to the frame; a file that is no video that can be read fails here."""

from collections.abc import Sequence
from functools import cache

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...errors import MissingRequirement
from ...media.deinterlacing import NAME as DEINTERLACER
from ...media.images import MediaProblem
from ...media.shot_detection import Method, ShotBoundaries, detect_in
from ...media.shot_frames import small_video
from ...media.shot_network import fingerprint
from ...media.video import LIMITS, VideoLimits
from ...models.vision.types import Device
from ...schemas.canonical import Json
from ...schemas.values import Own
from .drafts import Video
from .film_files import film_path, segments_of


class Settings(Own):
    """How shots are found, and what a video may be at most."""

    method: Method = Field(
        default="transnetv2", description="transnetv2, or histogram, which needs no network."
    )
    threshold: float | None = Field(
        default=None, gt=0, lt=1, description="Value above which shots change; null: that of the method."
    )
    network: str | None = Field(
        default=None, description="Version and weights of the network, as the run began with them."
    )
    device: Device = Field(default="cpu", description="Where the network runs: cpu, cuda or mps.")
    max_bytes: int = Field(
        default=LIMITS.max_bytes, ge=1, le=LIMITS.max_bytes, description="Size of a file at most."
    )
    max_frames: int = Field(
        default=LIMITS.max_frames, ge=1, le=LIMITS.max_frames, description="Frames of a video at most."
    )
    max_pixels: int = Field(
        default=LIMITS.max_pixels,
        ge=1,
        le=LIMITS.max_pixels,
        description="Pixels of a frame at most; 8K has 33 million.",
    )
    deinterlace: bool = Field(
        default=True, description="Join the fields of films that are marked as interlaced, in all stages."
    )


SPEC = StageSpec(
    name="detect_shots",
    version=3,
    shape="map",
    reads=("found",),
    writes=("probed", "boundaries"),
    libraries=("av", "numpy"),
    settings=Settings,
    patience=100,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return what each video is, and its shots: ``spans``, the ``method``, frames that were ``lost``.

    Codes of failures are those of :class:`~fabula.media.images.MediaProblem`.
    """
    settings = tools.own(Settings)
    if settings.network is not None and settings.method == "transnetv2":
        _check(settings.network)
    return [_detected(item["found"], settings, tools) for item in items]


@cache
def _check(network: str) -> None:
    now = fingerprint()
    if now != network:
        raise MissingRequirement(
            "finding shots", expected=f"the network that the run began with, {network}", found=now,
            fix="install that one, or build again with `fabula build entities`: shots are found anew",
        )  # fmt: skip


def _detected(film: Json, settings: Settings, tools: Tools) -> Outcome:
    limits = VideoLimits(settings.max_bytes, settings.max_frames, settings.max_pixels)
    try:
        path = film_path(film["file"], film["sha256"], tools)
        shots = detect_in(
            small_video(path, limits, deinterlace=settings.deinterlace), settings.method,
            threshold=settings.threshold, device=settings.device,
            segments=segments_of(SPEC, tools, {"sha256": film["sha256"]}),
        )  # fmt: skip
    except MediaProblem as problem:
        return Failed(problem.code, f"expected {problem.expected}, found {problem.found}")
    video = Video(
        video_id=film["video_id"], file=film["file"], sha256=film["sha256"], frames=shots.frames,
        seconds=float(shots.seconds), fps=float(shots.frames / shots.seconds),
        width=shots.size[0], height=shots.size[1],
        deinterlaced=DEINTERLACER if shots.is_interlaced else None,
    )  # fmt: skip
    return Made({"probed": video.as_json(), "boundaries": _boundaries(shots)})


def _boundaries(shots: ShotBoundaries) -> Json:
    spans = [
        {
            "first": span.first, "last": span.last, "start": float(span.start), "end": float(span.end),
            "opens": span.opens,
        }
        for span in shots.spans
    ]  # fmt: skip
    return {"spans": spans, "method": shots.method, "lost": shots.lost}

"""Stage: the shots of a video, found to the frame; a file that is no video that can be read fails here."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from pydantic import Field

from ...engine.stage import Child, Failed, Item, Made, OneStage, Outcome, StageSpec, Tools
from ...errors import MissingRequirement
from ...media.deinterlacing import NAME as DEINTERLACER
from ...media.images import MediaProblem
from ...media.shot_detection import Method, ShotBoundaries, detect_in, networks_of
from ...media.shot_frames import small_video
from ...media.shot_network import fingerprint
from ...media.video import LIMITS, VideoLimits
from ...models.vision.store import Device
from ...schemas.canonical import Json
from ...schemas.values import Own
from .load_videos import film_path, segments_of
from .names import Shot, Video


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

    def networks(self) -> dict[str, Any]:
        """Return where the network runs, and the versions of its libraries."""
        return networks_of(self.method, self.device)


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


# -- One item per shot of a video


def list_shots(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per shot, with how many shots its video has (``among``)."""
    del tools
    video, spans = Video.model_validate(item["probed"]), item["boundaries"]["spans"]
    for number, span in enumerate(spans, 1):
        shot = Shot(shot_id=f"{video.video_id}__shot{number:04d}", video=video, number=number, **span)
        yield Child(shot.shot_id, Made({"shot": shot.as_json(), "among": len(spans)}))


LIST_SHOTS = OneStage(
    name="list_shots",
    version=1,
    shape="expand",
    reads=("probed", "boundaries"),
    writes=("shot", "among"),
    run=list_shots,
)


# -- The shots of a video that were kept, with who is seen in them, as one item again


def group_shots(members: Iterable[Item], tools: Tools) -> Outcome:
    """Return the video, and its shots in order: each with ``shot``, ``quality`` and ``tracklets``.

    A shot does not repeat the video.
    """
    del tools
    video, shots = None, []
    for member in sorted(members, key=lambda shot: int(shot["shot"]["number"])):
        video = member["shot"]["video"]
        shot = {name: value for name, value in member["shot"].items() if name != "video"}
        shots.append({"shot": shot, "quality": member["quality"], "tracklets": member["embedded"]})
    return Made({"video": video, "shots": shots})


GROUP_SHOTS = OneStage(
    name="group_shots",
    version=1,
    shape="group",
    reads=("shot", "quality", "embedded"),
    writes=("video", "shots"),
    run=group_shots,
)

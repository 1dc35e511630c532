"""Videos of a build, and the shots in them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from ...engine.pipeline import dependencies
from ...engine.stage import PROGRESS, Child, Failed, Item, Made, Outcome, StageSpec, Tools, batch_stage, stage
from ...errors import InputError, MissingRequirement, mismatch
from ...media.images import MediaProblem
from ...media.kept_files import Segments
from ...media.shot_detection import Method, ShotBoundaries, detect_in, networks_of
from ...media.shot_frames import small_video
from ...media.shot_network import fingerprint
from ...media.video import DEINTERLACER, LIMITS, VideoLimits
from ...models.vision.store import Device
from ...schemas.canonical import Json, sha256_bytes, sha256_file, write_atomic
from ...schemas.plain_files import read_text
from ...schemas.text import slug
from ...schemas.values import Own
from .names import Shot, Video

# -- Stage: one item per video of the sources: files as they are named, and all videos in folders
#
# Folders are gone through with all that lies below; hidden entries are left out, and links to folders are not
# followed, so that loops are none. No file is opened but to read its hash: what is no video shows later.
# Fields name a film by its content; where it lies is noted beside them, so that a folder that moves changes
# nothing.

# -- Where the film of an item lies, known by its content; and what is kept of its parts while it is looked at
#
# Both lie in the run's folder for what is no result, so that a film that has moved changes no result.

_PLACES = "places"


def keep_place(path: Path, sha256: str, tools: Tools) -> str:
    """Note where a film lies; return what fields call it: its name, or its path where there is no run."""
    if tools.work is None:
        return str(path)
    note, text = tools.work / _PLACES / sha256, str(path)
    with suppress(OSError, ValueError):
        if read_text(note) == text:
            return path.name
    note.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(note, [text.encode("utf-8")])
    return path.name


def film_path(file: str, sha256: str, tools: Tools) -> Path:
    if tools.work is not None:
        with suppress(OSError, ValueError):
            return Path(read_text(tools.work / _PLACES / sha256))
    return Path(file)


def segments_of(spec: StageSpec, tools: Tools, inputs: Mapping[str, Json]) -> Segments:
    """Return where a stage keeps what it found in parts of an item."""
    settings = tools.settings.as_json()
    basis = [spec.name, spec.version, settings, tools.seed, dependencies(spec, asks=False), dict(inputs)]
    return Segments(None if tools.work is None else tools.work / PROGRESS, basis)


# -- Which videos there are

ROLE = "videos"
"""Role of the sources."""
SUFFIXES = (
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".m2ts", ".mts", ".wmv", ".flv",
    ".ogv", ".3gp", ".mxf",
)  # fmt: skip
_NAME = 48  # characters of a name in an id, so that a hash and the number of a shot still fit
_HASH = 8


class LoadVideosSettings(Own):
    suffixes: tuple[str, ...] = Field(
        default=SUFFIXES, description="Endings of files that are taken for videos in folders."
    )


@stage(version=2, shape="expand", reads=("sources",), writes=("found",), settings=LoadVideosSettings)
def load_videos(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per file, in the order of the sources and of paths in them.

    A file whose name is no text in Unicode, or that cannot be read, is a child that failed.
    """
    settings = tools.own(LoadVideosSettings)
    sources = zip(item["sources"], tools.paths, strict=True)
    places = [path for source, path in sources if source["role"] == ROLE]
    files = [file for folder in places for file in _files(folder, settings.suffixes)]
    if not files:
        listed = ", ".join(map(str, places)) or "the sources"
        raise InputError([mismatch(listed, "at least one video", "none", "name files or folders of videos")])
    taken: set[str] = set()
    for file in dict.fromkeys(files):
        if not _printable(file):
            name = os.fsencode(file.name).decode("utf-8", "backslashreplace")
            reason = "its path is no text in Unicode: rename it"
            yield Child(
                _free("", sha256_bytes(name.encode("utf-8")), taken), Failed("unprintable_name", reason, name)
            )
            continue
        plain = slug(file.stem)[:_NAME].strip("-_")
        try:
            sha256 = sha256_file(file)
        except OSError as error:
            lost = Failed("unreadable", f"it cannot be read: {error.strerror}")
            yield Child(_free(plain, sha256_bytes(file.name.encode("utf-8")), taken), lost)
            continue
        video_id = _free(plain, sha256, taken)
        named = keep_place(file, sha256, tools)
        video = {"video_id": video_id, "file": named, "name": file.name, "sha256": sha256}
        yield Child(video_id, Made({"found": video}))


def identity(fields: Mapping[str, Json]) -> Json:
    """Return what makes a video the same video."""
    return fields["found"]["sha256"]


def _files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    if path.is_file():
        return [path.absolute()]
    if not path.is_dir():
        raise InputError([mismatch(str(path), "a video or a folder of videos", "none", "check the path")])
    here = []
    for folder, names, files in os.walk(path.absolute()):
        names[:] = sorted(name for name in names if not name.startswith("."))
        here += [
            Path(folder, name)
            for name in files
            if not name.startswith(".") and Path(name).suffix.lower() in suffixes
        ]
    return sorted(here, key=os.fsencode)


def _free(name: str, sha256: str, taken: set[str]) -> str:
    """Return an id that is not taken yet: the name where that will do, else with a hash."""
    video_id = name if name and name not in taken else f"{name or 'video'}-{sha256[:_HASH]}"
    number = 2
    while video_id in taken:
        video_id = f"{name or 'video'}-{sha256[:_HASH]}-{number}"
        number += 1
    taken.add(video_id)
    return video_id


def _printable(file: Path) -> bool:
    try:
        str(file).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# -- Stage: the shots of a video, found to the frame; a file that is no video that can be read fails here


class DetectShotsSettings(Own):
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


@batch_stage(
    version=3,
    reads=("found",),
    writes=("probed", "boundaries"),
    libraries=("av", "numpy"),
    settings=DetectShotsSettings,
    patience=100,
)
def detect_shots(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return what each video is, and its shots: ``spans``, the ``method``, frames that were ``lost``.

    Codes of failures are those of :class:`~fabula.media.images.MediaProblem`.
    """
    settings = tools.own(DetectShotsSettings)
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


def _detected(film: Json, settings: DetectShotsSettings, tools: Tools) -> Outcome:
    limits = VideoLimits(settings.max_bytes, settings.max_frames, settings.max_pixels)
    try:
        path = film_path(film["file"], film["sha256"], tools)
        shots = detect_in(
            small_video(path, limits, deinterlace=settings.deinterlace), settings.method,
            threshold=settings.threshold, device=settings.device,
            segments=segments_of(detect_shots.SPEC, tools, {"sha256": film["sha256"]}),
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


@stage(version=1, shape="expand", reads=("probed", "boundaries"), writes=("shot", "among"))
def list_shots(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per shot, with how many shots its video has (``among``)."""
    del tools
    video, spans = Video.model_validate(item["probed"]), item["boundaries"]["spans"]
    for number, span in enumerate(spans, 1):
        shot = Shot(shot_id=f"{video.video_id}__shot{number:04d}", video=video, number=number, **span)
        yield Child(shot.shot_id, Made({"shot": shot.as_json(), "among": len(spans)}))


# -- The shots of a video that were kept, with who is seen in them, as one item again


@stage(version=1, shape="group", reads=("shot", "quality", "embedded"), writes=("video", "shots"))
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

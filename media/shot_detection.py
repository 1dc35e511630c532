"""Finding the shots of a video: frame-exact, with exact times.

Memory does not grow with the length of the video.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ..errors import ConfigError
from ..schemas.plugins import versions_of
from .kept_files import Segments
from .shot_frames import THRESHOLD as HISTOGRAM_THRESHOLD
from .shot_frames import Change, Course, SmallVideo, changes_of, shots_between, small_video
from .video import LIMITS, VideoLimits

Opening = Literal["start", "cut", "gradual"]
GRADUAL_FROM = 4
"""Frames of a change from which it counts as gradual."""


class Span(NamedTuple):
    """A stretch of frames, both ends in it."""

    first: int
    last: int


def spans_of(ends: Sequence[float], threshold: float) -> tuple[Span, ...]:
    """Return the shots between frames that are likely to end one, as TransNetV2's authors do.

    A shot ends with the first of the frames in a row whose value is above the threshold; the next one begins
    behind the last of them. So frames inside a change belong to no shot. Where every frame is above the
    threshold the whole is one shot.
    """
    spans, first, before = [], 0, False
    for number, value in enumerate(ends):
        now = value > threshold
        if before and not now:
            first = number
        if now and not before and number:
            spans.append(Span(first, number))
        before = now
    if not before and len(ends):
        spans.append(Span(first, len(ends) - 1))
    return tuple(spans) or (Span(0, len(ends) - 1),)


def openings_of(spans: Sequence[Span], changes: Sequence[float], threshold: float) -> tuple[Opening, ...]:
    """Return how each shot begins.

    It comes out of a gradual change where :data:`GRADUAL_FROM` frames or more in a row around its beginning
    are likely to belong to a change.
    """
    openings: list[Opening] = []
    for number, span in enumerate(spans):
        if not number:
            openings.append("start")
            continue
        frame = spans[number - 1].last
        first, last = frame, frame
        while first > 0 and changes[first - 1] > threshold:
            first -= 1
        while last + 1 < len(changes) and (changes[last + 1] > threshold or last + 1 < span.first):
            last += 1
        openings.append("gradual" if last - first + 1 >= GRADUAL_FROM else "cut")
    return tuple(openings)


Method = Literal["transnetv2", "histogram"]
METHODS: tuple[Method, ...] = get_args(Method)
THRESHOLDS: dict[Method, float] = {"transnetv2": 0.5, "histogram": HISTOGRAM_THRESHOLD}
"""What a value has to be above for a change of shots, where nothing else is asked for."""
HISTOGRAM_VERSION = 1


def networks_of(method: Method, device: str) -> dict[str, Any]:
    """Return where a method's network runs, and the versions of its libraries; nothing without a network."""
    from .shot_network import LIBRARY

    if method == "histogram":
        return {}
    return {"device": device, "dtype": "float32", "libraries": versions_of((LIBRARY, "torch"))}


SEGMENT = 300
"""Frames of a part that is kept together while histograms are compared; see :mod:`.shot_network`."""


@dataclass(frozen=True, slots=True)
class ShotSpan:
    first: int  # its first frame
    last: int  # its last frame
    start: Fraction  # when the first one is shown, in seconds after the first frame of the video, exact
    end: Fraction  # when the last one is not shown any more
    opens: Opening  # with the video (``start``), with a ``cut``, or out of a ``gradual`` change

    @property
    def frames(self) -> int:
        return self.last - self.first + 1

    @property
    def middle(self) -> int:
        """The frame halfway; of an even number the earlier one."""
        return (self.first + self.last) // 2


@dataclass(frozen=True, slots=True)
class ShotBoundaries:
    spans: tuple[ShotSpan, ...]  # the shots in order; frames inside a change belong to none
    frames: int  # how many frames the video has
    seconds: Fraction  # how long it is, exact
    method: str  # what found them: name, version and threshold
    size: tuple[int, int]  # width and height, upright
    lost: int = 0  # frames that could not be decoded; each counts as a copy of the one before it
    is_interlaced: bool = False  # whether its frames are marked as interlaced, and their fields were joined


def detect(
    path: Path,
    method: Method = "transnetv2",
    *,
    threshold: float | None = None,
    device: str = "cpu",
    limits: VideoLimits = LIMITS,
) -> ShotBoundaries:
    """Return the shots of a video; every frame is decoded once.

    ``threshold``: from 0 to 1; that of :data:`THRESHOLDS` if not given. ``limits``: what the video may be at
    most.
    """
    _checked(method, threshold)
    return detect_in(small_video(path, limits), method, threshold=threshold, device=device)


def detect_in(
    video: SmallVideo,
    method: Method = "transnetv2",
    *,
    threshold: float | None = None,
    device: str = "cpu",
    segments: Segments | None = None,
) -> ShotBoundaries:
    """Return :func:`detect` of a video that was opened with :func:`.small_video`."""
    level = _checked(method, threshold)
    if method == "histogram":
        changes = _changes(video, level, segments or Segments())
        spans: Sequence[Span] = [Span(*span) for span in shots_between(changes, len(video))]
        openings: Sequence[Opening] = [
            "start",
            *("gradual" if change.gradual else "cut" for change in changes),
        ]
    else:
        from .shot_network import predict

        said = predict(video, device, segments)
        spans = spans_of(said.ends.tolist(), level)
        openings = openings_of(spans, said.changes.tolist(), level)
    return ShotBoundaries(
        tuple(_timed(video, span, opens) for span, opens in zip(spans, openings, strict=True)),
        len(video), video.end, identity(method, level), video.size or (0, 0),
        video.lost, video.is_interlaced,
    )  # fmt: skip


def _changes(video: SmallVideo, level: float, segments: Segments) -> tuple[Change, ...]:
    """Return the changes of shots of a video, going on behind the parts that are known."""
    course, number = Course(level), 0
    while (part := segments.get(number)) is not None and part.get("frames") == SEGMENT:
        course.take(part["course"])
        video.gaps, video.size = [(first, stop) for first, stop in part["gaps"]], tuple(part["size"])
        number += 1
    start = len(course.near)
    if start < len(video):
        with closing(video.frames(start, course.last())) as frames:
            for pixels in frames:
                course.add(pixels)
                done = len(course.near)
                if done % SEGMENT == 0:
                    more = {"frames": SEGMENT, "gaps": video.gaps_before(done), "size": video.size}
                    segments.put(done // SEGMENT - 1, {"course": course.part(done - SEGMENT), **more})
    return changes_of(course)


def identity(method: Method, threshold: float | None = None) -> str:
    """Return what the shots that a method finds depend on, such as ``transnetv2@1.0.5/0.5``."""
    level = _checked(method, threshold)
    if method == "histogram":
        return f"histogram@{HISTOGRAM_VERSION}/{level:g}"
    from .shot_network import identity as network

    return f"{network()}/{level:g}"


def _checked(method: Method, threshold: float | None) -> float:
    if method not in METHODS:
        raise ConfigError(
            "method of finding shots", expected=f"one of {', '.join(METHODS)}", found=repr(method),
            fix="check the spelling",
        )  # fmt: skip
    level = THRESHOLDS[method] if threshold is None else threshold
    if not 0 < level < 1:
        raise ConfigError(
            "threshold of finding shots", expected="a number between 0 and 1", found=f"{level:g}",
            fix=f"leave it out for {THRESHOLDS[method]:g}",
        )  # fmt: skip
    return level


def _timed(video: SmallVideo, span: Span, opens: Opening) -> ShotSpan:
    return ShotSpan(span.first, span.last, video.time(span.first), video.time(span.last + 1), opens)

"""Every frame of a video, very small and upright, one after another: what finding shots looks at.

Frames are scaled while they are decoded, so that memory depends neither on the length of the video nor, but
for the frames that the decoder itself holds, on its size.
"""

import base64
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json
from .images import MediaProblem
from .video import LIMITS, VideoLimits, deinterlaced, is_interlaced, opaque, open_video
from .video_file import Index, decoded_packets, video_stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Histogram = NDArray[np.float64]

WIDTH, HEIGHT = 48, 27
"""Size of a small frame, that of TransNetV2's input; proportions are not kept."""
_MOST_LOST = 0.1
"""Share of frames that may be lost in decoding; above it, a video is damaged."""


@dataclass(slots=True)
class SmallVideo:
    """A video that is about to be read frame by frame."""

    path: Path  # the file
    index: Index  # when its frames are shown
    base: Fraction  # unit of the times in the index, in seconds
    end: Fraction  # when the last frame ends, in seconds after the first one
    is_interlaced: bool = False  # whether its frames are marked as interlaced; their fields are joined then
    # width and height of the first frame, upright; None before it was decoded
    size: tuple[int, int] | None = None
    # stretches of frames that could not be decoded so far, as first and one past the last
    gaps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """How many frames could not be decoded so far; each counts as a copy of the one before it."""
        return sum(stop - first for first, stop in self.gaps)

    def gaps_before(self, frame: int) -> list[tuple[int, int]]:
        """Return the stretches of lost frames before a frame."""
        return [(first, min(stop, frame)) for first, stop in self.gaps if first < frame]

    def __len__(self) -> int:
        return len(self.index)

    def time(self, frame: int) -> Fraction:
        """Return when a frame is shown, in seconds after the first one; of one past the last, the end."""
        if frame >= len(self.index):
            return self.end
        return (self.index.times[frame] - self.index.times[0]) * self.base

    def frames(self, start: int = 0, before: "Pixels | None" = None) -> "Generator[Pixels]":
        """Yield every frame from one on, shape (27, 48, 3), RGB, in the order of showing.

        The frames are the same wherever one starts. Where the container has an index, decoding begins near
        the start, else at the front.
        """
        numbered = self._counted(start) if not self.index.keys else self._placed(start)
        last, following = before, start
        for number, pixels in numbered:
            if number >= len(self):
                break
            if last is None:
                last = pixels
            self._lose(following, number)
            for _ in range(number - following):
                yield last
            yield pixels
            last, following = pixels, number + 1
        self._lose(following, len(self))
        if last is None:
            raise self._damaged()
        for _ in range(len(self) - following):
            yield last

    def _lose(self, first: int, stop: int) -> None:
        if stop > first:
            self.gaps.append((first, stop))
        if self.lost > _MOST_LOST * len(self):
            raise self._damaged()

    def _damaged(self) -> MediaProblem:
        return MediaProblem(
            str(self.path), code="damaged", expected="frames that can be decoded",
            found=f"{self.lost} or more of {len(self)} frames that cannot",
            fix="generate or copy the video again",
        )  # fmt: skip

    def _placed(self, start: int) -> "Iterator[tuple[int, Pixels]]":
        """Yield the frames of a container that says of each when it is shown, with their numbers."""
        numbers = {time: number for number, time in enumerate(self.index.times)}
        following = start
        for time, pixels in self._stamped(self._key_well_before(start)):
            number = numbers.get(time, -1)
            if number >= following:
                yield number, pixels
                following = number + 1

    def _key_well_before(self, start: int) -> Any:  # noqa: ANN401 - a time, or None
        """Return the key frame before the one from which a frame can be decoded; None for the front.

        What stands at a key frame may lean on frames before it, and joined fields on the frame before.
        """
        first = self.index.keys[0]
        near = self.index.key_before(self.index.times[min(start, len(self) - 1)])
        return None if near <= first else self.index.keys[bisect_left(self.index.keys, near) - 1]

    def _counted(self, start: int) -> "Iterator[tuple[int, Pixels]]":
        return ((number, pixels) for number, (_, pixels) in enumerate(self._stamped()) if number >= start)

    def _stamped(self, key: Any = None) -> "Iterator[tuple[Any, Pixels]]":  # noqa: ANN401 - a time
        """Yield time stamp and pixels of every frame that can be decoded, from a key frame on."""
        import av

        scaler = _Scaler()
        with av.open(str(self.path), metadata_errors="replace") as container:
            stream = video_stream(container)
            stream.thread_type = "AUTO"
            if key is not None:
                container.seek(key, stream=stream, backward=True)
            frames = _decodable(container, stream)
            for frame in deinterlaced(frames) if self.is_interlaced else frames:
                if self.size is None:
                    self.size = _upright(frame)
                yield frame.pts, scaler.small(frame)


def _decodable(container: Any, stream: Any) -> Iterator[Any]:  # noqa: ANN401 - PyAV's
    import av

    for _, decode in decoded_packets(container, stream):
        with suppress(av.error.InvalidDataError):  # what it should have held is counted as lost
            yield from decode()


def small_video(path: Path, limits: VideoLimits = LIMITS, *, deinterlace: bool = True) -> SmallVideo:
    """Return a video whose frames can be read one after another.

    ``limits``: what it may be at most. ``deinterlace``: whether the fields of frames that are marked as
    interlaced are joined.
    """
    with open_video(path, limits) as (_, stream, index):
        base = Fraction(stream.time_base)
        end = (index.end - index.times[0]) * base
        if end <= 0:
            end = len(index) / Fraction(stream.guessed_rate or 25)
        interlaced = deinterlace and _looks_interlaced(path)
        return SmallVideo(Path(path), index, base, end, interlaced)


def _looks_interlaced(path: Path) -> bool:
    import av

    try:
        with av.open(str(path), metadata_errors="replace") as container:
            return is_interlaced(_decodable(container, video_stream(container)))
    except av.error.FFmpegError:  # whether it can be decoded shows later
        return False


def windows(
    video: SmallVideo, size: int, step: int, first: int = 0, before: "Pixels | None" = None
) -> "Generator[Pixels]":
    """Yield overlapping stretches of a video, shape (size, 27, 48, 3), a step apart.

    The frames in the middle of the stretches, ``step`` of each, are those of the video in order. What is
    before the first frame is a copy of it, what is behind the last one a copy of that one.

    ``video``: its frames are read once. ``size``: frames of a stretch.
    """
    import numpy as np

    margin = (size - step) // 2
    held = np.empty((size, HEIGHT, WIDTH, 3), dtype=np.uint8)
    filled = 0
    pixels: Pixels = held[0]
    with closing(video.frames(max(first - margin, 0), before)) as frames:
        for pixels in frames:
            if not filled and not first:
                held[:margin] = pixels
                filled = margin
            held[filled] = pixels
            filled += 1
            if filled == size:
                yield held.copy()
                held[: size - step] = held[step:]
                filled = size - step
    # The stretch before ended where this one begins to be new: frames that no middle held yet remain.
    remaining = filled - margin
    while remaining > 0:
        held[filled:] = pixels
        yield held.copy()
        held[: size - step] = held[step:]
        filled = size - step
        remaining -= step


class _Scaler:
    """Scales frames with FFmpeg's own filter, so that the pixels are those that its command line makes."""

    def __init__(self) -> None:
        self._shape: tuple[object, ...] | None = None
        self._graph: Any = None

    def small(self, frame: Any) -> "Pixels":  # noqa: ANN401 - PyAV's
        """Return a frame as its viewers see it, at 48 x 27.

        One that is to be turned by a quarter is scaled to 27 x 48 and then turned: few pixels are moved.
        """
        import numpy as np

        turn, frame = _turn(frame), opaque(frame)
        width, height = (HEIGHT, WIDTH) if turn in (90, 270) else (WIDTH, HEIGHT)
        shape = (frame.width, frame.height, frame.format.name, frame.color_range, frame.colorspace, width)
        if shape != self._shape:
            self._graph, self._shape = _graph(frame, width, height), shape
        self._graph.push(frame)
        pixels = self._graph.pull().to_ndarray()
        return np.ascontiguousarray(np.rot90(pixels, turn // 90)) if turn else pixels


def _turn(frame: Any) -> int:  # noqa: ANN401 - PyAV's
    return int(getattr(frame, "rotation", 0) or 0) % 360


def _upright(frame: Any) -> tuple[int, int]:  # noqa: ANN401 - PyAV's
    turned = _turn(frame) in (90, 270)
    return (frame.height, frame.width) if turned else (frame.width, frame.height)


def _graph(frame: Any, width: int, height: int) -> Any:  # noqa: ANN401 - PyAV's
    """Return a filter for frames like this one; a video may change its size or format midway."""
    import av

    graph = av.filter.Graph()
    nodes = (
        graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1)),
        graph.add("scale", f"{width}:{height}:flags=bicubic"),
        graph.add("format", "pix_fmts=rgb24"),
        graph.add("buffersink"),
    )
    graph.link_nodes(*nodes).configure()
    return graph


# -- Finding shots without a network: how much the colours change from frame to frame
#
# A frame's colours are a joint histogram of 8 x 8 x 8 bins for each quarter of the frame; a pixel counts in
# the bins around its values in proportion, so that noise at the border of two bins changes little. The
# distance of two frames is 1 minus what their histograms share, from 0 to 1.
#
# - *Cut*: the distance of neighbours is at least the threshold, and three times the median of the ones around
#   it or beyond doubt. A flash is none: there the frame behind the bright one looks as the one before it.
# - *Dissolve*, by twin comparison (Zhang, Kankanhalli and Smoliar, Multimedia Systems 1, 1993): as long as
#   neighbours differ a little, the distance to the frame before the first of them is followed. Where it comes
#   to the threshold and frames inside are blends of the outer ones, it was a dissolve; else things moved.
# - *Fade* (Lienhart, SPIE 3656, 1999): the contrast falls to a plain frame, or rises from one. Plain frames
#   between shots belong to the change.
#
# It knows colours only: cuts between shots of the same colours in the same quarters are missed, and so are
# dissolves of shots in which much moves. TransNetV2 is the better judge wherever it can run.

THRESHOLD = 0.35
"""Distance from which two frames are of different shots; see docs/shot_detection.md for how it was chosen."""
BINS = 8
RATIO, AROUND = 3.0, 6
"""How much a cut stands out, and of how many neighbours on either side."""
SURE = 0.6
"""Distance that is a cut whatever happens around it."""
LOW, PAUSE, LONGEST = 0.05, 3, 150
"""Distance of neighbours in a dissolve, calm frames that end it, and frames that it has at most."""
BLEND = 0.3
"""Most by which frames inside differ from a blend, as a share of the difference of the outer frames."""
PLAIN, FALL = 4.0, 1.0
"""Standard deviation of a plain frame's values at most, and by how much it changes in a fade at least."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of shots."""

    last: int  # the last frame of the shot before it
    first: int  # the first frame of the shot behind it
    gradual: bool  # whether it takes several frames


@dataclass(slots=True)
class Course:
    """How the frames of a video follow each other; add them one after another."""

    threshold: float  # distance from which two frames are of different shots
    # distance of every frame from the one before it; 0 for the first
    near: list[float] = field(default_factory=list)
    far: list[float] = field(default_factory=list)  # distance of every frame from the second one before it
    contrast: list[float] = field(default_factory=list)  # standard deviation of every frame's values
    dissolves: list[Change] = field(default_factory=list)  # those found so far
    _held: "list[tuple[Histogram, Pixels]]" = field(default_factory=list)
    _begun: int | None = None
    _calm: int = 0

    def add(self, pixels: "Pixels") -> None:
        """Look at the next frame."""
        number, seen, held = len(self.near), colours(pixels), self._held
        self.contrast.append(float(pixels.std()))
        self.near.append(distance(held[-1][0], seen) if held else 0.0)
        self.far.append(distance(held[-2][0], seen) if len(held) > 1 else 0.0)
        held.append((seen, pixels))
        calm = self.near[-1] < LOW
        if self._begun is None:
            del held[:-2]
            if number and not calm:
                self._begun, self._calm = number - 1, 0
            return
        self._calm = self._calm + 1 if calm else 0
        if self._calm == PAUSE or number - self._begun >= LONGEST:
            self.end()

    def part(self, first: int) -> Json:
        """Return what was found from a frame on, and what the next frames are compared with, as JSON."""
        held = b"".join(pixels.tobytes() for _, pixels in self._held)
        shape = list(self._held[-1][1].shape) if self._held else []
        return {
            "near": self.near[first:], "far": self.far[first:], "contrast": self.contrast[first:],
            "dissolves": [[change.last, change.first] for change in self.dissolves],
            "held": base64.b64encode(held).decode("ascii"), "shape": shape, "begun": self._begun,
            "calm": self._calm,
        }  # fmt: skip

    def take(self, part: Json) -> None:
        """Go on behind what :meth:`part` returned, as if its frames had been added."""
        import numpy as np

        for mine, more in ((self.near, "near"), (self.far, "far"), (self.contrast, "contrast")):
            mine.extend(part[more])
        self.dissolves = [Change(last, first, gradual=True) for last, first in part["dissolves"]]
        held = np.frombuffer(base64.b64decode(part["held"]), np.uint8).reshape(-1, *part["shape"])
        self._held = [(colours(pixels), pixels) for pixels in held]
        self._begun, self._calm = part["begun"], part["calm"]

    def last(self) -> "Pixels | None":
        """Return the frame that was added last."""
        return self._held[-1][1] if self._held else None

    def end(self) -> None:
        """Say that the frames that differ, or all of them, are over."""
        if self._begun is None:
            return
        last = len(self.near) - 1
        held = self._held[self._begun - last - 1 :]
        self._judge(self._begun, last - self._calm, held)
        self._begun = None
        del self._held[:-2]

    def _judge(self, first: int, last: int, held: "Sequence[tuple[Histogram, Pixels]]") -> None:
        """Note a dissolve from a frame to another; where it is none, look between the jumps inside."""
        if last - first < 2:
            return
        near = self.near[first + 1 : last + 1]
        differs = max(near) < SURE and distance(held[0][0], held[last - first][0]) >= self.threshold
        if differs and _blended([pixels for _, pixels in held[: last - first + 1]]):
            self.dissolves.append(Change(first, last, gradual=True))
            return
        jumps = [number for number in range(first + 1, last + 1) if self.near[number] >= self.threshold]
        if jumps:
            for begin, end in pairwise([first, *jumps, last + 1]):
                self._judge(begin, end - 1, held[begin - first :])


def changes_of(course: Course) -> tuple[Change, ...]:
    """Return the changes of shots in a course, whose last frame was added."""
    course.end()
    gradual = _apart([*_fades(course.contrast), *course.dissolves])
    inside = {frame for change in gradual for frame in range(change.last + 1, change.first + 1)}
    cuts = [Change(number - 1, number, gradual=False) for number in _cuts(course) if number not in inside]
    return tuple(sorted([*cuts, *gradual], key=lambda change: change.first))


def _fades(contrast: Sequence[float]) -> list[Change]:
    """Return the stretches of plain frames between shots, with the frames of falling and rising contrast."""
    fades = []
    number, count = 0, len(contrast)
    while number < count:
        if contrast[number] > PLAIN:
            number += 1
            continue
        begin = number
        while number < count and contrast[number] <= PLAIN:
            number += 1
        last, first = begin, number - 1
        while last > 0 and begin - last < LONGEST and contrast[last - 1] >= contrast[last] + FALL:
            last -= 1
        end = min(count - 1, number + LONGEST)
        while first < end and contrast[first + 1] >= contrast[first] + FALL:
            first += 1
        # One frame of contrast beside a plain one is a cut to it.
        faded = begin - last > 1 or first - number >= 1
        if faded and last > 0 and first < count - 1:
            fades.append(Change(last, first, gradual=True))
    return fades


def _apart(changes: Sequence[Change]) -> list[Change]:
    """Return changes in order; of two that share a frame, the first alone."""
    kept: list[Change] = []
    for change in sorted(changes, key=lambda each: (each.last, -each.first)):
        if not kept or change.last >= kept[-1].first:
            kept.append(change)
    return kept


def _cuts(course: Course) -> list[int]:
    near, cuts = course.near, []
    flashes: set[int] = set()
    for number, value in enumerate(near):
        if value < course.threshold or number in flashes:
            continue
        around = sorted([*near[max(number - AROUND, 1) : number], *near[number + 1 : number + 1 + AROUND]])
        usual = around[len(around) // 2] if around else 0.0
        if value < SURE and value < RATIO * usual:
            continue
        if (
            number + 1 < len(near)
            and near[number + 1] >= course.threshold
            and course.far[number + 1] < course.threshold / 2
        ):
            flashes.add(number + 1)
            continue
        cuts.append(number)
    return cuts


def _blended(pictures: "Sequence[Pixels]") -> bool:
    """Return whether the pictures at a quarter, a half and three quarters are blends of the outer ones."""
    import numpy as np

    first, other = pictures[0].astype(np.float64), pictures[-1].astype(np.float64)
    whole = float(np.abs(first - other).mean())
    for index in {(len(pictures) - 1) * quarter // 4 for quarter in (1, 2, 3)} - {0}:
        part = index / (len(pictures) - 1)
        if float(np.abs(pictures[index] - first * (1 - part) - other * part).mean()) > BLEND * whole:
            return False
    return whole > 0


def distance(first: "Histogram", other: "Histogram") -> float:
    """Return 1 minus what two histograms share, from 0 to 1."""
    import numpy as np

    return max(0.0, 1.0 - float(np.minimum(first, other).sum()))


def colours(pixels: "Pixels") -> "Histogram":
    """Return the joint histograms of a frame's colours, one after another: 4 x 512 shares with the sum 1."""
    import numpy as np

    lower, part = _places()
    flat = pixels.reshape(-1, 3)
    places, parts = lower[flat], part[flat]
    quarters = _quarters(*pixels.shape[:2])
    total = np.zeros(4 * BINS**3)
    for corner in range(8):
        bins, share = quarters, np.ones(len(flat))
        for channel in range(3):
            up = corner >> channel & 1
            bins = bins * BINS + np.minimum(places[:, channel] + up, BINS - 1)
            share = share * (parts[:, channel] if up else 1 - parts[:, channel])
        total += np.bincount(bins, weights=share, minlength=len(total))
    return total / len(flat)


@cache
def _quarters(height: int, width: int) -> "NDArray[np.intp]":
    """Return the number of the quarter in which every pixel lies."""
    import numpy as np

    rows, columns = np.arange(height) * 2 // height, np.arange(width) * 2 // width
    return (rows[:, None] * 2 + columns).reshape(-1)


@cache
def _places() -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
    """Return for every value its lower bin, and which part of it counts in the bin above."""
    import numpy as np

    position = np.clip((np.arange(256) + 0.5) * BINS / 256 - 0.5, 0, BINS - 1)
    lower = np.floor(position).astype(np.intp)
    return lower, position - lower


def shots_between(changes: Sequence[Change], frames: int) -> list[tuple[int, int]]:
    """Return the first and the last frame of every shot between changes."""
    firsts = [0, *(change.first for change in changes)]
    lasts = [*(change.last for change in changes), frames - 1]
    return list(zip(firsts, lasts, strict=True))

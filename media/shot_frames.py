"""Every frame of a video, very small and upright, one after another: what finding shots looks at.

Frames are scaled while they are decoded, so that memory depends neither on the length of the video nor, but
for the frames that the decoder itself holds, on its size.
"""

from bisect import bisect_left
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .deinterlacing import deinterlaced, is_interlaced
from .images import MediaProblem
from .transparency import opaque
from .video import LIMITS, VideoLimits, open_video
from .video_file import Index, decoded_packets, video_stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

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

"""Looking at videos and taking frames out of them, with bounded memory.

The file is checked against what its container says, and its packets are counted; a short video is decoded
once from end to end, as damage shows in no other way. Then only the stretches that hold the wanted frames are
decoded, one frame in memory at a time. Containers without an exact index are decoded from the front, twice.
Needs the extra ``video`` (PyAV). Its logging stays off, as it is by default: switched on, even to its
quietest level, it can block a decoder's threads for ever.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingRequirement
from ..schemas.plain_files import open_plain
from .images import TRANSPARENT, MediaProblem, Picture, open_picture
from .video_file import Index, decoded_whole, fault_of, frames_of, index_file, video_stream

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class VideoLimits:
    """What a video may be at most."""

    max_bytes: int = 8_000_000_000  # size of the file
    max_frames: int = 1_000_000  # number of frames; three hours at 60 frames a second are 648,000
    max_pixels: int = 40_000_000  # width times height of a frame


LIMITS = VideoLimits()


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What a video is."""

    frames: int  # how many frames it has, counted
    duration: Fraction  # seconds from the start of the first frame to the end of the last, exact
    fps: Fraction  # average frames per second, exact: frames divided by duration
    width: int  # in pixels, as stored
    height: int  # in pixels, as stored


@dataclass(frozen=True, slots=True)
class Frame:
    index: int  # which frame, from 0, in the order of showing
    time: Fraction  # seconds after the first frame, exact
    # the pixels, RGB, turned as the file says; what is transparent lies over white
    image: "Image" = field(repr=False)
    notes: tuple[str, ...] = ()  # ``transparent``, where something is


def probe(path: Path, limits: VideoLimits = LIMITS) -> VideoInfo:
    """Return what a video is; its frames are counted, not decoded."""
    with open_video(path, limits, whole=True) as (_, stream, index):
        return _info(stream, index)


def outline(path: Path, limits: VideoLimits = LIMITS) -> VideoInfo:
    """Return what a video is, without looking for damage in its middle: for those who decode all of it."""
    with open_video(path, limits) as (_, stream, index):
        return _info(stream, index)


def even_indices(frames: int, count: int) -> tuple[int, ...]:
    """Return so many frame indices evenly over a video, the first and the last frame among them.

    Index i of n is ``floor(i * (frames - 1) / (n - 1))``; the middle frame where one is asked for.
    """
    if not 1 <= count <= frames:
        raise ValueError(f"{count} of {frames} frames")
    if count == 1:
        return ((frames - 1) // 2,)
    return tuple(step * (frames - 1) // (count - 1) for step in range(count))


def middle_indices(frames: int, count: int) -> tuple[int, ...]:
    """Return the middle frame of each of so many equal parts of a video.

    Index i of n is ``floor(((2 i + 1) * frames - n) / (2 n))``; of one part the middle frame of the video, as
    :func:`even_indices` has it.
    """
    if not 1 <= count <= frames:
        raise ValueError(f"{count} of {frames} frames")
    return tuple(((2 * part + 1) * frames - count) // (2 * count) for part in range(count))


def sample_frames(path: Path, count: int, limits: VideoLimits = LIMITS) -> Iterator[Frame]:
    """Yield so many frames of a video, evenly as :func:`even_indices` says, in order, decoded one by one."""
    yield from _frames(path, limits, lambda frames: _enough(path, frames, count), whole=True)


def first_frame(path: Path, limits: VideoLimits = LIMITS) -> Frame:
    with closing(_frames(path, limits, lambda _: (0,), whole=True)) as frames:
        return next(frames)


def frames_at(
    path: Path, indices: Sequence[int], limits: VideoLimits = LIMITS, *, deinterlace: bool = False
) -> Iterator[Frame]:
    """Yield the frames with given indices, which ascend, decoded one by one; nothing where none is asked for.

    ``indices``: of the frames. ``limits``: what the video may be at most. ``deinterlace``: whether the fields
    of interlaced frames are joined (see :func:`deinterlaced`).
    """
    if indices:
        choose: Callable[[int], Sequence[int]] = lambda frames: _within(path, frames, indices)  # noqa: E731
        yield from _frames(path, limits, choose, whole=False, deinterlace=deinterlace)


def walk_frames(path: Path, indices: Sequence[int], limits: VideoLimits = LIMITS) -> Iterator[Frame]:
    """Yield the frames with given indices of a video that is decoded once from end to end.

    Damage anywhere refuses it, as for :func:`sample_frames`, which decodes twice. Where the container has no
    index, it is decoded once more before, to count its frames.

    ``indices``: of the frames, ascending; none decodes it all the same. ``limits``: what it may be at most.
    """
    with open_video(path, limits) as (_, stream, index):
        number_of_stream, base = stream.index, Fraction(stream.time_base)
    fault = fault_of(path)
    if fault is not None:
        raise _problem(path, fault[0], "all that the file says it has", fault[1])
    if indices:
        _within(path, len(index), indices)
    numbers = {time: number for number, time in enumerate(index.times)}
    left, reached = set(indices), -1
    try:
        for position, frame in enumerate(decoded_whole(path, number_of_stream)):
            reached = numbers.get(frame.pts, -1) if index.keys else position
            if reached in left:
                left.remove(reached)
                yield Frame(reached, (index.times[reached] - index.times[0]) * base, *_image(frame))
    except Exception as error:  # decoder boundary
        raise _problem(path, "damaged", "frames that can be decoded", _told(error)) from error
    if left:
        raise _problem(path, "damaged", f"frame {min(left)}", f"a decoder that stops at frame {reached}")


def _within(path: Path, frames: int, indices: Sequence[int]) -> Sequence[int]:
    if indices[-1] >= frames:
        raise _problem(path, "too_few_frames", f"at least {indices[-1] + 1} frames", str(frames))
    return indices


def _enough(path: Path, frames: int, count: int) -> Sequence[int]:
    if frames < count:
        raise _problem(path, "too_few_frames", f"at least {count} frames", str(frames))
    return even_indices(frames, count)


def _frames(
    path: Path,
    limits: VideoLimits,
    choose: Callable[[int], Sequence[int]],
    *,
    whole: bool,
    deinterlace: bool = False,
) -> Generator[Frame]:
    with open_video(path, limits, whole=whole) as (container, stream, index):
        wanted = choose(len(index))
        base = Fraction(stream.time_base)
        try:
            if index.keys:
                taken = _taken(container, stream, index, wanted, deinterlace=deinterlace)
            else:
                taken = _walked(path, wanted, deinterlace=deinterlace)
            for number, frame in zip(wanted, taken, strict=True):
                yield Frame(number, (index.times[number] - index.times[0]) * base, *_image(frame))
        except Exception as error:  # decoder boundary
            raise _problem(path, "damaged", "frames that can be decoded", _told(error)) from error


@contextmanager
def open_video(
    path: Path, limits: VideoLimits = LIMITS, *, whole: bool = False
) -> Iterator[tuple[Any, Any, Index]]:
    """Open a file, check it, count its packets: PyAV's container and stream, and when its frames are shown.

    ``limits``: what it may be at most.
    """
    av = video_library()
    _check_file(path, limits)
    try:
        container = av.open(str(path), metadata_errors="replace")
    except Exception as error:  # decoder boundary
        raise _unopened(path, error) from error
    with container:
        stream = video_stream(container)
        if stream is None:
            found = "a cover picture with sound" if container.streams.video else "none (sound only?)"
            raise _problem(path, "no_video", "a video stream", found)
        if stream.codec_context is None:
            text = "one of an unknown kind, or only a part of its description"
            raise _problem(path, "damaged", "a video stream that can be decoded", text)
        width, height = stream.codec_context.width, stream.codec_context.height
        if width * height > limits.max_pixels:
            expected = f"at most {limits.max_pixels:,} pixels a frame"
            raise _problem(path, "too_many_pixels", expected, f"{width} x {height}")
        try:
            index = index_file(path, container, stream, limits.max_frames, whole=whole)
        except Exception as error:  # decoder boundary
            raise _problem(path, "damaged", "a video that can be read to its end", _told(error)) from error
        _check_index(path, stream, index, limits)
        yield container, stream, index


def _check_file(path: Path, limits: VideoLimits) -> None:
    try:
        if not path.is_file():
            raise _problem(path, "missing", "a video file", "none")
        open_plain(path, follow=True).close()
        size = path.stat().st_size
    except OSError as error:
        raise _problem(path, "unreadable", "a file that can be read", str(error.strerror)) from error
    if size == 0:
        raise _problem(path, "empty", "a video", "an empty file")
    if size > limits.max_bytes:
        raise _problem(path, "too_large", f"at most {limits.max_bytes:,} bytes", f"{size:,}")


def _check_index(path: Path, stream: Any, index: Index, limits: VideoLimits) -> None:  # noqa: ANN401 - PyAV's
    if index.fault is not None:
        code, fault = index.fault
        raise _problem(path, code, "all that the file says it has", fault)
    if len(index) > limits.max_frames:
        raise _problem(path, "too_many_frames", f"at most {limits.max_frames:,} frames", "more")
    if index.cut or len(index) + index.discarded + index.repeated < stream.frames:
        expected = f"{stream.frames or 'all'} frames, as its header says"
        raise _problem(path, "truncated", expected, f"{len(index)} frames: the file ends early")
    if not len(index):
        raise _problem(path, "no_frames", "at least one frame", "none")


def _unopened(path: Path, error: Exception) -> MediaProblem:
    """Say why a file cannot be opened: an MP4 that lost its end has lost its table of contents with it."""
    try:
        with open_plain(path, follow=True) as file:
            start = file.read(12)
    except OSError as fault:
        return _problem(path, "unreadable", "a file that can be read", str(fault.strerror))
    if start[4:8] == b"ftyp":
        return _problem(path, "truncated", "a whole MP4 file", f"one without its index ({_told(error)})")
    return _problem(path, "not_a_video", "a video", f"a file that begins with {start[:8]!r}")


def _info(stream: Any, index: Index) -> VideoInfo:  # noqa: ANN401 - PyAV's
    duration = (index.end - index.times[0]) * Fraction(stream.time_base)
    if duration <= 0:
        duration = len(index) / Fraction(stream.guessed_rate or 25)
    context = stream.codec_context
    return VideoInfo(len(index), duration, len(index) / duration, context.width, context.height)


def _taken(
    container: Any,  # noqa: ANN401 - PyAV's
    stream: Any,  # noqa: ANN401 - PyAV's
    index: Index,
    wanted: Sequence[int],
    *,
    deinterlace: bool,
) -> Iterator[Any]:
    """Yield the wanted frames; jump ahead where a key frame lies between two of them.

    The fields of a frame are joined with a look at the frame before: decoding begins before that one.
    """
    stream.thread_type = "AUTO"
    reached: int | Fraction | None = None
    frames: Iterator[Any] = iter(())
    for number in wanted:
        target = index.times[number]
        key = index.key_before(index.times[max(number - 1, 0)] if deinterlace else target)
        if reached is None or key > reached:
            container.seek(key, stream=stream, backward=True)
            frames = frames_of(container, stream)
            frames = deinterlaced(frames) if deinterlace else frames
        frame = next((frame for frame in frames if frame.pts is not None and frame.pts >= target), None)
        if frame is None or frame.pts != target:
            raise ValueError(f"the decoder left out frame {number}")
        reached = target
        yield frame


def _walked(path: Path, wanted: Sequence[int], *, deinterlace: bool) -> Iterator[Any]:
    """Yield the wanted frames of a file in which nothing can be found but by decoding from its front."""
    left = set(wanted)
    with video_library().open(str(path), metadata_errors="replace") as container:
        frames = frames_of(container, video_stream(container))
        for number, frame in enumerate(deinterlaced(frames) if deinterlace else frames):
            if number in left:
                yield frame
            if number >= wanted[-1]:
                return


def _image(frame: Any) -> "tuple[Image, tuple[str, ...]]":  # noqa: ANN401 - PyAV's
    """Return the pixels, and what was done to them."""
    image, transparent = over_white(frame)
    turn = int(getattr(frame, "rotation", 0) or 0)
    return image.rotate(turn, expand=True) if turn % 360 else image, (TRANSPARENT,) if transparent else ()


def video_library() -> Any:  # noqa: ANN401 - a module
    try:
        import av
    except ImportError as error:
        raise MissingRequirement(
            "videos",
            what="videos need the library PyAV, which is not installed",
            fix="pip install 'fabula[video]'",
        ) from error
    return av


def _told(error: Exception) -> str:
    # FFmpeg's own text ends with the path of the file, which is nobody's business in a published reason.
    return f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}"[:200]


def _problem(path: Path, code: str, expected: str, found: str) -> MediaProblem:
    return MediaProblem(
        str(path), code=code, expected=expected, found=found, fix="generate or copy the video again"
    )


# -- Files that are pictures or videos

SUFFIXES = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi")
"""Endings of files that are taken for videos."""


def is_video(file: Path) -> bool:
    """Whether a file is called like a video."""
    return file.suffix.lower() in SUFFIXES


def chosen_frames(file: Path, count: int) -> tuple[int, ...]:
    """Return which frames of a video are taken, from 0; see :func:`middle_indices`."""
    there = probe(file).frames
    if there < count:
        raise MediaProblem(
            str(file), code="too_few_frames", expected=f"at least {count} frames", found=str(there),
            fix="give a longer video, or ask for fewer frames",
        )  # fmt: skip
    return middle_indices(there, count)


def pictures_in(file: Path, count: int = 1) -> Iterator[Picture]:
    """Yield what a file shows: the picture, or so many frames of the video, in order.

    ``count``: frames of a video.
    """
    if not is_video(file):
        yield open_picture(file)
        return
    for frame in frames_at(file, chosen_frames(file, count)):
        yield Picture(frame.image, "VIDEO", frame.notes)


# -- Frames of interlaced films, each of one moment. What comes out for a frame depends on it and its two
# neighbours alone; frames that are not marked as interlaced stay as they are.

FILTER, OPTIONS = "bwdif", "mode=send_frame:parity=auto:deint=interlaced"  # FFmpeg's
DEINTERLACER = f"{FILTER}/{OPTIONS}"
"""What is done to interlaced films, as a record names it."""
_LOOKED_AT = 25


def is_interlaced(frames: Iterable[Any]) -> bool:
    """Return whether one of the first frames of a film is marked as interlaced."""
    return any(frame.interlaced_frame for frame in islice(frames, _LOOKED_AT))


def deinterlaced(frames: Iterable[Any]) -> Iterator[Any]:
    """Yield the frames of a film, as PyAV decodes them, with their fields joined; times stay."""
    stamps: deque[int | None] = deque()
    shape: tuple[int, int, str] | None = None
    graph: Any = None
    for frame in frames:
        now = (frame.width, frame.height, frame.format.name)
        if now != shape:
            yield from _rest(graph, stamps)
            shape, graph = now, _graph(frame)
        stamps.append(frame.pts)
        graph.push(frame)
        yield from _pulled(graph, stamps)
    yield from _rest(graph, stamps)


def _graph(frame: Any) -> Any:  # noqa: ANN401 - PyAV's
    import av

    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base
    )
    joined, sink = graph.add(FILTER, OPTIONS), graph.add("buffersink")
    source.link_to(joined)
    joined.link_to(sink)
    graph.configure()
    return graph


def _rest(graph: Any, stamps: deque[int | None]) -> Iterator[Any]:  # noqa: ANN401 - PyAV's
    if graph is not None:
        graph.push(None)
        yield from _pulled(graph, stamps)


def _pulled(graph: Any, stamps: deque[int | None]) -> Iterator[Any]:  # noqa: ANN401 - PyAV's
    while True:
        try:
            frame = graph.pull()
        except (BlockingIOError, EOFError):  # it waits for the next frame, or there is none
            return
        frame.pts = stamps.popleft()  # the filter counts time in halves
        yield frame


# -- Frames with transparent parts: they are laid over white, as pictures are


def over_white(frame: Any) -> "tuple[Image, bool]":  # noqa: ANN401 - PyAV's
    """Return the pixels of a frame as RGB, not turned, and whether something of it is transparent."""
    image: Image = frame.to_image()
    if not _may_be_transparent(frame.format.name):
        return image, False
    from PIL import Image as Images

    alpha = Images.fromarray(frame.to_ndarray(format="rgba")[:, :, 3])
    if alpha.getextrema() == (255, 255):
        return image, False
    white = Images.new("RGB", image.size, (255, 255, 255))
    white.paste(image, mask=alpha)
    return white, True


def opaque(frame: Any) -> Any:  # noqa: ANN401 - PyAV's
    """Return a frame that lies over white where something of it is transparent; it is not turned."""
    import av

    if not _may_be_transparent(frame.format.name):
        return frame
    image, transparent = over_white(frame)
    return av.VideoFrame.from_image(image) if transparent else frame  # type: ignore[no-untyped-call]


@cache
def _may_be_transparent(pixel_format: str) -> bool:
    import av

    kind = av.VideoFormat(pixel_format)
    return kind.has_palette or any(component.is_alpha for component in kind.components)

"""Frames of interlaced films, each of one moment: FFmpeg's filter ``bwdif``, a frame for each frame.

What comes out for a frame depends on it and its two neighbours alone. Frames that are not marked as
interlaced come out as they are. Needs the extra ``video`` (PyAV).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

FILTER, OPTIONS = "bwdif", "mode=send_frame:parity=auto:deint=interlaced"
NAME = f"{FILTER}/{OPTIONS}"
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

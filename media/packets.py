"""Counting the frames of a video: when each is shown, and where decoding can begin."""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

_INDEXED = {"mov", "mp4", "matroska", "webm"}
"""Containers that say of every packet when it is shown, and find a key frame exactly."""

_MOST_KEPT = 4
_kept: "dict[tuple[str, int, int, int, int], Index]" = {}


@dataclass(frozen=True, slots=True)
class Index:
    """When the frames of a video are shown, in units of the stream's time base.

    Attributes:
        times: of every frame, ascending.
        keys: of the key frames, ascending; none where decoding can begin at the front only.
        end: when the last frame ends.
        discarded: packets that the file says are not shown.
        cut: whether a packet is incomplete.
    """

    times: tuple[int | Fraction, ...]
    keys: tuple[int, ...]
    end: int | Fraction
    discarded: int
    cut: bool

    def __len__(self) -> int:
        return len(self.times)

    def key_before(self, time: int | Fraction) -> int:
        """Return the last key frame that is not after a time; the first one where there is none before."""
        return self.keys[max(bisect_right(self.keys, time) - 1, 0)]


def index_file(path: Path, container: Any, stream: Any, most: int) -> Index:  # noqa: ANN401 - PyAV's
    """Return :func:`index_video` of an open file; that of the files used last is kept in memory.

    A film is opened once for every shot that is looked at; counting its packets again takes longer than that.
    """
    facts = path.stat()
    key = (str(path.absolute()), facts.st_size, facts.st_mtime_ns, facts.st_ino, most)
    index = _kept.pop(key, None)
    if index is None:
        index = index_video(container, stream, most)
    _kept[key] = index
    while len(_kept) > _MOST_KEPT:
        del _kept[next(iter(_kept))]
    return index


def index_video(container: Any, stream: Any, most: int) -> Index:  # noqa: ANN401 - PyAV's
    """Note when the frames of a stream are shown; stops when there are more than so many.

    MP4 and Matroska say it in their packets. Of other containers (MPEG, AVI, raw streams) every frame is
    decoded once for it.
    """
    if _INDEXED & set(container.format.name.split(",")):
        index = _index_packets(container, stream, most)
        if index is not None:
            return index
        container.seek(0)
    return _index_frames(container, stream, most)


def _index_packets(container: Any, stream: Any, most: int) -> Index | None:  # noqa: ANN401 - PyAV's
    """Return None where packets do not say when they are shown, or where no decoding can begin."""
    times: set[int] = set()
    keys: list[int] = []
    discarded, count, end, cut = 0, 0, 0, False
    for packet in container.demux(stream):
        if not packet.size:
            continue
        cut = cut or packet.is_corrupt
        if packet.is_discard:
            discarded += 1
            continue
        count += 1
        if packet.pts is not None:
            times.add(packet.pts)
            end = max(end, packet.pts + (packet.duration or 0))
            if packet.is_keyframe:
                keys.append(packet.pts)
        if count > most:
            break
    if len(times) < count <= most or (times and not keys):
        return None
    return Index(tuple(sorted(times)), tuple(sorted(keys)), end, discarded, cut)


def _index_frames(container: Any, stream: Any, most: int) -> Index:  # noqa: ANN401 - PyAV's
    stamps: list[int | None] = []
    for frame in container.decode(stream):
        stamps.append(frame.pts)
        if len(stamps) > most:
            break
    step = 1 / (Fraction(stream.guessed_rate or 25) * Fraction(stream.time_base))
    told = [stamp for stamp in stamps if stamp is not None]
    times: list[int | Fraction] = [*told]
    if len(told) < len(stamps) or any(a >= b for a, b in pairwise(told)):
        times = [number * step for number in range(len(stamps))]
    return Index(tuple(times), (), times[-1] + step if times else 0, 0, cut=False)

"""Counting the frames of a video by its packets: when each is shown, and where decoding can begin."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Index:
    """When the frames of a video are shown, in units of the stream's time base.

    Attributes:
        times: of every frame, ascending.
        keys: of the key frames, ascending.
        end: when the last frame ends.
        discarded: packets that the file says are not shown.
        cut: whether a packet is incomplete.
    """

    times: tuple[int, ...]
    keys: tuple[int, ...]
    end: int
    discarded: int
    cut: bool

    def __len__(self) -> int:
        return len(self.times)

    def key_before(self, time: int) -> int:
        """Return the last key frame that is not after a time; the first one where there is none."""
        place = bisect_right(self.keys, time)
        return self.keys[max(place - 1, 0)] if self.keys else self.times[0]


def index_packets(container: Any, stream: Any, most: int) -> Index:  # noqa: ANN401 - PyAV's
    """Read the packets of a stream and note their times; stops when there are more than so many.

    Formats that do not say when packets are shown (raw streams, old AVI files) are decoded once for it.
    """
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
    if len(times) < count <= most:
        return _index_frames(container, stream, discarded, cut)
    return Index(tuple(sorted(times)), tuple(sorted(keys)), end, discarded, cut)


def _index_frames(container: Any, stream: Any, discarded: int, cut: bool) -> Index:  # noqa: ANN401 - PyAV's
    container.seek(0)
    times = [frame.pts for frame in container.decode(stream) if frame.pts is not None]
    last = times[-1] - times[-2] if len(times) > 1 else 0
    # Decoding always begins at the front: where key frames lie is not known by time.
    return Index(tuple(sorted(set(times))), tuple(times[:1]), max(times, default=0) + last, discarded, cut)

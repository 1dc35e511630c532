"""What a video file says of itself: when each frame is shown, where decoding can begin, and its tags."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from .wholeness import Fault, entries_of_no_bytes, fault_of

LOOKED_THROUGH = 20_000
"""Up to so many frames a video is decoded once from end to end; of a longer one, what is taken out of it."""

_INDEXED = {"mov", "mp4", "matroska", "webm"}
"""Containers that say of every packet when it is shown, and find a key frame exactly."""

_SILENT = {"gif"}
"""Decoders that leave out what they cannot decode, of codecs that have a frame in each packet."""

_MOST_KEPT = 4
_kept: "dict[tuple[str, int, int, int, int, bool], Index]" = {}


@dataclass(frozen=True, slots=True)
class Index:
    """When the frames of a video are shown, in units of the stream's time base."""

    times: tuple[int | Fraction, ...]  # of every frame, ascending
    keys: tuple[int, ...]  # of the key frames, ascending; none where decoding can begin at the front only
    end: int | Fraction  # when the last frame ends
    discarded: int  # packets that the file says are not shown
    cut: bool  # whether a packet is incomplete
    fault: Fault | None = None  # what the container shows to be wrong with the file; nothing was counted then
    repeated: int = 0  # entries of no bytes: the frame before each is shown longer

    def __len__(self) -> int:
        return len(self.times)

    def key_before(self, time: int | Fraction) -> int:
        """Return the last key frame that is not after a time; the first one where there is none before."""
        return self.keys[max(bisect_right(self.keys, time) - 1, 0)]


ALPHA_DECODERS = {"vp8": "libvpx", "vp9": "libvpx-vp9"}
"""Codecs whose usual decoder leaves out what is transparent -> the decoder that does not."""


def video_stream(container: Any) -> Any:  # noqa: ANN401 - PyAV's
    """Return the first video of an open file; None where it has none. The cover of a record is none."""
    import av

    cover = av.stream.Disposition.attached_pic
    return next((stream for stream in container.streams.video if not stream.disposition & cover), None)


def has_alpha(stream: Any) -> bool:  # noqa: ANN401 - PyAV's
    """Whether a VP8 or VP9 stream says that it has transparency beside its frames."""
    said = {name.lower(): value for name, value in stream.metadata.items()}
    return stream.codec_context.name in ALPHA_DECODERS and said.get("alpha_mode") == "1"


def decoded_packets(container: Any, stream: Any, options: dict[str, str] | None = None) -> Iterator[Any]:  # noqa: ANN401 - PyAV's
    """Yield each packet with a function that decodes it; a packet of no bytes shows the frame before it."""
    import av

    context = stream.codec_context
    if has_alpha(stream):
        context = av.CodecContext.create(ALPHA_DECODERS[context.name], "r")
        context.extradata = stream.codec_context.extradata
    if options:
        context.options = options
    for packet in container.demux(stream):
        if packet.size or packet.dts is None:  # the last one, of no bytes, asks for what is left
            yield (
                packet,
                (packet.decode if context is stream.codec_context else partial(context.decode, packet)),
            )


def frames_of(container: Any, stream: Any) -> Iterator[Any]:  # noqa: ANN401 - PyAV's
    """Yield the frames of a stream from where its file stands."""
    for _, decode in decoded_packets(container, stream):
        yield from decode()


def index_file(path: Path, container: Any, stream: Any, most: int, *, whole: bool) -> Index:  # noqa: ANN401 - PyAV's
    """Return :func:`index_video` of an open file; that of the files used last is kept in memory.

    A film is opened once for every shot that is looked at; counting its packets again takes longer than that.

    ``most``: how many frames are counted. ``whole``: whether damage in the middle counts; a film that was cut
    off is never whole.
    """
    facts = path.stat()
    key = (str(path.absolute()), facts.st_size, facts.st_mtime_ns, facts.st_ino, most, whole)
    index = _kept.pop(key, None)
    if index is None:
        fault = fault_of(path)
        if fault is not None and (whole or fault[0] == "truncated"):
            index = Index((), (), 0, 0, False, fault)
        else:
            index = index_video(container, stream, most, whole=whole)
            if container.format.name == "avi":
                index = _with_repeated(index, entries_of_no_bytes(path, stream.index))
        if whole and index.keys and len(index) <= LOOKED_THROUGH:
            _look_through(path, stream.index)
    _kept[key] = index
    while len(_kept) > _MOST_KEPT:
        del _kept[next(iter(_kept))]
    return index


def index_video(container: Any, stream: Any, most: int, *, whole: bool = False) -> Index:  # noqa: ANN401 - PyAV's
    """Note when the frames of a stream are shown; stops when there are more than so many.

    MP4 and Matroska say it in their packets. Of other containers (MPEG, AVI, raw streams) every frame is
    decoded once for it.
    """
    if _INDEXED & set(container.format.name.split(",")):
        index = _index_packets(container, stream, most)
        if index is not None:
            return index
        container.seek(0)
    return _index_frames(stream, _decoded(container, stream) if whole else frames_of(container, stream), most)


def _with_repeated(index: Index, entries: int) -> Index:
    """Count the entries of no bytes of an AVI, whose times count them; those behind the last frame, too."""
    if not index.times:
        return replace(index, repeated=entries)
    counted = all(isinstance(time, int) for time in index.times)
    within = max(int(index.times[-1] - index.times[0]) + 1 - len(index), 0) if counted else 0
    behind = max(entries - within, 0)
    step = index.end - index.times[-1]
    return replace(index, repeated=within + behind, end=index.end + behind * step)


def _index_packets(container: Any, stream: Any, most: int) -> Index | None:  # noqa: ANN401 - PyAV's
    """Return None where packets do not say when they are shown, or where no decoding can begin."""
    times: set[int] = set()
    keys: list[int] = []
    discarded, count, end, cut, repeated = 0, 0, 0, False, 0
    for packet in container.demux(stream):
        if not packet.size:
            repeated += packet.dts is not None
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
    return Index(tuple(sorted(times)), tuple(sorted(keys)), end, discarded, cut, None, repeated)


def _look_through(path: Path, stream_index: int) -> None:
    """Decode every frame once; raises where that fails. Opened anew, as a codec takes its options once."""
    import av

    with av.open(str(path), metadata_errors="replace") as container:
        for _ in _decoded(container, container.streams[stream_index]):
            pass


def decoded_whole(path: Path, stream_index: int) -> Iterator[Any]:
    """Yield every frame of a stream, in the order of showing.

    Opened anew, as a codec takes its options once.
    """
    import av

    with av.open(str(path), metadata_errors="replace") as container:
        yield from _decoded(container, container.streams[stream_index])


def _index_frames(stream: Any, frames: Iterable[Any], most: int) -> Index:  # noqa: ANN401 - PyAV's
    stamps: list[int | None] = []
    for frame in frames:
        stamps.append(frame.pts)
        if len(stamps) > most:
            break
    step = 1 / (Fraction(stream.guessed_rate or 25) * Fraction(stream.time_base))
    stamped = [stamp for stamp in stamps if stamp is not None]
    times: list[int | Fraction] = [*stamped]
    if len(stamped) < len(stamps) or any(a >= b for a, b in pairwise(stamped)):
        times = [number * step for number in range(len(stamps))]
    return Index(tuple(times), (), times[-1] + step if times else 0, 0, cut=False)


def _decoded(container: Any, stream: Any) -> Iterator[Any]:  # noqa: ANN401 - PyAV's
    """Yield every frame.

    A decoder would rather show something: it is told to fail instead. Only what stands before the first key
    frame may be missing, as a recording can begin, or be cut, between two of them.
    """
    first_key: int | None = None
    packets = shown = 0
    for packet, decode in decoded_packets(container, stream, {"err_detect": "explode"}):
        packets += packet.size > 0
        if first_key is None and packet.is_keyframe:
            first_key = packet.pts if packet.pts is not None else 0
        try:
            frames = decode()
        except Exception:
            if _may_be_missing(packet.pts, first_key):
                continue
            raise
        for frame in frames:
            shown += 1
            if (frame.is_corrupt or packet.is_corrupt) and not _may_be_missing(frame.pts, first_key):
                raise ValueError("a frame is incomplete")
            yield frame
    if shown < packets and stream.codec_context.name in _SILENT:
        raise ValueError(f"{packets - shown} frames are missing")


def _may_be_missing(stamp: int | None, first_key: int | None) -> bool:
    return first_key is None or (stamp is not None and stamp < first_key)

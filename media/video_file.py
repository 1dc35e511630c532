"""What a video file says of itself: when each frame is shown, where decoding can begin, and its tags."""

import mmap
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from ..schemas.plain_files import open_plain

# -- Whether a video file has all that its container says it has: sizes, the chain of its parts, checksums
#
# A decoder that meets the end of a cut file just stops, and one that meets garbled bytes looks for the next
# frame; neither says so. What a container states about itself does.

Fault = tuple[Literal["truncated", "damaged"], str]
"""What is wrong with a file: a code of :class:`.problems.MediaProblem`, and what was found."""

_ENDS_EARLY = "the file ends early"
_EBML, _SEGMENT, _CLUSTER, _CRC = 0x1A45DFA3, 0x18538067, 0x1F43B675, 0xBF
_PARTS = {0x114D9B74, 0x1549A966, 0x1654AE6B, _CLUSTER, 0x1C53BB6B, 0x1941A469, 0x1043A770, 0x1254C367}
_IN_CLUSTER = {0xE7, 0xA3, 0xA0, 0xAB, 0xA7, 0xAF, 0x5854}
_ANYWHERE = {0xEC, _CRC}  # padding, checksum
_TS_PACKET = 188


def fault_of(path: Path) -> Fault | None:
    """Return what the container shows to be wrong; None where nothing is, or where it states nothing.

    ``path``: a file that is not empty.
    """
    with open_plain(path, follow=True) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _check_of(data)(data)
        except (IndexError, EOFError):
            return "truncated", _ENDS_EARLY
        except ValueError as error:
            return "damaged", str(error)


def _check_of(data: mmap.mmap) -> Callable[[mmap.mmap], Fault | None]:
    start = data[:12]
    if start.startswith(b"\x1a\x45\xdf\xa3"):
        return _matroska
    if start[:6] in (b"GIF87a", b"GIF89a"):
        return _gif
    if start[4:8] == b"ftyp":
        return _mp4
    if start[:4] == b"RIFF":
        return _riff
    if start[:1] == b"\x47" and data[_TS_PACKET : _TS_PACKET + 1] == b"\x47":
        return _transport_stream
    return lambda _: None


def _matroska(data: mmap.mmap) -> Fault | None:
    at = 0
    while at < len(data):
        name, size, inside = _element(data, at)
        end = len(data) if size is None else inside + size
        if name == _SEGMENT:
            _check_parts(data, inside, end)
        elif name != _EBML and name not in _ANYWHERE:
            return None  # something was appended
        at = end
    if at > len(data):
        raise EOFError
    return None


def _check_parts(data: mmap.mmap, at: int, end: int) -> None:
    """Raise where the parts of a segment do not follow each other to its end, or a checksum is wrong."""
    while at < end:
        name, size, inside = _element(data, at)
        if name not in _PARTS | _ANYWHERE:
            raise ValueError(f"no part of a Matroska file at byte {at:,}")
        if size is None:  # of a live recording: its blocks stand here as if they were parts
            at = _end_of_open_cluster(data, inside, end)
            continue
        at = inside + size
        if at > len(data):
            raise EOFError
        _check_sum(data, inside, at)
        if name == _CLUSTER:
            _check_cluster(data, inside, at)


def _check_cluster(data: mmap.mmap, at: int, end: int) -> None:
    while at < end:
        name, size, inside = _element(data, at)
        if name not in _IN_CLUSTER | _ANYWHERE or size is None or inside + size > end:
            raise ValueError(f"no block of a Matroska file at byte {at:,}")
        at = inside + size


def _end_of_open_cluster(data: mmap.mmap, at: int, end: int) -> int:
    while at < end:
        name, size, inside = _element(data, at)
        if name not in _IN_CLUSTER | _ANYWHERE:
            return at
        if size is None or inside + size > len(data):
            raise EOFError
        at = inside + size
    return at


def _check_sum(data: mmap.mmap, at: int, end: int) -> None:
    if end - at < 6 or data[at] != _CRC or data[at + 1] != 0x84:
        return
    if zlib.crc32(data[at + 6 : end]) != int.from_bytes(data[at + 2 : at + 6], "little"):
        raise ValueError(f"bytes {at:,} to {end:,} are not those of their checksum")


def _element(data: mmap.mmap, at: int) -> tuple[int, int | None, int]:
    """Return name, size (None where it is not stated) and place of the content of an element."""
    length = _length(data[at], 4, at)
    name = int.from_bytes(data[at : at + length], "big")
    at += length
    length = _length(data[at], 8, at)
    if at + length > len(data):
        raise EOFError
    most = (1 << (7 * length)) - 1
    size = int.from_bytes(data[at : at + length], "big") & most
    return name, None if size == most else size, at + length


def _length(first: int, most: int, at: int) -> int:
    length = 9 - first.bit_length()
    if length > most:
        raise ValueError(f"no part of a Matroska file at byte {at:,}")
    return length


def _gif(data: mmap.mmap) -> Fault | None:
    at = 13 + _colours(data[10])
    while (kind := data[at]) != 0x3B:
        if kind == 0x21:
            at = _after_blocks(data, at + 2)
        elif kind == 0x2C:
            at = _after_blocks(data, at + 11 + _colours(data[at + 9]))
        else:
            raise ValueError(f"no part of a GIF at byte {at:,}")
    return None


def _colours(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_blocks(data: mmap.mmap, at: int) -> int:
    while size := data[at]:
        at += 1 + size
    return at + 1


def _mp4(data: mmap.mmap) -> Fault | None:
    return _ends_in_time(data, _boxes(data))


def _boxes(data: mmap.mmap) -> Iterator[int]:
    """Yield the end of each box at the top level."""
    at = 0
    while at + 8 <= len(data) and data[at + 4 : at + 8].isalnum():
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16], "big")
        if size < 8:  # 0: to the end of the file
            return
        at += size
        yield at


def _riff(data: mmap.mmap) -> Fault | None:
    return _ends_in_time(data, _riffs(data))


def _riffs(data: mmap.mmap) -> Iterator[int]:
    """Yield the end of each part of an AVI; one that was never finished states no size."""
    at = 0
    while data[at : at + 4] == b"RIFF" and (size := int.from_bytes(data[at + 4 : at + 8], "little")):
        if size == 0xFFFFFFFF:
            return
        at += 8 + size
        yield at


def _ends_in_time(data: mmap.mmap, ends: Iterator[int]) -> Fault | None:
    return ("truncated", _ENDS_EARLY) if any(end > len(data) for end in ends) else None


def _transport_stream(data: mmap.mmap) -> Fault | None:
    return ("truncated", "its last packet is cut off") if len(data) % _TS_PACKET else None


def entries_of_no_bytes(path: Path, stream: int) -> int:
    """Return how many empty entries the index of an AVI has for a stream: there the frame before stays."""
    with open_plain(path, follow=True) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = 12
        while at + 8 <= len(data):
            size = int.from_bytes(data[at + 4 : at + 8], "little")
            if data[at : at + 4] == b"idx1":
                entries = struct.iter_unpack("<4sIII", data[at + 8 : at + 8 + size - size % 16])
                names = (b"%02ddc" % stream, b"%02ddb" % stream)
                return sum(name in names and not length for name, _, _, length in entries)
            at += 8 + size + size % 2
    return 0


# -- What a video file says of itself

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

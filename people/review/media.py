"""Pictures and videos of a study: copied without their metadata, kept once, named by content.

A picture is decoded and encoded anew, so that the pages give pixels and nothing else. A video of a codec that
browsers play is packed anew without its tags; any other is encoded anew. What is sent under a name has bytes
of its own, so that neither a hash nor a size tells that two names stand for one file.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256, shake_256
from hmac import new as keyed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self
from zlib import crc32

from ...errors import InputError, MissingRequirement
from ...media.images import encode_image, fitted, open_picture
from ...media.kept_files import write_once
from ...media.transparency import opaque
from ...media.video_file import frames_of, has_alpha, video_stream
from ...schemas.canonical import sha256_bytes
from ...schemas.plain_files import open_plain, read_plain
from .items import Media

MEDIA = "media"
MOVING = frozenset((".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi"))
LARGEST_SIDE = 1600
"""Longest side of a picture, in pixels; larger ones are made smaller."""
PLAYED = {"h264": "mp4", "vp8": "webm", "vp9": "webm", "av1": "mp4"}
"""Codec that browsers play -> the container that it is packed into."""
TYPES = {"png": "image/png", "mp4": "video/mp4", "webm": "video/webm"}
"""Ending of a kept file -> what the pages call it."""

_PIECE = 256 * 1024
_LEAST, _SPREAD = 64, 1024  # bytes of a mark, and how many more it may have
_AFTER_HEADER = 33  # where the second chunk of a PNG file begins


@dataclass(frozen=True, slots=True)
class Marked:
    """A kept file as it is sent under one name: with bytes in it that decoders pass over."""

    path: Path  # the kept file
    at: int  # where the mark stands in what is sent
    mark: bytes  # a PNG chunk of a private type, a box ``free`` of MP4 or an element ``Void`` of WebM

    @classmethod
    def of(cls, path: Path, name: str, secret: bytes) -> Self:
        """Return what is sent of a kept file; nobody can tell from it which other names stand for it."""
        seed = keyed(secret, f"mark\n{name}".encode(), sha256).digest()
        noise = shake_256(seed).digest(_LEAST + int.from_bytes(seed[:2], "big") % _SPREAD)
        if path.suffix == ".png":
            body = b"fbNm" + noise
            mark = struct.pack(">I", len(noise)) + body + struct.pack(">I", crc32(body))
            return cls(path, _AFTER_HEADER, mark)
        if path.suffix == ".mp4":
            mark = struct.pack(">I4s", len(noise) + 8, b"free") + noise
        else:
            mark = b"\xec" + (len(noise) | 1 << 56).to_bytes(8, "big") + noise
        return cls(path, path.stat().st_size, mark)

    @property
    def size(self) -> int:
        """How many bytes are sent."""
        return self.path.stat().st_size + len(self.mark)

    def pieces(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield what is sent from one byte to before another."""
        end = self.at + len(self.mark)
        yield from self._of_file(start, min(stop, self.at))
        if marked := self.mark[max(start - self.at, 0) : max(stop - self.at, 0)]:
            yield marked
        yield from self._of_file(max(start, end) - len(self.mark), stop - len(self.mark))

    def content(self) -> bytes:
        """Return all that is sent."""
        return b"".join(self.pieces(0, self.size))

    def _of_file(self, start: int, stop: int) -> Iterator[bytes]:
        if start >= stop:
            return
        with open_plain(self.path) as file:
            file.seek(start)
            while piece := file.read(min(_PIECE, stop - start)):
                start += len(piece)
                yield piece


def store_file(folder: Path, path: Path) -> tuple[str, Media]:
    """Keep a picture or video in a study; return the name of the kept file, and its kind and size."""
    if path.suffix.lower() in MOVING:
        data, ending, width, height = _packed(path)
        kind = "video"
    else:
        data, width, height = _pixels(path)
        ending, kind = "png", "picture"
    name = f"{sha256_bytes(data)}.{ending}"
    write_once(data, name, folder / MEDIA)
    return name, Media(name="", kind=kind, width=width, height=height)


def _pixels(path: Path) -> tuple[bytes, int, int]:
    image = fitted(open_picture(path).image, LARGEST_SIDE)
    return encode_image(image, format="png"), image.width, image.height


def _packed(path: Path) -> tuple[bytes, str, int, int]:
    try:
        import av
    except ImportError as error:
        raise MissingRequirement(
            "videos", what="PyAV is not installed", fix='install it: pip install "fabula[video]"'
        ) from error
    try:
        with av.open(str(path), metadata_errors="ignore") as source:
            stream = video_stream(source)
            if stream is None:
                raise IndexError("it has sound and perhaps a cover, and no video")
            size = (stream.codec_context.width, stream.codec_context.height)
            ending = None if has_alpha(stream) else PLAYED.get(stream.codec_context.name)
            if ending is None:
                return _written("mp4", lambda target: _encode(source, stream, target)), "mp4", *size
            return _written(ending, lambda target: _copy(source, stream, target)), ending, *size
    except (av.FFmpegError, IndexError, OSError) as error:
        fix = "make it again, or leave its method out"
        raise InputError.one(
            str(path), what=f"this is no video that can be read: {error}", fix=fix
        ) from error


def _written(ending: str, fill: Callable[[Any], None]) -> bytes:
    """Return a new container as bytes. FFmpeg puts the index first only in a file that it can open anew."""
    import av

    with TemporaryDirectory() as folder:
        path = Path(folder, f"video.{ending}")
        with av.open(str(path), "w", format=ending, options=_bare(ending)) as target:
            fill(target)
        return read_plain(path, path.stat().st_size)


def _copy(source: Any, stream: Any, target: Any) -> None:  # noqa: ANN401 - PyAV's
    copied = target.add_stream_from_template(stream)
    copied.metadata.clear()
    for packet in source.demux(stream):
        if packet.dts is not None:
            packet.stream = copied
            target.mux(packet)


def _encode(source: Any, stream: Any, target: Any) -> None:  # noqa: ANN401 - PyAV's
    import av

    made = target.add_stream("libx264", rate=stream.average_rate or 24)
    made.width, made.height = stream.codec_context.width // 2 * 2, stream.codec_context.height // 2 * 2
    made.pix_fmt, made.options = "yuv420p", {"crf": "18"}
    for decoded in frames_of(source, stream):
        frame = opaque(decoded)
        if frame is not decoded:
            frame.pts, frame.time_base = decoded.pts, decoded.time_base
        frame.pict_type = av.video.frame.PictureType.NONE
        target.mux(made.encode(frame.reformat(made.width, made.height, "yuv420p")))
    target.mux(made.encode())


def _bare(ending: str) -> dict[str, str]:
    """Return options that keep the muxer's own name out, and let a browser begin before the end has come."""
    return {"fflags": "+bitexact", **({"movflags": "+faststart"} if ending == "mp4" else {})}

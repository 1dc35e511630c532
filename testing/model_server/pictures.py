"""Small pictures and videos that are valid and show nothing, for servers without a handler of their own."""

import hashlib
import io
import struct
import zlib

from .answers import Picture
from .asked import Asked

USUAL = (64, 64)
LARGEST = 2048


def plain_png(width: int, height: int, mark: str) -> bytes:
    """Return a PNG of one colour, which a text decides: other texts, other pictures."""
    colour = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).digest()[:3]
    rows = (b"\0" + colour * width) * height
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def plain_video(mark: str, frames: int = 8) -> bytes:
    """Return an MP4 of 64 x 64 pixels and so many frames of one colour; needs PyAV."""
    import av
    import numpy as np

    colour = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).digest()[:3]
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width, stream.height, stream.pix_fmt = *USUAL, "yuv420p"
        plain = np.full((*USUAL, 3), list(colour), dtype=np.uint8)
        for _ in range(frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(plain, format="rgb24")))
        container.mux(stream.encode(None))
    return file.getvalue()


def plain_picture(asked: Asked) -> Picture:
    """Return a picture of the size that is asked for, or a video: one colour, by prompt and seed."""
    mark = f"{asked.prompt}|{asked.seed}"
    if asked.wants == "video":
        return Picture(plain_video(mark), "video/mp4")
    width, height = asked.size or USUAL
    return Picture(plain_png(min(width, LARGEST), min(height, LARGEST), mark))

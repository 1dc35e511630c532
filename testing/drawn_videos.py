"""Drawn videos whose shots are known: places with things that move, joined by cuts, dissolves, fades.

Small and deterministic; needs the extra ``video``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]
    Real = NDArray[np.float64]

Kind = Literal["cut", "dissolve", "fade"]


@dataclass(frozen=True, slots=True)
class Take:
    """One shot of a drawn video."""

    frames: int  # how many frames of it are seen alone or in part
    look: int  # what it looks like: a number, the seed of its place, colours and things
    pan: float = 0.5  # pixels that the camera moves in a frame
    joint: Kind = "cut"  # how it follows the take before it
    over: int = 0  # frames that a dissolve or fade takes; those of a dissolve are of both takes


@dataclass(frozen=True, slots=True)
class Joint:
    """Where one take becomes another."""

    last: int  # the last frame of the take before it, alone
    first: int  # the first frame of the take behind it, alone
    kind: Kind  # cut, dissolve or fade


def joints_of(takes: Sequence[Take]) -> tuple[Joint, ...]:
    """Return where the takes become each other: a dissolve takes frames from both, a fade adds none."""
    found, begin = [], 0
    for before, take in pairwise(takes):
        end = begin + before.frames
        if take.joint == "dissolve":
            found.append(Joint(end - take.over - 1, end, "dissolve"))
            begin = end - take.over
        elif take.joint == "fade":
            out = take.over // 2
            found.append(Joint(end - out - 1, end + take.over - out, "fade"))
            begin = end
        else:
            found.append(Joint(end - 1, end, "cut"))
            begin = end
    return tuple(found)


def draw_takes(takes: Sequence[Take], size: tuple[int, int] = (160, 90)) -> "Iterator[Picture]":
    """Yield the frames of an edited video, shape (height, width, 3), RGB."""
    held: list[Real] = []
    for number, take in enumerate(takes):
        coming = takes[number + 1] if number + 1 < len(takes) else None
        pictures = list(_pictures(take, size))
        if take.joint == "fade" and number:
            rise = take.over - take.over // 2
            for place in range(rise):
                pictures[place] = pictures[place] * ((place + 1) / (rise + 1))
        if take.joint == "dissolve" and number:
            for place, old in enumerate(held):
                part = (place + 1) / (take.over + 1)
                pictures[place] = old * (1 - part) + pictures[place] * part
        held = []
        if coming is not None and coming.joint == "dissolve":
            held, pictures = pictures[-coming.over :], pictures[: -coming.over]
        if coming is not None and coming.joint == "fade":
            fall = coming.over // 2
            for place in range(fall):
                pictures[-1 - place] = pictures[-1 - place] * (place / fall)
        for picture in pictures:
            yield np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def _pictures(take: Take, size: tuple[int, int]) -> "Iterator[Real]":
    """Yield the frames of one take: a wide place that the camera pans over, and three discs that move."""
    chance = np.random.default_rng(take.look)
    width, height = size
    colours = chance.uniform(20, 235, (3, 3))
    coarse = chance.uniform(0, 1, (4, 12))
    rows = np.linspace(0, 3, height)
    columns = np.arange(2 * width) * 11 / (2 * width)
    place = _smooth(coarse, rows, columns)[..., None]
    wide = colours[0] * place + colours[1] * (1 - place) + chance.normal(0, 6, (height, 2 * width, 1))
    tints = chance.uniform(0, 255, (3, 3))
    starts, steps = chance.uniform(0.2, 0.8, (3, 2)), chance.uniform(-0.008, 0.008, (3, 2))
    grid_y, grid_x = np.mgrid[:height, :width]
    for number in range(take.frames):
        left = round(number * take.pan) % width
        picture = wide[:, left : left + width].copy()
        for tint, start, step in zip(tints, starts, steps, strict=True):
            x, y = (start + number * step) % 1.0 * (width, height)
            picture[(grid_x - x) ** 2 + (grid_y - y) ** 2 < (height / 7) ** 2] = tint
        yield picture + chance.normal(0, 2, (height, width, 1))


def _smooth(coarse: "Real", rows: "Real", columns: "Real") -> "Real":
    """Return values between those of a coarse grid, linearly."""
    across = np.stack([np.interp(columns, np.arange(coarse.shape[1]), row) for row in coarse])
    return np.stack([np.interp(rows, np.arange(coarse.shape[0]), column) for column in across.T], axis=1)


@dataclass(frozen=True, slots=True)
class Encoder:
    """How pictures are encoded."""

    codec: str = "mpeg4"  # name of the encoder
    options: Mapping[str, str] = field(default_factory=dict)  # of it
    rate: int = 4_000_000  # bits per second
    pixels: str = "yuv420p"  # its format of pixels
    key_every: int = 12  # distance of the key frames


MPEG4 = Encoder()


def write_frames(
    path: Path,
    pictures: "Iterable[Picture]",
    encoder: Encoder = MPEG4,
    *,
    fps: int | Fraction = 25,
    stamps: Sequence[int] | None = None,
) -> Path:
    """Write pictures as a video; the file's ending says which container.

    ``fps``: frames per second. ``stamps``: when each is shown, in units of 1/fps; one after another if not
    given.
    """
    import av

    with av.open(str(path), "w") as container:
        stream: Any = None
        for number, picture in enumerate(pictures):
            if stream is None:
                stream = container.add_stream(encoder.codec, rate=fps, options=dict(encoder.options))
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = encoder.pixels
                stream.codec_context.time_base = 1 / Fraction(fps)
                stream.codec_context.gop_size = encoder.key_every
                stream.codec_context.bit_rate = encoder.rate
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts = number if stamps is None else stamps[number]
            container.mux(stream.encode(frame))
        if stream is not None:
            container.mux(stream.encode())
    return path


def write_takes(path: Path, takes: Sequence[Take], size: tuple[int, int] = (160, 90)) -> tuple[Joint, ...]:
    """Write an edited video of 25 frames a second, and return where its takes become each other."""
    write_frames(path, draw_takes(takes, size))
    return joints_of(takes)


def write_sound(path: Path) -> Path:
    """Write a video file that holds sound only, and return its path."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.sample_rate, frame.pts = 8000, 0
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path

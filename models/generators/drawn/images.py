"""``image:drawn:NAME``: pictures drawn from a scene as data, or from the phrases of a prompt.

It is no generator to be compared with others: it draws what it is told, in shapes and colours, so that a
whole study can be run offline and what judges say of its pictures can be checked against what is in them.

PNG files whose bytes follow from the pixels alone, whatever compression library a machine has.

Libraries that compress differ in the bytes that they make of the same pixels. Here runs of one colour are
packed by rules of our own, in the one form of Deflate (RFC 1951) that has no tables.
"""

import asyncio
import io
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ....errors import ConfigError, MissingRequirement
from ....schemas.canonical import digest
from ....schemas.plain_files import reason_of
from ...chat import CallFault, ChatRequest, Reply, Usage
from ...keys import Redactor
from ...options import ModelOptions
from ...spec import ModelSpec
from ..request import Choice, Generated, GeneratedFile, PictureRequest, not_taken
from .figures import Drawing, draw_scene
from .scene import (
    CELL,
    COLOURS,
    EMBLEM,
    SIDE,
    Box,
    DrawnScene,
    Frame,
    Mark,
    MarkKind,
    Slot,
    all_slots,
    code_of,
    default_size,
    in_pixels,
    read_cells,
    scene_of,
)

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_COLOURS = 256
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE, _RGB = 3, 2
_SHORTEST_RUN, _LONGEST_RUN = 3, 258
_STORED = 65535
_BASES = (3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163,
          195, 227, 258)  # fmt: skip
_EXTRA = (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0)


def encode_png(image: "Image") -> bytes:
    """Return an RGB image as a PNG file; the same bytes everywhere for the same pixels.

    With at most 256 colours it is a picture with a palette, small where it is flat; with more it is stored
    without compression.
    """
    import numpy as np

    pixels = np.asarray(image.convert("RGB"))
    packed = pixels.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    colours, places = np.unique(packed, return_inverse=True)
    if len(colours) > MOST_COLOURS:
        rows = [b"\0" + row.tobytes() for row in pixels]
        return _file(image.size, _RGB, b"", _stored(b"".join(rows)))
    palette = b"".join(int(colour).to_bytes(3, "big") for colour in colours)
    return _file(image.size, _PALETTE, palette, _packed(places.reshape(packed.shape).astype(np.uint8)))


def _file(size: tuple[int, int], colour_type: int, palette: bytes, data: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", *size, 8, colour_type, 0, 0, 0)
    chunks = [(b"IHDR", header), *([(b"PLTE", palette)] if palette else []), (b"IDAT", data), (b"IEND", b"")]
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def _stored(raw: bytes) -> bytes:
    blocks = [raw[start : start + _STORED] for start in range(0, len(raw), _STORED)]
    body = b"".join(
        struct.pack("<BHH", number == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks)
    )
    return b"\x78\x01" + body + struct.pack(">I", zlib.adler32(raw))


def _packed(rows: Any) -> bytes:  # noqa: ANN401 - an array of shape (height, width)
    """Return rows of palette numbers as a zlib stream: runs of equal bytes, a row like the last as zeros."""
    import numpy as np

    raw = bytearray()
    value, used = 0b011, 3  # last block, fixed codes
    out = bytearray()
    before = None
    for row in rows:
        same = before is not None and bool((row == before).all())
        line = np.concatenate(([2], np.zeros_like(row))) if same else np.concatenate(([0], row))
        raw += line.astype(np.uint8).tobytes()
        starts = np.concatenate(([0], np.flatnonzero(np.diff(line)) + 1, [len(line)])).tolist()
        for start, end in pairwise(starts):
            for bits, length in _run(int(line[start]), end - start):
                value |= bits << used
                used += length
        whole = used // 8
        out += (value & (1 << 8 * whole) - 1).to_bytes(whole, "little")
        value, used = value >> 8 * whole, used % 8
        before = row
    out += (value).to_bytes((used + 7 + 7) // 8, "little")  # seven zero bits end the block
    return b"\x78\x01" + bytes(out) + struct.pack(">I", zlib.adler32(bytes(raw)))


@cache
def _run(byte: int, count: int) -> tuple[tuple[int, int], ...]:
    """Return the codes of a byte that comes so often, each as bits in the order of the file and how many."""
    codes = [_literal(byte)]
    left = count - 1
    while left >= _SHORTEST_RUN:
        length = min(left, _LONGEST_RUN)
        codes += _match(length)
        left -= length
    return (*codes, *[_literal(byte)] * left)


def _literal(symbol: int) -> tuple[int, int]:
    if symbol < 144:
        return _turned(0b00110000 + symbol, 8), 8
    if symbol < 256:
        return _turned(0b110010000 + symbol - 144, 9), 9
    if symbol < 280:
        return _turned(symbol - 256, 7), 7
    return _turned(0b11000000 + symbol - 280, 8), 8


def _match(length: int) -> list[tuple[int, int]]:
    """Return the codes of the last byte so often again."""
    length_code = max(number for number, base in enumerate(_BASES) if base <= length)
    extra = [(length - _BASES[length_code], _EXTRA[length_code])] if _EXTRA[length_code] else []
    return [_literal(257 + length_code), *extra, (0, 5)]  # distance 1


def _turned(bits: int, count: int) -> int:
    return int(f"{bits:0{count}b}"[::-1], 2)


FORGETTING, FAITHFUL = "storyboard", "faithful"
NAMES: Mapping[str, tuple[Choice, ...]] = {
    FORGETTING: ("seed", "size", "scene"),
    FAITHFUL: ("size", "scene"),
}
"""Names of the renderers -> what they take: ``storyboard`` leaves things out, ``faithful`` nothing."""
FORGOTTEN = 0.25
"""Share of the marks, characters not counted, that ``storyboard`` leaves out."""
MOST_SIDE = 4096
"""Most pixels of a side."""


class DrawnImages:
    """Draws pictures on this machine; one thread at a time is enough.

    ``spec``: ``image:drawn:storyboard`` or ``image:drawn:faithful``.

    Raises ConfigError: there is no renderer of that name.
    """

    def __init__(self, spec: ModelSpec, _options: ModelOptions, _redactor: Redactor) -> None:
        self._name = checked_name(spec)

    async def complete(self, request: ChatRequest) -> Reply:
        return drawn_reply(await asyncio.to_thread(self._make, PictureRequest.of(request)))

    async def close(self) -> None:
        """Close nothing."""

    def _make(self, asked: PictureRequest) -> Generated:
        scene, origin = scene_to_draw(asked)
        drawing = draw_scene(scene, size_of(asked, scene), forgetting(self._name, asked))
        file = GeneratedFile(encode_png(drawing.canvas.image), "image/png")
        return made_of(drawing, file, asked, self._name, origin)


def checked_name(spec: ModelSpec) -> str:
    """Return the name of the renderer that a spec names."""
    if spec.name not in NAMES:
        raise ConfigError(
            f"model {spec}", what=f"drawn has no renderer {spec.name}; it has: {', '.join(NAMES)}",
            fix="use one of them",
        )  # fmt: skip
    return spec.name


def scene_to_draw(asked: PictureRequest) -> tuple[DrawnScene, str]:
    """Return the scene of a request, and whether it came as data (``scene``) or off the ``prompt``."""
    if asked.scene is None:
        return scene_of(asked.prompt), "prompt"
    try:
        return DrawnScene.model_validate(asked.scene), "scene"
    except ValidationError as error:
        raise CallFault("bad_request", f"the scene cannot be drawn: {reason_of(error)}") from error


def size_of(asked: PictureRequest, scene: DrawnScene) -> tuple[int, int]:
    """Return width and height of the picture, in pixels; a side that is not asked for is as by default."""
    width, height = default_size(scene.form)
    size = (asked.width or width, asked.height or height)
    if not all(16 <= side <= MOST_SIDE for side in size):
        raise CallFault("bad_request", f"a side has 16 to {MOST_SIDE} pixels, not {size[0]} x {size[1]}")
    return size


def forgetting(name: str, asked: PictureRequest) -> Callable[[Mark], bool]:
    """Return which marks a renderer leaves out of a picture.

    ``storyboard`` leaves out each mark but characters with probability 1/4, by a hash of seed, mark and
    prompt, so that other seeds lose other things; ``faithful`` leaves out none.
    """

    def forgets(mark: Mark) -> bool:
        if name != FORGETTING or mark.kind == "character":
            return False
        drawn = digest([asked.seed, mark.kind, mark.text, asked.prompt])
        return int(drawn[:12], 16) / 16**12 < FORGOTTEN

    return forgets


def made_of(
    drawing: Drawing, file: GeneratedFile, asked: PictureRequest, name: str, origin: str
) -> Generated:
    """Return a picture or video as a reply tells it, with what it shows as data."""
    taken: tuple[Choice, ...] = NAMES[name] + (("seconds",) if file.media_type.startswith("video/") else ())
    truth: dict[str, Any] = {"renderer": name, "drawn_from": origin, **drawing.truth()}
    return Generated(
        file,
        seed=asked.seed if "seed" in taken else None,
        width=drawing.canvas.image.width,
        height=drawing.canvas.image.height,
        unsupported=not_taken(asked, taken),
        truth=truth,
    )


def drawn_reply(made: Generated) -> Reply:
    """Return what was made as a reply; nothing was counted, as nobody charges for it."""
    return Reply("ok", made.packed(), reported_model="drawn", usage=Usage())


# -- What a drawn picture shows, read from its pixels alone, after it was resized and encoded again

_FINE = 5
"""Samples of a cell in each direction."""
_SHIFTS = ((0.0, 0.0), (0.5, 0.0), (-0.5, 0.0), (0.0, 0.5), (0.0, -0.5))
"""Where an emblem is looked for, in units off its place: resizing moves it by parts of a pixel."""
_FARTHEST = 32.0
"""How far a cell's brightness may be from that of its colour, of 255."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A mark that was read."""

    kind: MarkKind  # what the emblem says it is
    code: str  # of its text; see :func:`.codes.code_of`
    box: Box  # where the emblem is, in pixels of the picture that was read


def read_marks(picture: "bytes | Image") -> tuple[Seen, ...]:
    """Return every mark whose emblem can be read, from the top of the picture to its bottom.

    ``picture``: a picture, or the bytes of a PNG or JPEG file. It may be of any size; below 256 pixels of the
    shorter side emblems get lost.
    """
    image = _opened(picture) if isinstance(picture, bytes) else picture
    frame = Frame(image.width, image.height)
    grey = image.convert("RGB").convert("L")
    seen = (_read(grey, slot, frame) for slot in all_slots(frame))
    return tuple(sorted((mark for mark in seen if mark is not None), key=lambda mark: mark.box[1::-1]))


def codes_in(picture: "bytes | Image") -> frozenset[str]:
    """Return the codes of all marks that can be read."""
    return frozenset(mark.code for mark in read_marks(picture))


def _opened(data: bytes) -> "Image":
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        image.load()
        return image


def _read(grey: "Image", slot: Slot, frame: Frame) -> Seen | None:
    for across, down in _SHIFTS:
        moved = Slot(slot.row, slot.column, slot.x + across * slot.unit, slot.y + down * slot.unit, slot.unit)
        samples = _samples(grey, moved, frame)
        if samples is None or _is_no_emblem(samples):
            return None
        for reach in (0, 1):
            cells = _cells(samples, reach)
            mark = None if cells is None else read_cells(cells)
            if mark is not None:
                return Seen(*mark, in_pixels(moved.around(EMBLEM), frame))
    return None


def _samples(grey: "Image", slot: Slot, frame: Frame) -> bytes | None:
    """Return the brightness of five by five points of each cell; None for a place outside the picture."""
    from PIL.Image import Resampling

    square = slot.around(SIDE * CELL)
    if square[0] < 0 or square[1] < 0 or square[2] > frame.width or square[3] > frame.height:
        return None
    return grey.resize((_ACROSS, _ACROSS), Resampling.BOX, box=square).tobytes()


def _is_no_emblem(samples: bytes) -> bool:
    """Whether the middles of the cells are all alike, or most of them are of none of the four colours."""
    values = [_VALUES[samples[middle]] for middle in _MIDDLES]
    return len(set(values)) == 1 or values.count(None) > len(values) // 2


def _cells(samples: bytes, reach: int) -> tuple[int, ...] | None:
    """Return the value of each cell by the points around its middle; None where one has none."""
    around = range(-reach, reach + 1)
    steps = [down * _ACROSS + across for down in around for across in around]
    cells = [_VALUES[sum(samples[middle + step] for step in steps) // len(steps)] for middle in _MIDDLES]
    return None if None in cells else tuple(cell for cell in cells if cell is not None)


def _brightness(colour: tuple[int, int, int]) -> float:
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue


LEVELS = tuple(_brightness(colour) for colour in COLOURS)
"""Brightness of a cell of value 0 to 3, of 255 (ITU-R BT.601)."""


def _value(level: int) -> int | None:
    value = min(range(len(LEVELS)), key=lambda number: abs(LEVELS[number] - level))
    return value if abs(LEVELS[value] - level) <= _FARTHEST else None


_VALUES = tuple(_value(level) for level in range(256))
_ACROSS = SIDE * _FINE
_MIDDLES = tuple(
    (row * _FINE + _FINE // 2) * _ACROSS + column * _FINE + _FINE // 2
    for row in range(SIDE)
    for column in range(SIDE)
)

__all__ = ["LEVELS", "Seen", "code_of", "codes_in", "read_marks"]


# -- ``video:drawn:NAME``: a short video of a drawn scene; the hills pass slowly behind the figures
#
# Needs the extra ``video``. Its pixels are the same everywhere; the bytes are those of the installed encoder.

FRAMES_A_SECOND = 8
SECONDS, MOST_SECONDS = 2.0, 30.0
"""Duration where none is asked for, and the longest."""
PAN = 12.0
"""Units, 256ths of the shorter side, by which the camera moves in a second."""
_BIT_RATE = 8_000_000


class DrawnVideos:
    """Draws videos on this machine.

    ``spec``: ``video:drawn:storyboard`` or ``video:drawn:faithful``.

    Raises ConfigError: there is no renderer of that name. Raises MissingRequirement: the extra ``video`` is
    not installed.
    """

    def __init__(self, spec: ModelSpec, _options: ModelOptions, _redactor: Redactor) -> None:
        self._name = checked_name(spec)
        if find_spec("av") is None:
            raise MissingRequirement(
                f"model {spec}", what="the library PyAV is not installed", fix="pip install 'fabula[video]'"
            )

    async def complete(self, request: ChatRequest) -> Reply:
        return drawn_reply(await asyncio.to_thread(self._make, PictureRequest.of(request)))

    async def close(self) -> None:
        """Close nothing."""

    def _make(self, asked: PictureRequest) -> Generated:
        scene, origin = scene_to_draw(asked)
        width, height = (side - side % 2 for side in size_of(asked, scene))  # the encoder takes even sides
        seconds = SECONDS if asked.seconds is None else asked.seconds
        if not 0 < seconds <= MOST_SECONDS:
            raise CallFault("bad_request", f"a video has up to {MOST_SECONDS:g} seconds, not {seconds:g}")
        count = max(2, round(seconds * FRAMES_A_SECOND))
        forgets = forgetting(self._name, asked)
        drawings = [
            draw_scene(scene, (width, height), forgets, shift=PAN * number / FRAMES_A_SECOND)
            for number in range(count)
        ]
        file = GeneratedFile(encode_mp4([drawing.canvas.image for drawing in drawings]), "video/mp4")
        return made_of(drawings[0], file, asked, self._name, origin)


def encode_mp4(frames: "Sequence[Image]") -> bytes:
    """Return frames of even width and height as an MP4 file, 8 a second."""
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=FRAMES_A_SECOND)
        stream.width, stream.height = frames[0].size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, FRAMES_A_SECOND)
        stream.codec_context.bit_rate = _BIT_RATE
        stream.codec_context.thread_count = 1
        for number, image in enumerate(frames):
            frame = av.VideoFrame.from_image(image)  # type: ignore[no-untyped-call]
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()

"""What a drawn picture shows, read from its pixels alone, after it was resized and encoded again."""

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ....errors import MissingRequirement
from ...chat import CallFault, ChatRequest, Reply
from ...keys import Redactor
from ...options import ModelOptions
from ...spec import ModelSpec
from ..request import Generated, GeneratedFile, PictureRequest
from .canvas import COLOURS, SIDE, code_of, read_cells
from .drawing import draw_scene
from .images import checked_name, drawn_reply, forgetting, made_of, scene_to_draw, size_of
from .scene import CELL, EMBLEM, Box, Frame, MarkKind, Slot, all_slots, in_pixels

if TYPE_CHECKING:
    from PIL.Image import Image

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

    Args:
        spec: ``video:drawn:storyboard`` or ``video:drawn:faithful``.

    Raises:
        ConfigError: there is no renderer of that name.
        MissingRequirement: the extra ``video`` is not installed.
    """

    def __init__(self, spec: ModelSpec, _options: ModelOptions, _redactor: Redactor) -> None:
        self._name = checked_name(spec)
        if find_spec("av") is None:
            raise MissingRequirement(
                f"model {spec}", what="the library PyAV is not installed", fix="pip install 'fabula[video]'"
            )

    async def complete(self, request: ChatRequest) -> Reply:
        """Draw one video."""
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

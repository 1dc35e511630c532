"""``video:drawn:NAME``: a short video of a drawn scene; the hills pass slowly behind the figures.

Needs the extra ``video``. Its pixels are the same everywhere; the bytes are those of the installed encoder.
"""

import asyncio
import io
from collections.abc import Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ....errors import MissingRequirement
from ...chat import CallFault, ChatRequest, Reply
from ...keys import Redactor
from ...options import ModelOptions
from ...spec import ModelSpec
from ..request import Generated, GeneratedFile, PictureRequest
from .drawing import draw_scene
from .images import checked_name, drawn_reply, forgetting, made_of, scene_to_draw, size_of

if TYPE_CHECKING:
    from PIL.Image import Image

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

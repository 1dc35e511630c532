"""Adapter for pipelines of diffusers that make videos on this machine: Wan, LTX, CogVideoX and others.

As :mod:`.diffusers_images`; frames become an MP4 file. A first frame goes to a pipeline's ``image``,
references to its ``reference_images``: a picture that shows what somebody looks like is no frame to begin
with, unless the settings say so.
"""

import inspect
import io
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ..chat import CallFault
from .diffusers_images import DiffusersImages, PipelineOptions, opened_picture, plain_arguments
from .request import Choice, GeneratedFile, PictureRequest

_CRF = "12"
"""Quality of H.264: differences from the frames that the eye does not see."""
_LENGTHS = ("vae_scale_factor_temporal", "vae_temporal_compression_ratio")


class VideoOptions(PipelineOptions):
    """The members of ``extra`` that say how a pipeline is loaded and its frames are shown."""

    fps: int = Field(default=16, ge=1, le=120, description="Frames a second, of the model and of the file.")
    begin_with: Literal["first_frame", "reference"] = Field(
        default="first_frame",
        description="reference: where no first frame is given, the last reference picture is one.",
    )


class DiffusersVideos(DiffusersImages):
    """A pipeline that makes videos; see :class:`DiffusersImages`.

    The duration becomes frames by ``fps``, as many as the pipeline can make, unless ``extra`` has
    ``num_frames``.
    """

    options_type: ClassVar[type[PipelineOptions]] = VideoOptions

    def _arguments(
        self,
        pipe: Any,  # noqa: ANN401 - a pipeline
        picture: PictureRequest,
        more: Mapping[str, Any],
        wanted: PipelineOptions,
    ) -> tuple[dict[str, Any], tuple[Choice, ...]]:
        assert isinstance(wanted, VideoOptions)
        arguments, taken = plain_arguments(pipe, picture, more)
        parameters = inspect.signature(pipe.__call__).parameters
        arguments |= {name: wanted.fps for name in ("frame_rate", "fps") if name in parameters}
        if "output_type" in parameters:
            arguments.setdefault("output_type", "np")
        if picture.seconds is not None and "num_frames" in parameters:
            arguments.setdefault("num_frames", frames_of(pipe, picture.seconds * wanted.fps))
            taken = (*taken, "seconds")
        pictures = [opened_picture(reference.data) for reference in picture.references]
        if pictures and "reference_images" in parameters:
            arguments["reference_images"] = pictures
            taken = (*taken, "references")
        if "image" in parameters:
            first = None if picture.first_frame is None else opened_picture(picture.first_frame.data)
            if first is not None:
                taken = (*taken, "first_frame")
            elif wanted.begin_with == "reference" and pictures:
                first, taken = pictures[-1], (*taken, "references")
            if first is not None:
                arguments["image"] = first
            elif "ImageToVideo" in type(pipe).__name__:
                raise CallFault(
                    "unsupported",
                    f"{type(pipe).__name__} begins with a picture, and none is given; take a pipeline that"
                    ' makes videos of text, or set extra.begin_with to "reference"',
                )
        return arguments, tuple(dict.fromkeys(taken))

    def _file(self, made: Any, wanted: PipelineOptions) -> tuple[GeneratedFile, tuple[int, int]]:  # noqa: ANN401 - a pipeline's output
        assert isinstance(wanted, VideoOptions)
        frames = _pixels(made.frames[0])
        return GeneratedFile(mp4_of(frames, wanted.fps), "video/mp4"), (frames.shape[2], frames.shape[1])


def frames_of(pipe: Any, wanted: float) -> int:  # noqa: ANN401 - a pipeline
    """Return the number of frames nearest to ``wanted`` that a pipeline makes: a multiple and one more."""
    step = next((int(getattr(pipe, name)) for name in _LENGTHS if hasattr(pipe, name)), 1)
    return max(1, round((wanted - 1) / step)) * step + 1


def _pixels(frames: Any) -> "np.ndarray[Any, np.dtype[np.uint8]]":  # noqa: ANN401 - a pipeline's output
    """Return frames, shape (frames, height, width, 3), from what a pipeline gives: numbers or pictures."""
    rows = np.stack([np.asarray(frame) for frame in frames])
    if rows.dtype != np.uint8:
        if not np.isfinite(rows).all():
            raise CallFault("bad_request", "the pipeline made frames that are no numbers; try another dtype")
        rows = np.rint(np.clip(rows, 0, 1) * 255).astype(np.uint8)
    return rows[:, : rows.shape[1] // 2 * 2, : rows.shape[2] // 2 * 2]  # H.264 needs even sides


def mp4_of(frames: "np.ndarray[Any, np.dtype[np.uint8]]", fps: int) -> bytes:
    """Return frames, shape (frames, height, width, 3), as an MP4 file."""
    import av

    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(fps), options={"crf": _CRF})
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
        for pixels in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return out.getvalue()

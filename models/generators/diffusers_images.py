"""Adapter for pipelines of diffusers that make pictures on this machine: SDXL, FLUX and what else it loads.

A pipeline is loaded once, and makes one picture at a time in a thread of its own. Weights are never
downloaded here, nor read from pickles: what is missing is named, with the command that fetches it.
"""

import asyncio
import inspect
import io
import secrets
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationError

from ...errors import MissingRequirement
from ...schemas.plain_files import reason_of
from ...schemas.values import Own
from ..chat import CallFault, ChatRequest, Reply, Usage
from ..faults import one_line
from ..keys import Redactor
from ..options import ModelOptions
from ..spec import ModelSpec
from ..vision.weights import quiet_libraries
from .request import Choice, Generated, GeneratedFile, PictureRequest, extras, not_taken

if TYPE_CHECKING:
    from PIL.Image import Image

_PARAMETERS: tuple[tuple[str, Choice, str], ...] = (
    ("width", "size", "width"),
    ("height", "size", "height"),
    ("steps", "steps", "num_inference_steps"),
    ("negative", "negative", "negative_prompt"),
)
"""Attribute of a request, what is chosen with it, and the parameter of a pipeline's call."""


class PipelineOptions(Own):
    """The members of ``extra`` that say how a pipeline is loaded; all others go to its call."""

    revision: str | None = Field(default=None, description="Branch, tag or commit on the Hub; pin a commit.")
    variant: str | None = Field(default=None, description="Which files of weights, such as fp16.")
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    device: str = Field(default="auto", description="cpu, cuda, cuda:1, mps; auto takes the fastest here.")
    offload: bool = Field(default=False, description="Whether parts wait in main memory (needs accelerate).")


class DiffusersImages:
    """A pipeline that ``DiffusionPipeline.from_pretrained`` loads: a repository of the Hub, or a folder.

    The seed makes a generator on the processor, so that the first noise is the same on every device. Where no
    seed is chosen, one is drawn and told. Width, height, steps, negative prompt and references are taken
    where the pipeline's call has a parameter for them and heeds it.

    ``spec``: its name is a repository such as ``stabilityai/stable-diffusion-xl-base-1.0``, or a path.
    ``redactor``: takes secrets out of error texts.

    Raises MissingRequirement: diffusers or torch is not installed.
    """

    options_type: ClassVar[type[PipelineOptions]] = PipelineOptions

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:  # noqa: ARG002
        check_library(spec)
        self._spec = spec
        self._redactor = redactor
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="diffusers")
        self._pipe: Any = None
        self._loaded_with: PipelineOptions | None = None

    async def complete(self, request: ChatRequest) -> Reply:
        picture = PictureRequest.of(request)
        given_up = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._make, picture, extras(request), given_up)
        except asyncio.CancelledError:
            given_up.set()  # the thread stops after the step that it is at
            raise

    async def close(self) -> None:
        """Let the pipeline go; what is being made is given up."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._pipe = None

    def _make(self, picture: PictureRequest, more: dict[str, Any], given_up: threading.Event) -> Reply:
        if given_up.is_set():
            raise CallFault("timeout", "nobody waits for the picture any more")
        wanted = self._wanted(more)
        pipe = self._loaded(wanted)
        for name in self.options_type.model_fields:
            more.pop(name, None)
        seed = secrets.randbelow(2**31) if picture.seed is None else picture.seed
        arguments, taken = self._arguments(pipe, picture, more, wanted)
        try:
            made = self._run(pipe, seed, arguments, given_up)
            detail = _cut_off(pipe, picture.prompt)
        except CallFault:
            raise
        except Exception as error:  # noqa: BLE001 - adapter boundary
            raise self._fault("bad_request", f"the pipeline failed: {error!r}") from None
        model = f"{self._spec.name}@{_commit(pipe)}" if _commit(pipe) else self._spec.name
        if any(getattr(made, "nsfw_content_detected", None) or ()):
            return Reply("blocked", "", "the pipeline's safety checker", None, model, Usage())
        file, (width, height) = self._file(made, wanted)
        generated = Generated(
            file,
            seed=seed,
            width=width,
            height=height,
            steps=getattr(pipe, "num_timesteps", None),
            unsupported=not_taken(picture, taken),
        )
        return Reply("ok", generated.packed(), detail, None, model, Usage())

    def _arguments(
        self,
        pipe: Any,  # noqa: ANN401 - a pipeline
        picture: PictureRequest,
        more: Mapping[str, Any],
        _wanted: PipelineOptions,
    ) -> tuple[dict[str, Any], tuple[Choice, ...]]:
        arguments, taken = plain_arguments(pipe, picture, more)
        if "image" in inspect.signature(pipe.__call__).parameters and picture.references:
            pictures = [opened_picture(reference.data) for reference in picture.references]
            arguments["image"] = pictures[0] if len(pictures) == 1 else pictures
            taken = (*taken, "references")
        return arguments, taken

    def _file(self, made: Any, _wanted: PipelineOptions) -> tuple[GeneratedFile, tuple[int, int]]:  # noqa: ANN401 - a pipeline's output
        """Return the file of what was made, with its width and height."""
        image: Image = made.images[0]
        data = io.BytesIO()
        image.save(data, "PNG")
        return GeneratedFile(data.getvalue(), "image/png"), image.size

    def _run(self, pipe: Any, seed: int, arguments: Mapping[str, Any], given_up: threading.Event) -> Any:  # noqa: ANN401 - a pipeline's output
        import torch

        def watch(_pipe: object, _step: int, _time: object, kept: dict[str, Any]) -> dict[str, Any]:
            if given_up.is_set():
                raise CallFault("timeout", "nobody waits for the picture any more")
            return kept

        takes = inspect.signature(pipe.__call__).parameters
        watched = {"callback_on_step_end": watch} if "callback_on_step_end" in takes else {}
        with torch.no_grad(), quiet_libraries():
            return pipe(generator=torch.Generator("cpu").manual_seed(seed), **watched, **arguments)

    def _wanted(self, more: Mapping[str, Any]) -> PipelineOptions:
        given = {name: more[name] for name in self.options_type.model_fields if name in more}
        try:
            return self.options_type.model_validate(given)
        except ValidationError as error:
            raise self._fault("unsupported", f"extra.{reason_of(error)}") from None

    def _loaded(self, wanted: PipelineOptions) -> Any:  # noqa: ANN401 - a pipeline
        """Return the pipeline, loaded once."""
        if self._pipe is None or wanted != self._loaded_with:
            self._pipe, self._loaded_with = self._load(wanted), wanted
        return self._pipe

    def _load(self, wanted: PipelineOptions) -> Any:  # noqa: ANN401 - a pipeline
        import torch
        import transformers  # noqa: F401 - so that it is quiet, too
        from diffusers import DiffusionPipeline

        where = {
            name: value
            for name, value in (("revision", wanted.revision), ("variant", wanted.variant))
            if value
        }
        dtype = getattr(torch, wanted.dtype)
        try:
            with quiet_libraries():
                pipe = DiffusionPipeline.from_pretrained(
                    self._spec.name,
                    use_safetensors=True,
                    dtype=dtype,
                    local_files_only=True,
                    **where,
                )
        except Exception as error:  # noqa: BLE001 - adapter boundary
            raise self._fault("no_such_model", f"{self._fix(wanted)} ({error})") from None
        if pipe.dtype != dtype:
            raise self._fault("unsupported", f"extra.dtype: the pipeline was loaded as {pipe.dtype}")
        pipe.set_progress_bar_config(disable=True)
        try:
            if wanted.offload:
                pipe.enable_model_cpu_offload()
                return pipe
            return pipe.to(_device(wanted.device))
        except Exception as error:  # noqa: BLE001 - adapter boundary
            raise self._fault("unsupported", f"extra.device: {error}") from None

    def _fix(self, wanted: PipelineOptions) -> str:
        name = self._spec.name
        if Path(name).exists():
            return f"{name} is no pipeline that diffusers can load"
        revision = f" --revision {wanted.revision}" if wanted.revision else ""
        return f"the weights of {name} are not here; fetch them: hf download {name}{revision}"

    def _fault(self, kind: Literal["bad_request", "unsupported", "no_such_model"], text: str) -> CallFault:
        return CallFault(kind, one_line(self._redactor.redact(text)))


def check_library(spec: ModelSpec) -> None:
    """Check that diffusers is installed; imports nothing."""
    if find_spec("diffusers") is None or find_spec("torch") is None:
        raise MissingRequirement(
            f"model {spec}", what="the library diffusers is not installed",
            fix="pip install 'fabula[generate]'",
        )  # fmt: skip


def plain_arguments(
    pipe: Any,  # noqa: ANN401 - a pipeline
    picture: PictureRequest,
    more: Mapping[str, Any],
) -> tuple[dict[str, Any], tuple[Choice, ...]]:
    """Return what the call is given besides pictures, and which choices it takes."""
    parameters = inspect.signature(pipe.__call__).parameters
    unknown = sorted(set(more) - set(parameters))
    if unknown:
        raise CallFault(
            "unsupported", f"extra.{unknown[0]}: {type(pipe).__name__} takes no such parameter; set others"
        )
    arguments: dict[str, Any] = {"prompt": picture.prompt, **more}
    taken: list[Choice] = ["seed"]
    for attribute, choice, name in _PARAMETERS:
        value = getattr(picture, attribute)
        if name not in parameters or (choice == "negative" and not _heeds_negative(parameters, more)):
            continue
        if value is not None:
            arguments[name] = value
        taken.append(choice)
    return arguments, tuple(dict.fromkeys(taken))


def _heeds_negative(parameters: Mapping[str, inspect.Parameter], more: Mapping[str, Any]) -> bool:
    """Return whether a pipeline heeds a negative prompt: only where guidance is at work.

    FLUX takes one and passes it over unless ``true_cfg_scale`` is above 1; distilled models are asked with a
    ``guidance_scale`` of 0 or 1.
    """
    for name in ("true_cfg_scale", "guidance_scale"):
        if name in parameters:
            scale = more.get(name, parameters[name].default)
            return isinstance(scale, int | float) and scale > 1
    return True


def opened_picture(data: bytes) -> "Image":
    from PIL import Image

    return Image.open(io.BytesIO(data)).convert("RGB")


def _cut_off(pipe: Any, prompt: str) -> str | None:  # noqa: ANN401 - a pipeline
    """Return what is to be said of a prompt that is longer than any of the pipeline's text encoders reads."""
    most, counted = 0, 0
    for name in ("tokenizer", "tokenizer_2", "tokenizer_3"):
        tokenizer = getattr(pipe, name, None)
        longest = getattr(tokenizer, "model_max_length", 0)
        if tokenizer is not None and longest > most:
            most, counted = longest, len(tokenizer(prompt, verbose=False)["input_ids"])
    if counted <= most:
        return None
    return f"the prompt has {counted} tokens, and the text encoder reads the first {most}"


def _commit(pipe: Any) -> str | None:  # noqa: ANN401 - a pipeline
    """Return the commit of the Hub that the files of a pipeline are from, which their folder is named by."""
    path = Path(str(getattr(pipe.config, "_name_or_path", "")))
    return path.name if path.parent.name == "snapshots" else None


def _device(name: str) -> str:
    import torch

    if name != "auto":
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


# -- Adapter for pipelines of diffusers that make videos on this machine: Wan, LTX, CogVideoX and others
#
# As :mod:`.diffusers_images`; frames become an MP4 file. A first frame goes to a pipeline's ``image``,
# references to its ``reference_images``: a picture that shows what somebody looks like is no frame to begin
# with, unless the settings say so.

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

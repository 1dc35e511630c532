"""What all networks share, in torch and in ONNX: where they run, what goes in and what comes back.

DINOv2 is nothing but that, so it stands here: the class token of ViT-L/14, for bodies and for whole frames.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...errors import ConfigError, needing
from .store import Card, Rows, identity_of
from .weights import Place, Source, library, load_pretrained, missing, needed, number_type, revision_of, told

if TYPE_CHECKING:
    from PIL.Image import Image

Fit = Literal["shorter side, centre crop", "stretched"]
Resampling = Literal["bicubic", "bilinear"]

CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5, 0.5, 0.5)
NONE_MEAN, NONE_STD = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Preparation:
    """How pictures are prepared."""

    resize: int  # pixels of the shorter side, or of both sides where pictures are stretched
    crop: int  # pixels a side of the square cut from the middle; ignored where pictures are stretched
    fit: Fit = "shorter side, centre crop"  # how a picture is brought to its size
    resampling: Resampling = "bicubic"  # the filter
    mean: tuple[float, float, float] = CLIP_MEAN  # subtracted from each channel in [0, 1]
    std: tuple[float, float, float] = CLIP_STD  # what the channels are divided by after that

    @property
    def side(self) -> int:
        """Pixels a side of what the network sees."""
        return self.resize if self.fit == "stretched" else self.crop

    def text(self) -> str:
        """Return the preparation in words, for a card."""
        how = (
            f"stretched to {self.side} x {self.side}"
            if self.fit == "stretched"
            else f"shorter side {self.resize}, centre crop {self.crop}"
        )
        return f"RGB, {how}, {self.resampling}, mean {self.mean}, std {self.std}"

    def pixels(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, 3, side, side), float32, normalised."""
        return np.stack([self._one(image) for image in images])

    def _one(self, image: "Image") -> Rows:
        from PIL import Image as Pillow

        plain = image if image.mode == "RGB" else image.convert("RGB")
        kind = {"bicubic": Pillow.Resampling.BICUBIC, "bilinear": Pillow.Resampling.BILINEAR}[self.resampling]
        if self.fit == "stretched":
            fitted = plain.resize((self.resize, self.resize), kind)
        else:
            scale = self.resize / min(plain.size)
            size = tuple(max(self.resize, int(length * scale + 0.5)) for length in plain.size)
            left, top = ((length - self.crop) // 2 for length in size)
            fitted = plain.resize((size[0], size[1]), kind)
            fitted = fitted.crop((left, top, left + self.crop, top + self.crop))
        values = np.asarray(fitted, dtype=np.float32) / np.float32(255)
        mean, std = np.array(self.mean, dtype=np.float32), np.array(self.std, dtype=np.float32)
        return np.ascontiguousarray(((values - mean) / std).transpose(2, 0, 1))


@dataclass(frozen=True)
class Network:
    """A network in evaluation mode with what is around it."""

    card: Card  # what it is
    place: Place  # where it runs
    # from prepared pixels, shape (images, 3, side, side), to a tensor of shape (images, values)
    forward: Callable[[Any], Any]
    preparation: Preparation  # how pictures are prepared

    @property
    def identity(self) -> str:
        return identity_of(self.card, self.place.dtype, self.place.device)

    def values(self, images: "Sequence[Image]") -> Rows:
        """Return what the network makes of pictures, shape (images, values), float32."""
        torch = library()
        with torch.inference_mode():
            pixels = torch.from_numpy(self.preparation.pixels(images))
            values = self.forward(pixels.to(self.place.device, number_type(self.place.dtype)))
            return np.asarray(values.float().cpu().numpy(), dtype=np.float32)


class _Named:
    """A network under its own name."""

    def __init__(self, network: Network) -> None:
        self._network = network

    @property
    def card(self) -> Card:
        return self._network.card

    @property
    def identity(self) -> str:
        return self._network.identity


class NetworkEncoder(_Named):
    """An encoder whose network gives the vector before it is made a unit vector."""

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, dimensions)."""
        return unit_rows(self._network.values(images))


class NetworkPredictor(_Named):
    """A predictor whose network gives the values themselves."""

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, values)."""
        return self._network.values(images)


def loaded_card(card: Card, source: Source, local: Path | None) -> Card:
    """Return the card of what was loaded: with weights of the user's own, their hash is the revision."""
    return replace(card, revision=revision_of(source, local))


def settled(module: Any, place: Place) -> Any:  # noqa: ANN401 - torch's own
    """Return a module in evaluation mode, where and in the numbers it is to run."""
    return module.eval().requires_grad_(False).to(place.device, number_type(place.dtype))


def unit_rows(rows: Rows) -> Rows:
    """Return rows with length 1; a row of zeros becomes ``nan``."""
    exact = rows.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray(scaled, dtype=np.float32)


DINOV2_SOURCE = Source(
    "facebook/dinov2-large", "47b73eefe95e8d44ec3623f8890bd894b6ea2d6c", size=1_218_000_000
)
DINOV2_PREPARATION = Preparation(256, 224, mean=IMAGENET_MEAN, std=IMAGENET_STD)
DINOV2_CARD = Card(
    "dinov2-l-14",
    DINOV2_SOURCE.repo,
    DINOV2_SOURCE.revision,
    DINOV2_PREPARATION.text(),
    1024,
    1e-4,
    "Apache-2.0",
)


def load_dinov2(place: Place, local: Path | None = None) -> NetworkEncoder:
    """Return DINOv2; its vector is the class token after the last layer norm.

    ``local``: folder with the weights; None for the pinned ones of the Hub.
    """
    return _dinov2(place, local, DINOV2_SOURCE, DINOV2_CARD)


def _dinov2(run_on: Place, local: Path | None, source: Source, card: Card) -> NetworkEncoder:
    with needing(missing("transformers")):
        from transformers import Dinov2Model
    module = settled(load_pretrained(Dinov2Model, source, local), run_on.checked())

    def forward(pixels: Any) -> Any:  # noqa: ANN401 - torch's own
        return module(pixel_values=pixels).pooler_output

    loaded = loaded_card(card, source, local)
    return NetworkEncoder(Network(loaded, run_on, forward, DINOV2_PREPARATION))


DINOV2_BASE_SOURCE = Source(
    "facebook/dinov2-base", "f9e44c814b77203eaa57a6bdbbd535f21ede1415", size=346_000_000
)
DINOV2_BASE_CARD = replace(
    DINOV2_CARD, name="dinov2-base", source=DINOV2_BASE_SOURCE.repo, revision=DINOV2_BASE_SOURCE.revision,
    dimensions=768,
)  # fmt: skip


def load_dinov2_base(run_on: Place, local: Path | None = None) -> NetworkEncoder:
    """Return DINOv2 ViT-B/14, prepared and read as :func:`load_dinov2` does.

    ``local``: folder with the weights; None for the pinned ones of the Hub.
    """
    return _dinov2(run_on, local, DINOV2_BASE_SOURCE, DINOV2_BASE_CARD)


_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


@dataclass(frozen=True)
class OnnxNetwork:
    """A network with one input, shape (images, 3, height, width), and one output, shape (images, values)."""

    session: Any  # of onnxruntime
    source: Source  # where its file comes from

    def check_input(self, side: int) -> None:
        """Check that pictures of so many pixels a side can go in, one or any number at once."""
        shape = self.session.get_inputs()[0].shape
        fixed = [(given, wanted) for given, wanted in zip(shape, (1, 3, side, side), strict=False)]
        if len(shape) != 4 or any(isinstance(given, int) and given != wanted for given, wanted in fixed):
            text = f"a network for pictures of shape {shape} instead of (n, 3, {side}, {side})"
            raise needed(self.source, text)

    def dimensions(self, side: int) -> int:
        """Return how long the vectors are that come out."""
        blank = np.zeros((1, 3, side, side), dtype=np.float32)
        made = told(self.source, None, lambda: self.values(blank))
        if made.ndim != 2 or made.shape[0] != 1 or made.shape[1] < 2:
            raise needed(self.source, f"a network that gives shape {made.shape} instead of vectors")
        return int(made.shape[1])

    def values(self, pixels: Rows) -> Rows:
        """Return what the network makes of prepared pictures; one by one where it takes no more at once."""
        given, made = self.session.get_inputs()[0], self.session.get_outputs()[0].name
        one_by_one = isinstance(given.shape[0], int)
        parts: Sequence[Rows] = np.split(pixels, len(pixels)) if one_by_one else [pixels]
        rows = [self.session.run([made], {given.name: np.ascontiguousarray(part)})[0] for part in parts]
        return np.asarray(np.concatenate(rows), dtype=np.float32)


def open_session(path: Path, source: Source, place: Place) -> Any:  # noqa: ANN401 - the library's own
    """Return a session of onnxruntime on exactly the device asked for."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when it is imported
    with needing(missing("onnxruntime")):
        import onnxruntime
    if place.dtype != "float32" or place.device not in _PROVIDERS:
        raise ConfigError(
            "device", expected=f"{' or '.join(_PROVIDERS)} in float32 for a network in an ONNX file",
            found=f"{place.device} in {place.dtype}", fix="set device and dtype of this model",
        )  # fmt: skip
    wanted = _PROVIDERS[place.device]
    if wanted not in onnxruntime.get_available_providers():
        raise _no_device(place)
    if place.device == "cuda" and hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()  # finds the CUDA libraries that torch brought
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = told(source, path, lambda: onnxruntime.InferenceSession(str(path), options, providers=[wanted]))
    # onnxruntime goes on with the processor, with a line in its log, where the device cannot be used.
    if wanted not in session.get_providers():
        raise _no_device(place)
    return session


def _no_device(place: Place) -> ConfigError:
    return ConfigError(
        "device", what=f"onnxruntime cannot use {place.device} here",
        fix="set the device to cpu, or install onnxruntime-gpu in the place of onnxruntime",
    )  # fmt: skip


# -- Pictures as torchvision resizes tensors: without antialiasing, which its own resizing of pictures has


@dataclass(frozen=True, slots=True)
class TensorPreparation(Preparation):
    """How VBench prepares frames: as tensors from 0 to 255, whose values are not rounded after resizing.

    With ``crop`` 0 nothing is cut off, so that pictures of other proportions have another shape.
    """

    def text(self) -> str:
        cut = f"centre crop {self.crop}" if self.crop else "whole"
        return (
            f"RGB, shorter side {self.resize}, {cut}, {self.resampling} without antialiasing,"
            f" mean {self.mean}, std {self.std}"
        )

    def _one(self, image: "Image") -> Rows:
        torch = library()
        height, width = image.height, image.width
        shorter = min(height, width)
        size = tuple(int(self.resize * side / shorter) for side in (height, width))
        fitted = resized(torch.from_numpy(pixels_of(image))[None], size, self.resampling)[0]
        if self.crop:
            top, left = (round((side - self.crop) / 2) for side in size)
            fitted = fitted[:, top : top + self.crop, left : left + self.crop]
        mean, std = (torch.tensor(values)[:, None, None] for values in (self.mean, self.std))
        return np.asarray(((fitted / 255 - mean) / std).numpy(), dtype=np.float32)


def pixels_of(image: "Image") -> Rows:
    """Return a picture as float32, shape (3, height, width), 0 to 255."""
    plain = image if image.mode == "RGB" else image.convert("RGB")
    return np.ascontiguousarray(np.asarray(plain, dtype=np.float32).transpose(2, 0, 1))


def resized(pixels: Any, size: tuple[int, ...], resampling: str) -> Any:  # noqa: ANN401 - torch's own
    """Return pictures, shape (n, 3, height, width), at another height and width, without antialiasing."""
    if tuple(pixels.shape[-2:]) == size:
        return pixels
    how = {"size": size, "mode": resampling, "align_corners": False, "antialias": False}
    return library().nn.functional.interpolate(pixels, **how)


def by_shape(arrays: Sequence[Rows], make: Callable[[Rows], Rows]) -> Rows:
    """Return the rows that ``make`` gives for arrays, which are stacked where they have one shape."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for number, array in enumerate(arrays):
        alike.setdefault(array.shape, []).append(number)
    rows: dict[int, Rows] = {}
    for some in alike.values():
        rows |= zip(some, make(np.stack([arrays[number] for number in some])), strict=True)
    return np.stack([rows[number] for number in range(len(arrays))])

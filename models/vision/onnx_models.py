"""Networks in ONNX files: where they run, said out loud, and what goes in and comes out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ConfigError
from .devices import Place, missing
from .types import Rows
from .weights import Source, needed, told

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


@dataclass(frozen=True)
class OnnxNetwork:
    """A network with one input, shape (images, 3, height, width), and one output, shape (images, values).

    Attributes:
        session: of onnxruntime.
        source: where its file comes from.
    """

    session: Any
    source: Source

    def check_input(self, side: int) -> None:
        """Check that pictures of so many pixels a side can go in, one or any number at once.

        Raises:
            MissingRequirement: the network is made for others.
        """
        shape = self.session.get_inputs()[0].shape
        fixed = [(given, wanted) for given, wanted in zip(shape, (1, 3, side, side), strict=False)]
        if len(shape) != 4 or any(isinstance(given, int) and given != wanted for given, wanted in fixed):
            text = f"a network for pictures of shape {shape} instead of (n, 3, {side}, {side})"
            raise needed(self.source, text)

    def dimensions(self, side: int) -> int:
        """Return how long the vectors are that come out.

        Raises:
            MissingRequirement: what comes out are no vectors.
        """
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
    """Return a session of onnxruntime on exactly the device asked for.

    Raises:
        ConfigError: these networks do not run there, or not in such numbers, or there is no such device.
        MissingRequirement: the library is missing, or the file is no network.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise missing("onnxruntime") from error
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

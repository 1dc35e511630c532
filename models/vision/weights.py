"""Where a model runs and what it is loaded from: devices, and weights that are pinned and checked.

Weights lie in the folder of weights, or are fetched on first use; plain files are checked by their hash.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...errors import ConfigError, MissingRequirement
from ...schemas.canonical import digest, sha256_file
from ..faults import one_line
from .download import fetch_address, quiet_libraries, torch_copy
from .stored import PRETRAINED, Source, pinned, stored, unconfirmed
from .types import Device, Dtype

DEVICES: tuple[Device, ...] = ("cpu", "cuda", "mps")
DTYPES: tuple[Dtype, ...] = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model runs."""

    device: Device = "cpu"  # the class of device; part of what its results depend on
    dtype: Dtype = "float32"  # of weights and arithmetic

    def checked(self) -> "Place":
        """Return the place, if it is there."""
        if self.dtype not in DTYPES or self.device not in DEVICES:
            raise ConfigError(
                "device", expected=f"one of {', '.join(DEVICES)}, in one of {', '.join(DTYPES)}",
                found=f"{self.device} in {self.dtype}", fix="correct the setting",
            )  # fmt: skip
        there = available()
        if self.device not in there:
            raise ConfigError(
                "device", what=f"this machine has no {self.device}; it has: {', '.join(there)}",
                fix=f"set the device to {there[0]}, or use a machine that has one",
            )  # fmt: skip
        if self.device == "cpu" and self.dtype == "float16":
            raise ConfigError(
                "dtype", expected="float32 or bfloat16 on a CPU", found="float16", fix="set dtype to float32"
            )
        return self


def available() -> tuple[Device, ...]:
    """Return the classes of devices that this machine has, the fastest first."""
    torch = library()
    devices: list[Device] = []
    if torch.cuda.is_available():
        devices.append("cuda")
    if torch.backends.mps.is_available():
        devices.append("mps")
    return (*devices, "cpu")


def choose(device: str = "auto", dtype: Dtype = "float32") -> Place:
    """Return where to run: ``auto`` is the fastest device of this machine, named from then on."""
    if device == "auto":
        return Place(available()[0], dtype).checked()
    return Place(device, dtype).checked()  # type: ignore[arg-type]


def library() -> Any:  # noqa: ANN401 - a module
    """Return torch."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise missing("torch") from error
    except Exception as error:  # its binary parts fail in many ways on a machine that they do not fit
        raise MissingRequirement(
            "the library torch", what=f"torch is installed and cannot be loaded ({one_line(str(error))})",
            fix='install it again: pip install --force-reinstall "fabula[metrics]"',
        ) from error  # fmt: skip
    return torch


_EXTRAS = {"pyiqa": "musiq"}
"""Library -> the extra that it comes with, where that is not ``metrics``."""


def missing(name: str) -> MissingRequirement:
    """Return the error for a library that is not installed, with the extra that it comes with."""
    return MissingRequirement(
        f"the library {name}", what="it is not installed",
        fix=f'pip install "fabula[{_EXTRAS.get(name, "metrics")}]"',
    )  # fmt: skip


def number_type(dtype: Dtype) -> Any:  # noqa: ANN401 - torch's own type
    """Return torch's name of a number type."""
    return getattr(library(), dtype)


PATIENCE = 5.0
"""Seconds that the Hub has for its first answer."""
BELIEVED = 60.0
"""Seconds for which what was found out about the Hub is believed."""

_asked: dict[str, tuple[float, str | None]] = {}


def hub_file(repo: str, file: str, revision: str | None = None, *, pinned: bool = True) -> Path:
    """Return a file of the Hub.

    ``revision``: a commit; None for the newest one.
    """
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError as error:
        raise missing("huggingface_hub") from error
    lost = None
    if not pinned:
        lost = unreachable()
    if pinned or lost is not None:
        try:
            return Path(hf_hub_download(repo, file, revision=revision, local_files_only=True))
        except LocalEntryNotFoundError:
            lost = unreachable()
    if lost is not None:
        raise ConnectionError(f"it is not in the cache, and {lost}")
    with quiet_libraries():
        return Path(hf_hub_download(repo, file, revision=revision))


def unreachable() -> str | None:
    """Return why the Hub cannot be reached, None where it answers; asked once in a while."""
    try:
        from huggingface_hub import constants, get_session
    except ImportError as error:
        raise missing("huggingface_hub") from error
    address, now = constants.ENDPOINT, time.monotonic()
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE forbids to ask the Hub"
    if address in _asked and now - _asked[address][0] < BELIEVED:
        return _asked[address][1]
    lost: str | None = None
    try:
        get_session().head(address, timeout=PATIENCE)
    except Exception as error:  # noqa: BLE001 - adapter boundary: whatever keeps an answer away
        lost = f"the Hub at {address} cannot be reached ({type(error).__name__})"
    _asked[address] = (time.monotonic(), lost)
    return lost


T = TypeVar("T")
_WEIGHTS = (".safetensors", ".bin", ".pth", ".pt", ".onnx", ".json")


def load_pretrained(kind: Any, source: Source, local: Path | None = None, **made: Any) -> Any:  # noqa: ANN401
    """Return a model or tokenizer of transformers from a folder, or from the Hub at its pinned commit."""
    origin, how = source.repo, dict[str, Any](revision=source.revision, **made)
    local = local or stored(source)
    if local is not None:
        origin, how = str(local), dict[str, Any](local_files_only=True, **made)
    elif (lost := unreachable()) is not None:
        how["local_files_only"] = True  # the library would go on asking
        if not in_cache(source):
            raise needed(source, f"they are not in the cache, and {lost}")
    # Tensors of other parts of a checkpoint are no news; missing ones are told below.
    with quiet_libraries():
        if not hasattr(kind, "base_model_prefix"):
            return told(source, local, lambda: kind.from_pretrained(origin, **how))
        asked = {**how, "output_loading_info": True, "ignore_mismatched_sizes": True}
        model, info = told(source, local, lambda: kind.from_pretrained(origin, **asked))
    absent = sorted({*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])})
    if absent:
        where = "" if local is None else f" in {local}"
        text = f"nothing that fits {len(absent)} of its tensors, such as {absent[0]}{where}"
        raise needed(source, text)
    return model


def in_cache(source: Source) -> bool:
    """Whether a library fetched all that is needed of a source before, into its own cache."""
    if source.address:
        return torch_copy(source.file).is_file()
    from huggingface_hub import try_to_load_from_cache

    wanted = (source.file,) if source.file else PRETRAINED
    found = (try_to_load_from_cache(source.repo, name, revision=source.revision or None) for name in wanted)
    return all(isinstance(path, str) for path in found)


def fetch_file(source: Source, local: Path | None = None) -> Path:
    """Return a file with weights, checked by its hash.

    It is the user's own, or in the folder of weights or in a library's cache, or fetched now.
    """
    path = local or told(source, None, lambda: _published(source))
    if not path.is_file():
        raise needed(source, f"no file {path}")
    pin = "" if local else next((entry.sha256 for entry in pinned(source).values()), "")
    wanted = source.sha256 or (pin if path == stored(source) else "") or ("" if local else source.digits)
    if wanted and not sha256_file(path).startswith(wanted):
        raise needed(source, f"{path} with another SHA-256 than {wanted[:12]}...")
    return path


def _published(source: Source) -> Path:
    path = stored(source)
    if path is not None:
        return path
    if source.on_request:
        raise FileNotFoundError("nobody fetched them yet")
    if source.address:
        copy = torch_copy(source.file)
        if not copy.is_file():
            fetch_address(source.address, copy)
        return copy
    return hub_file(
        source.repo, source.file, source.revision or None, pinned=bool(source.revision or source.sha256)
    )


def fetch_pretrained(source: Source) -> None:
    """Fetch configuration and weights of a model of transformers, unless they are here already."""
    if stored(source) is not None:
        return
    for file in PRETRAINED:
        told(source, None, lambda file=file: hub_file(source.repo, file, source.revision))  # type: ignore[misc]


def revision_of(source: Source, local: Path | None) -> str:
    """Return what the weights are: the pinned commit, or the hash of what is loaded instead.

    Files from elsewhere, of which nobody confirmed that they are those of the commit, go by their hash.
    """
    if local is None:
        return told(source, None, lambda: unconfirmed(source)) or source.revision or source.sha256

    def read() -> str:
        if local.is_file():
            return sha256_file(local)
        files = sorted(path for path in local.rglob("*") if path.suffix in _WEIGHTS and path.is_file())
        if not files:
            raise FileNotFoundError("no weights")
        return digest([[path.relative_to(local).as_posix(), sha256_file(path)] for path in files])

    return told(source, local, read)


def load_state(source: Source, local: Path | None = None) -> Mapping[str, Any]:
    """Return the tensors of a ``.pth`` file by name; nothing in it is executed."""
    torch = library()
    path = fetch_file(source, local)
    try:
        with torch.serialization.safe_globals(_harmless()):
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # The library's own words advise to execute what is in the file.
        raise needed(source, f"{path}, which is damaged, or holds more than tensors") from error
    for inner in ("model_state_dict", "state_dict"):
        if isinstance(state, Mapping) and inner in state:
            state = state[inner]
    if not isinstance(state, Mapping):
        raise needed(source, f"{path} without tensors by name")
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def _harmless() -> list[Any]:
    """Return what checkpoints hold beside tensors: options of a training, and numbers of numpy (CSD's)."""
    import argparse

    import numpy as np
    from numpy._core import multiarray

    numbers = [type(np.dtype(name)) for name in ("float32", "float64", "int64", "bool")]
    scalar = multiarray.scalar
    return [argparse.Namespace, np.dtype, *numbers, (scalar, "numpy.core.multiarray.scalar"), scalar]


def load_strictly(module: Any, state: Mapping[str, Any], source: Source) -> None:  # noqa: ANN401 - torch's own
    """Put tensors into a module; every one must fit and none may be missing."""
    told(source, None, lambda: module.load_state_dict(dict(state), strict=True))


def told(source: Source, local: Path | None, load: Callable[[], T]) -> T:
    """Return what a loader gives, with an error that says what is needed where it fails."""
    try:
        return load()
    except MissingRequirement:
        raise
    except Exception as error:
        where = "" if local is None else f" in {local}"
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise needed(source, f"{lines[0][:300]}{where}") from error


def needed(source: Source, found: str) -> MissingRequirement:
    """Return the error for weights that are not there, or not what they should be."""
    what = f"{source.file} of {source.repo}" if source.file else source.repo
    commit = f" at {source.revision}" if source.revision else ""
    return MissingRequirement(
        f"weights of {what}", what=f"the weights{commit} are not here, or cannot be used: {found}",
        fix=f"run `fabula models fetch vision` with network access (--plan lists what to fetch elsewhere), or"
        f" fetch {what}{commit} elsewhere and name it in the settings",
    )  # fmt: skip

"""Where a model runs and what it is loaded from: devices, and weights that are pinned and checked.

Weights lie in the folder of weights, or are fetched on first use; plain files are checked by their hash.
"""

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...errors import ConfigError, MissingRequirement, needing
from ...schemas.canonical import digest, pretty_bytes, sha256_file, write_atomic
from ..faults import one_line
from .store import Device, Dtype

# -- The folder of weights: what ``fabula models fetch vision`` brought, where each file lies, and its SHA-256
#
# A file whose hash is in no table of ours yet is pinned when it comes here first: ``pins.json`` beside the
# files has its hash, and from then on another content is an error.

PINS = "pins.json"
PRETRAINED = ("config.json", "model.safetensors")
"""Files without which there is no model of transformers."""
_DIGITS = re.compile(r"-([0-9a-f]{8})\.pth$")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the weights of a model come from."""

    repo: str  # id on the Hub, or who publishes them elsewhere
    revision: str = ""  # commit on the Hub; empty for a file
    file: str = ""  # name of the file, where it is a single one
    sha256: str = ""  # of that file, where we know it; empty where the pinned commit says what it is
    address: str = ""  # of the file, where it is not on the Hub
    also: tuple[str, ...] = ()  # further files of a model of transformers, such as those of its tokenizer
    size: int = 0  # bytes of everything, as far as we know them
    made_from: "Source | None" = None  # the published file that this one is exported from
    on_request: bool = False  # whether it comes only when somebody asks for it, never on first use

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,) if self.file else (*PRETRAINED, *self.also)

    @property
    def folder(self) -> str:
        """Name of its folder in the folder of weights."""
        return re.sub(r"[^\w.-]+", "--", self.repo)

    @property
    def digits(self) -> str:
        """The file's SHA-256, or its first digits, where a table or the file's name says them."""
        named = _DIGITS.search(self.file)
        return self.sha256 or (named[1] if named else "")


@dataclass(frozen=True, slots=True)
class Pin:
    """What a file in the folder of weights was when it came there."""

    sha256: str  # of its content
    size: int  # bytes
    origin: str  # where it came from
    checked: bool  # whether a table of ours, its name, or the Hub at the pinned commit confirmed the hash


def weights_folder() -> Path:
    """Return the folder of weights, in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("fabula") / "weights"


def stored(source: Source) -> Path | None:
    """Return the file, or the folder of a model of transformers, in the folder of weights; None without."""
    folder = weights_folder() / source.folder
    if source.file:
        return folder / source.file if (folder / source.file).is_file() else None
    return folder if all((folder / name).is_file() for name in PRETRAINED) else None


def pins() -> dict[str, Pin]:
    """Return what is pinned: path in the folder of weights -> what the file was when it came."""
    path = weights_folder() / PINS
    if not path.is_file():
        return {}
    try:
        return {name: Pin(**entry) for name, entry in json.loads(path.read_text("utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: remove it, and fetch the weights again") from error


def pin(source: Source, name: str, made: Pin) -> None:
    """Note what a file is."""
    known: Mapping[str, Any] = {key: asdict(entry) for key, entry in pins().items()}
    content = {**known, f"{source.folder}/{name}": asdict(made)}
    write_atomic(weights_folder() / PINS, [pretty_bytes(content)])


def pinned(source: Source) -> dict[str, Pin]:
    known = pins()
    return {name: known[key] for name in source.files if (key := f"{source.folder}/{name}") in known}


def changed(source: Source) -> str | None:
    """Return which file in the folder of weights is not what it was when it came; None where all are."""
    for name, entry in pinned(source).items():
        path = weights_folder() / source.folder / name
        if path.is_file() and sha256_file(path) != entry.sha256:
            return f"{path} has another SHA-256 than when it was fetched ({entry.sha256[:12]}...)"
    return None


def unconfirmed(source: Source) -> str:
    """Return the hash of weights that nobody confirmed to be those of the pinned commit; empty without."""
    entries = pinned(source) if source.revision and stored(source) else {}
    if all(entry.checked for entry in entries.values()):
        return ""
    return digest([[name, entry.sha256] for name, entry in sorted(entries.items())])


# -- Files with weights that are not on the Hub: fetched in silence, and resumed where they broke off

CONNECT, SILENT = 5.0, 60.0
"""Seconds until a connection stands, and without a byte."""

_lost: dict[str, str] = {}


def fetch_address(address: str, path: Path) -> None:
    """Write the file at an address to a path; what an earlier attempt left in ``<path>.part`` is resumed.

    A host that could not be reached is not tried again in this process.
    """
    import httpx2

    host = urlsplit(address).netloc
    if host in _lost:
        raise ConnectionError(_lost[host])
    path.parent.mkdir(parents=True, exist_ok=True)
    part, note = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")
    begun = _begun(part, note, address)
    headers = {"Accept-Encoding": "identity"}
    if begun:
        headers |= {"Range": f"bytes={part.stat().st_size}-", "If-Range": begun}
    timeout = httpx2.Timeout(SILENT, connect=CONNECT)
    try:
        with httpx2.stream("GET", address, headers=headers, follow_redirects=True, timeout=timeout) as reply:
            if reply.status_code not in (200, 206):
                raise FileNotFoundError(f"{address} answers {reply.status_code}")
            resumed = reply.status_code == 206 and bool(begun)
            if not resumed:
                note.write_text(json.dumps({"address": address, "etag": reply.headers.get("etag", "")}))
            with part.open("ab" if resumed else "wb") as out:
                for chunk in reply.iter_bytes():
                    out.write(chunk)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
        _lost[host] = f"{host} cannot be reached ({type(error).__name__})"
        raise ConnectionError(_lost[host]) from error
    except httpx2.HTTPError as error:
        raise ConnectionError(f"{address} broke off ({type(error).__name__}); repeat to go on") from error
    note.unlink(missing_ok=True)
    part.replace(path)


def _begun(part: Path, note: Path, address: str) -> str:
    """Return the tag of the file that an earlier attempt began with; empty where it cannot be resumed."""
    try:
        begun = json.loads(note.read_text("utf-8"))
        etag = begun["etag"] if begun["address"] == address and part.stat().st_size else ""
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return str(etag) if not str(etag).startswith("W/") else ""


def torch_copy(name: str) -> Path:
    """Return where torch keeps a file that it fetched itself."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("TORCH_HOME", f"{cache}/torch")
    return Path(home).expanduser() / "hub" / "checkpoints" / name


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep libraries from telling what they fetch and load."""
    with ExitStack() as undone:
        for name in ("huggingface_hub", "transformers", "diffusers", "httpx", "httpx2"):
            logger = logging.getLogger(name)
            undone.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        shown = import_module("huggingface_hub.utils")
        if not shown.are_progress_bars_disabled():
            shown.disable_progress_bars()
            undone.callback(shown.enable_progress_bars)
        for library in ("transformers", "diffusers"):
            if library not in sys.modules:
                continue
            bars = import_module(f"{library}.utils.logging")
            if bars.is_progress_bar_enabled():
                bars.disable_progress_bar()
                undone.callback(bars.enable_progress_bar)
        yield


# --

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
    with needing(missing("huggingface_hub")):
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError
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
    with needing(missing("huggingface_hub")):
        from huggingface_hub import constants, get_session
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

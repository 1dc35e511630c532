"""Weights: pinned, fetched by the libraries' own loaders on first use, plain files checked by their hash.

A folder or file of the user's own goes before the Hub. Without network and without the weights in the
library's cache, the error says within seconds which file goes where.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...errors import MissingRequirement
from ...schemas.canonical import digest, sha256_file
from .devices import library
from .hub import hub_file, unreachable

T = TypeVar("T")
_PRETRAINED = ("config.json", "model.safetensors")
_WEIGHTS = (".safetensors", ".bin", ".pth", ".pt", ".onnx", ".json")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the weights of a model come from.

    Attributes:
        repo: id on the Hub, or the address of a file.
        revision: commit on the Hub; empty for a file.
        file: name of the file, where it is a single one.
        sha256: of that file, where we know it; empty where the pinned commit says what it is.
    """

    repo: str
    revision: str = ""
    file: str = ""
    sha256: str = ""


def load_pretrained(kind: Any, source: Source, local: Path | None = None) -> Any:  # noqa: ANN401 - the library's
    """Return a model or tokenizer of transformers from a local folder, or from the Hub at its pinned commit.

    Raises:
        MissingRequirement: the weights are neither there nor to be had, are damaged, or lack tensors that
            the model has: the library would make those up.
    """
    place, how = source.repo, dict[str, Any](revision=source.revision)
    if local is not None:
        place, how = str(local), dict[str, Any](local_files_only=True)
    elif unreachable() is not None:
        how["local_files_only"] = True  # the library would go on asking
    if not hasattr(kind, "base_model_prefix"):
        return told(source, local, lambda: kind.from_pretrained(place, **how))
    with _quiet():  # tensors of other parts of a checkpoint are no news; missing ones are told below
        asked = {**how, "output_loading_info": True, "ignore_mismatched_sizes": True}
        model, info = told(source, local, lambda: kind.from_pretrained(place, **asked))
    absent = sorted({*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])})
    if absent:
        where = "" if local is None else f" in {local}"
        text = f"nothing that fits {len(absent)} of its tensors, such as {absent[0]}{where}"
        raise needed(source, text)
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def fetch_file(source: Source, local: Path | None = None) -> Path:
    """Return a file with weights: the user's own, or the Hub's at its pinned commit, checked by its hash.

    Raises:
        MissingRequirement: it is neither there nor to be had, or has another content than it should.
    """
    path = local
    if path is None:
        revision, pinned = source.revision or None, bool(source.revision or source.sha256)
        path = told(source, None, lambda: hub_file(source.repo, source.file, revision, pinned=pinned))
    if not path.is_file():
        raise needed(source, f"no file {path}")
    if source.sha256 and sha256_file(path) != source.sha256:
        raise needed(source, f"{path} with another SHA-256 than {source.sha256[:12]}...")
    return path


def fetch_pretrained(source: Source) -> None:
    """Fetch configuration and weights of a model of transformers, unless they are in the library's cache.

    Raises:
        MissingRequirement: they are neither there nor to be had.
    """
    for file in _PRETRAINED:
        told(source, None, lambda file=file: hub_file(source.repo, file, source.revision))  # type: ignore[misc]


def revision_of(source: Source, local: Path | None) -> str:
    """Return what the weights are: the pinned commit, or the hash of what is loaded instead.

    Raises:
        MissingRequirement: the local file or folder cannot be read.
    """
    if local is None:
        return source.revision or source.sha256

    def read() -> str:
        if local.is_file():
            return sha256_file(local)
        files = sorted(path for path in local.rglob("*") if path.suffix in _WEIGHTS and path.is_file())
        if not files:
            raise FileNotFoundError("no weights")
        return digest([[path.relative_to(local).as_posix(), sha256_file(path)] for path in files])

    return told(source, local, read)


def load_state(source: Source, local: Path | None = None) -> Mapping[str, Any]:
    """Return the tensors of a ``.pth`` file by name; nothing in it is executed.

    Raises:
        MissingRequirement: as :func:`fetch_file`, or the file is no such file.
    """
    torch = library()
    path = fetch_file(source, local)
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # The library's own words advise to execute what is in the file.
        raise needed(source, f"{path}, which is damaged, or holds more than tensors") from error
    for inner in ("model_state_dict", "state_dict"):
        if isinstance(found, Mapping) and inner in found:
            found = found[inner]
    if not isinstance(found, Mapping):
        raise needed(source, f"{path} without tensors by name")
    return {name.removeprefix("module."): tensor for name, tensor in found.items()}


def load_strictly(module: Any, state: Mapping[str, Any], source: Source) -> None:  # noqa: ANN401 - torch's own
    """Put tensors into a module; every one must fit and none may be missing.

    Raises:
        MissingRequirement: they are those of another model.
    """
    told(source, None, lambda: module.load_state_dict(dict(state), strict=True))


def told(source: Source, local: Path | None, load: Callable[[], T]) -> T:
    """Return what a loader gives, with an error that says what is needed where it fails.

    Raises:
        MissingRequirement: it failed.
    """
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
    pinned = f" at {source.revision}" if source.revision else ""
    return MissingRequirement(
        f"weights of {what}", what=f"the weights{pinned} are not here, or cannot be used: {found}",
        fix=f"run once with network access, or fetch {what}{pinned} elsewhere and name it in the settings",
    )  # fmt: skip

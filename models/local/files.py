"""The files of an open model that runs in this process: where they lie, and how much memory they take.

Nothing is downloaded here: what is missing is named, with the command that fetches it. Pickles are not read.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from pathlib import Path

from ...errors import MissingRequirement
from ..options import ModelOptions
from ..spec import ModelSpec

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "f8_e4m3": 1, "i8": 1, "u8": 1}
"""Precision of numbers -> bytes of each."""
_STORED = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_LONGEST_HEADER = 100_000_000


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one model."""

    folder: Path  # what transformers is given
    weights: tuple[Path, ...]  # those that hold weights
    gguf: str | None = None  # the name of the one file in the folder, where that is a GGUF file

    def size(self, dtype: str) -> tuple[int, int, str]:
        """Return parameters, bytes in memory and precision, without reading the weights.

        ``dtype``: the precision that they are loaded in, or ``auto``.
        """
        counted = [_counted(path) for path in self.weights]
        parameters = sum(sum(counts.values()) for counts in counted)
        if self.gguf is not None and dtype == "auto":
            dtype = "float32"  # transformers takes quantised numbers apart into these
        if dtype != "auto":
            return parameters, parameters * BYTES[dtype], dtype
        stored = {kind: sum(counts.get(kind, 0) for counts in counted) for kind in set().union(*counted)}
        most = max(stored, key=lambda kind: stored[kind], default="float32")
        return parameters, sum(BYTES.get(kind, 4) * count for kind, count in stored.items()), most


def find_files(spec: ModelSpec, options: ModelOptions) -> Files:
    """Return the files of the weights that a spec names: a folder, a GGUF file, or a commit of the Hub."""
    named = spec.weights
    assert named is not None  # the providers of this room have specs that name weights
    where, path = f"model {spec}", named.path
    if path is None:
        return _of_the_hub(named.repository, options.weights or named.revision, where)
    if path.suffix.lower() != ".gguf":
        return Files(path, _weights(path, where, "give a folder that transformers saved"))
    if find_spec("gguf") is None:
        raise MissingRequirement(
            where, what="the library gguf, which reads this file, is not installed",
            fix="pip install 'fabula[local]'",
        )  # fmt: skip
    if not path.is_file():
        raise MissingRequirement(where, what=f"there is no file {path}", fix="check the path")
    return Files(path.parent, (path,), path.name)


def _of_the_hub(repository: str, commit: str | None, where: str) -> Files:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    command = f"hf download {repository}{f' --revision {commit}' if commit else ''}"
    try:
        folder = Path(snapshot_download(repository, revision=commit, local_files_only=True))
    except LocalEntryNotFoundError:
        raise MissingRequirement(
            where, what="its weights are not on this machine", fix=f"fetch them: {command}"
        ) from None
    return Files(folder, _weights(folder, where, f"fetch the rest: {command}"))


def _weights(folder: Path, where: str, fix: str) -> tuple[Path, ...]:
    """Return the files with weights of a folder; all of them must be there."""
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    missing = [name for name in ("config.json", *names) if not (folder / name).is_file()]
    if missing:
        raise MissingRequirement(where, what=f"{folder} has no {missing[0]}", fix=fix)
    return tuple(folder / name for name in names)


@lru_cache(maxsize=64)
def _counted(path: Path) -> dict[str, int]:
    """Return how many numbers of each precision a file of weights holds."""
    if path.suffix.lower() == ".gguf":
        from gguf import GGUFReader

        return {"gguf": sum(int(tensor.n_elements) for tensor in GGUFReader(path).tensors)}
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(min(length, _LONGEST_HEADER)))
    counts: dict[str, int] = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            kind = _STORED.get(tensor["dtype"], tensor["dtype"].lower())
            counts[kind] = counts.get(kind, 0) + prod(tensor["shape"])
    return counts

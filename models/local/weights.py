"""Which weights the spec of an open model means: a commit of the Hub, or the SHA-256 of what lies here.

A reply's key holds it, so that a branch that moves, or a file that is replaced, is asked anew, and a server
on another port, or a file in another folder, is not. What lies in the Hub's cache on this machine counts
before what the Hub has now: nothing changes under a run. Where neither is known, a run is not begun; an
estimate is.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigError, MissingRequirement
from ...schemas.canonical import digest, sha256_file

if TYPE_CHECKING:
    from ..spec import ModelSpec, OpenWeights

MAIN = "main"
FILES = (".safetensors", ".bin", ".pt", ".gguf", ".json", ".jinja", ".model", ".txt")
"""Endings of the files of a folder that its answers depend on: weights, settings, templates, words."""
SECONDS = 5.0
"""How long the Hub may take to say which commit a branch is at."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def exact_weights(weights: "OpenWeights", projector: str | None = None) -> str | None:
    """Return a commit, or the hash of what lies here; None where it cannot be found out.

    ``projector``: the file that lets a GGUF file see.
    """
    return commit_of(weights) if weights.path is None else _hash_of(weights.path, projector)


def check_weights(spec: "ModelSpec", known: str | None) -> None:
    """Check that it is known which weights a spec means, so that replies can be kept under their name."""
    weights = spec.weights
    if weights is None or known is not None:
        return
    if weights.path is not None:
        raise ConfigError(
            f"model {spec}", what=f"{weights.path} does not exist, or holds no weights",
            fix="check the path; a folder holds config.json and the weights, as transformers saves them",
        )  # fmt: skip
    at = f" at {weights.revision}" if weights.revision else ""
    raise MissingRequirement(
        f"model {spec}",
        what=f"{weights.repository}{at} is not in the Hub's cache here, and the Hub does not say what it is",
        fix=f"hf download {weights.repository}{_revision(weights)} with network access (with a token where it"
        " is gated), or name the commit: ORG/NAME@COMMIT",
    )


def _revision(weights: "OpenWeights") -> str:
    return f" --revision {weights.revision}" if weights.revision else ""


def commit_of(weights: "OpenWeights") -> str | None:
    """Return the commit of a repository's revision; None where nobody here knows it."""
    revision = weights.revision or MAIN
    if _COMMIT.fullmatch(revision):
        return revision
    return _cached_commit(weights.repository, revision) or _hub_commit(weights.repository, revision)


def _cached_commit(repository: str, revision: str) -> str | None:
    from huggingface_hub import constants

    name = f"models--{repository.replace('/', '--')}"
    reference = Path(constants.HF_HUB_CACHE) / name / "refs" / revision
    try:
        commit = reference.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) else None


@lru_cache(maxsize=64)
def _hub_commit(repository: str, revision: str) -> str | None:
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return None
    try:
        return HfApi().model_info(repository, revision=revision, timeout=SECONDS).sha
    except Exception:  # noqa: BLE001 - adapter boundary: no network, no such model, no access
        return None


def _hash_of(path: Path, projector: str | None) -> str | None:
    """Return the SHA-256 of a file, with that of what lets it see, or of a folder; None where nothing is."""
    files = [path, *([] if projector is None else [Path(projector).expanduser()])]
    try:
        if path.is_dir():
            return _folder_hash(path)
        return "sha256:" + "+".join(_file_hash(file, *_state(file)) for file in files)
    except OSError:
        return None


def _folder_hash(folder: Path) -> str | None:
    files = sorted(path for path in folder.rglob("*") if path.suffix in FILES and path.is_file())
    if not any(path.name == "config.json" for path in files):
        return None
    listed = [[path.relative_to(folder).as_posix(), _file_hash(path, *_state(path))] for path in files]
    return f"sha256:{digest(listed)}"


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=1024)
def _file_hash(path: Path, size: int, changed: int) -> str:  # noqa: ARG001 - a changed file is read again
    return sha256_file(path)

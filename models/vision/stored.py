"""The folder of weights: what ``fabula models fetch vision`` brought, where each file lies, and its SHA-256.

A file whose hash is in no table of ours yet is pinned when it comes here first: ``pins.json`` beside the
files has its hash, and from then on another content is an error.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...schemas.canonical import digest, pretty_bytes, sha256_file, write_atomic

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
        """Names of all files."""
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
    """Return the pins of a source's files by name."""
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

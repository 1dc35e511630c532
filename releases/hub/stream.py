"""Reading the records of a release one by one, from a folder or straight from a Hub, each of them checked.

Only ``release.json`` is loaded whole. It has the SHA-256 of every record, so that each can be trusted before
the rest has come; nothing is kept on the disk.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ...errors import InputError, UserError
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.layout import RELEASE
from ...schemas.plain_files import LARGEST_DOCUMENT, LONGEST_LINE, open_plain
from ...schemas.text import tallied
from ..loading import read_release_document
from .address import looks_like_reference, parse_reference
from .client import open_hub
from .fetch import FetchOptions, commit_named

BLOCK = 4 << 20
"""Bytes that are asked for at a time."""

Row = TypeVar("Row", bound=BaseModel)
_FIX = "do not use it; tell its maintainers, or fetch the release and run `fabula release verify` on it"


@dataclass(frozen=True)
class ReleaseSource:
    """A release that is read where it lies."""

    name: str  # what it was opened as
    info: Mapping[str, Json] = field(repr=False)  # the content of its ``release.json``
    # path -> the bytes of the file, in pieces of any size
    pieces: Callable[[str], Iterator[bytes]] = field(repr=False)


@dataclass(frozen=True)
class StreamedRelease(Generic[Row]):
    """The records of a release, read anew each time that it is gone through."""

    source: ReleaseSource  # where they are
    file: str  # the file that holds them, one a line, sorted by id
    id_field: str  # the field that names a record
    model: type[Row]  # their type

    @property
    def info(self) -> Mapping[str, Json]:
        """The content of ``release.json``."""
        return self.source.info

    @property
    def version(self) -> str:
        """Its semantic version."""
        return str(self.info["version"])

    @property
    def hashes(self) -> Mapping[str, str]:
        """Id -> SHA-256 of the record's canonical JSON."""
        hashes: Mapping[str, str] = self.info.get("records", {}).get(self.file, {})
        return hashes

    def __len__(self) -> int:
        return len(self.hashes)

    def __iter__(self) -> Iterator[Row]:
        """Yield the records in the order of their ids."""
        number, last = 0, ""
        for number, line in enumerate(self._lines(), 1):
            where = f"{self.source.name}: {self.file}:{number}"
            try:
                record = self.model.model_validate_json(line)
            except ValidationError as error:
                raise _wrong(where, f"no record: {error.errors()[0]['msg']}") from error
            name = str(getattr(record, self.id_field))
            if name <= last and number > 1:
                raise _wrong(where, f"{name!r} after {last!r}")
            if self.hashes.get(name) != sha256_bytes(line):
                raise _wrong(where, f"another record {name!r} than the one that was released")
            last = name
            yield record
        if number != len(self):
            where = f"{self.source.name}: {self.file}"
            raise _wrong(where, f"{tallied(number, 'records')}, and {RELEASE} names {len(self)}")

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for piece in self.source.pieces(self.file):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            if len(rest) > LONGEST_LINE:
                where = f"{self.source.name}: {self.file}"
                raise _wrong(where, f"a line longer than {LONGEST_LINE:,} bytes")
        if rest:
            yield rest


def open_source(text: str | Path, options: FetchOptions | None = None) -> ReleaseSource:
    """Open a release for reading where it lies."""
    folder = Path(text)
    if folder.exists() or not looks_like_reference(str(text)):
        return ReleaseSource(
            str(folder), read_release_document(folder), lambda path: _of_folder(folder, path)
        )
    return _of_hub(str(text), options or FetchOptions())


def _of_folder(folder: Path, path: str) -> Iterator[bytes]:
    with open_plain(folder / path) as file:
        while piece := file.read(BLOCK):
            yield piece


def _of_hub(text: str, options: FetchOptions) -> ReleaseSource:
    reference = parse_reference(text)

    def read(path: str, start: int, stop: int) -> bytes:
        # Opened for each piece: an open Hub holds settings of the client, and readers may pause for long.
        with open_hub(reference.repo, options.endpoint, retries=options.retries) as hub:
            return hub.read(commit, path, start, stop)

    with open_hub(reference.repo, options.endpoint, retries=options.retries) as hub:
        commit = commit_named(hub, reference)
    with tempfile.TemporaryDirectory(prefix="fabula-stream-") as name:
        (Path(name) / RELEASE).write_bytes(read(RELEASE, 0, LARGEST_DOCUMENT))
        info = read_release_document(Path(name))
    files = info.get("files", {})

    def pieces(path: str) -> Iterator[bytes]:
        size = int(files.get(path, {}).get("bytes", 0))
        for start in range(0, size, BLOCK):
            yield read(path, start, min(start + BLOCK, size))

    return ReleaseSource(text, info, pieces)


def _wrong(where: str, found: str) -> InputError:
    expected = f"the records that {RELEASE} states"
    return InputError([UserError(where, expected=expected, found=found, fix=_FIX)])

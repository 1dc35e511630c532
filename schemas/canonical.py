"""Canonical JSON, digests, CSV and file writing: one byte form per value, the same on every machine."""

import csv
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import FabulaError, TargetError
from .plain_files import open_plain

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""
_ROOM = "check the path, its permissions and the space on the disk"
_ROWS = 1000  # of a list that is hashed part by part


def plain(value: Any) -> Json:  # noqa: ANN401 - any part of a document
    """Return plain JSON of what has ``as_json``, of a data class by its fields, and of all that they hold."""
    if hasattr(value, "as_json"):
        return value.as_json()
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    return plain_fields(value) if is_dataclass(value) else value


def plain_fields(value: Any) -> dict[str, Json]:  # noqa: ANN401 - any data class
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def plain_parts(value: Any, *names: str) -> dict[str, Json]:  # noqa: ANN401 - anything
    """Return some fields and properties of a value as plain JSON, in this order."""
    return {name: plain(getattr(value, name)) for name in names}


class Plain:
    """A data class whose plain JSON is its fields."""

    __slots__ = ()

    def as_json(self) -> dict[str, Json]:
        return plain_fields(self)


_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def canonical_text(value: Json) -> str:
    """Return the canonical JSON text of a value: sorted keys, no spaces, Unicode kept, no NaN."""
    return _ENCODER.encode(value)


def canonical_bytes(value: Json) -> bytes:
    """Return :func:`canonical_text` as UTF-8. A lone surrogate raises ``UnicodeEncodeError``."""
    return canonical_text(value).encode("utf-8")


def digest(value: Json) -> str:
    """Return the SHA-256 of the canonical form of a value, in hexadecimal (64 characters)."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def digest_rows(rows: Iterable[Json]) -> str:
    """Return the :func:`digest` of a list of all rows, of which a few are in memory at a time."""
    state = hashlib.sha256()
    for piece in canonical_rows(rows):
        state.update(piece)
    return state.hexdigest()


def canonical_rows(rows: Iterable[Json]) -> Iterator[bytes]:
    """Yield :func:`canonical_bytes` of a list of all rows piece by piece, a few rows in memory at a time."""
    left, between = iter(rows), b""
    yield b"["
    while part := list(islice(left, _ROWS)):
        yield between + canonical_bytes(part)[1:-1]
        between = b","
    yield b"]"


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal (64 characters)."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal, reading it in pieces."""
    with open_plain(path, follow=True) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def jsonl_lines(rows: Iterable[Json]) -> Iterable[bytes]:
    """Yield each row as one canonical JSON line that ends in LF."""
    for row in rows:
        yield canonical_bytes(row) + b"\n"


def pretty_bytes(value: Json) -> bytes:
    """Return a value as indented JSON for people: sorted keys, two spaces, LF at the end."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2, allow_nan=False)
    return (text + "\n").encode("utf-8")


def file_mode(folder: Path) -> int:
    """Return the rights of a new file in a folder: who may enter that may read it, its owner may write."""
    enter = folder.stat().st_mode & 0o011
    return 0o600 | enter << 2 if os.name == "posix" else 0o644


def write_atomic(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that readers see the old content or the whole new one, never a part.

    Who may not enter its folder may not read it either, wherever it is moved to later.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            for chunk in chunks:
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        part.chmod(file_mode(path.parent))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def link_or_copy(source: Path, target: Path) -> None:
    """Put a file at a place whole or not at all, without a copy where the disk can do so."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:
        shutil.copyfile(source, part)
    part.replace(target)


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make a folder, or take an empty one, for what is written in the block."""
    with writing(folder, "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        if taken := next(folder.iterdir(), None):
            what = f"the folder is not empty: it holds {taken.name}"
            raise TargetError(str(folder), what=what, fix="choose another folder")
        yield


@contextmanager
def writing(path: Path, fix: str = _ROOM, *, what: str = "the folder") -> Iterator[None]:
    """Say why a path cannot be written where what is done in the block fails, and what to do then."""
    try:
        yield
    except FabulaError:
        raise
    except OSError as error:
        reason = f"{what} cannot be written: {error.strerror or error}"
        raise TargetError(str(path), what=reason, fix=fix) from error


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a cell begins with that spreadsheets compute."""


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV with LF; text that a spreadsheet would compute gets an apostrophe before it.

    ``rows``: cells in their order; numbers stay numbers, None is an empty cell.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name) for name in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def without_guard(cell: str) -> str:
    """Return the text of a cell without the apostrophe that :func:`csv_text` put before it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        clean = value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
        clean = clean.replace("\r\n", "\n").replace("\r", "\n")  # a bare one would end the row for readers
        return f"'{clean}" if clean.startswith(_FORMULA) else clean
    return value

"""Files that are named by their content: ``<sha256>.<suffix>``. Written once, and checked when read.

Those in the store of a run also lie where ``FABULA_STORE`` says, if it is set: what one machine keeps, others
find there. A file lies there before it lies in the run, so that a file of the run can be had everywhere.
"""

import json
import os
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path

from ..errors import ConfigError, InputError, PlaceUnavailable
from ..schemas.canonical import Json, canonical_bytes, digest, sha256_bytes, write_atomic
from ..schemas.paths import STORE, SharedFiles
from ..schemas.plain_files import read_plain

_TOGETHER = 16
_HASH = 64
_MARK = b"Files of Fabula, each named by its SHA-256.\n"
"""What is written to see whether a shared place can be used."""


def write_once(data: bytes, name: str, folder: Path) -> None:
    """Write a file into a folder, unless it is there; the folder is made if there is none."""
    target = folder / name
    if target.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
    part.write_bytes(data)
    part.replace(target)


def keep_file(data: bytes, name: str, store: Path) -> None:
    """Write a file into the store of a run, and where files are shared, unless it is there."""
    if (store / name).exists():
        return
    shared = SharedFiles.named_by(STORE)
    if shared is not None and shared.size(name) != len(data):  # a part of it does not count
        shared.write({name: data})
    write_once(data, name, store)


def kept_bytes(store: Path, name: str, *, fix: str) -> bytes:
    """Return the bytes of a kept file, whose name has their SHA-256."""
    path = store / name
    bring_files([name], store)
    try:
        data = read_plain(path, follow=True)
    except OSError as error:
        raise _lost(path, str(error.strerror), fix) from error
    if not _is_whole(data, name):
        raise _lost(path, "other bytes", fix)
    return data


def bring_files(names: Iterable[str], store: Path) -> None:
    """Copy files that are not in the store from where files are shared; what is not there either is left."""
    shared = SharedFiles.named_by(STORE)
    if shared is None:
        return
    missing = [name for name in names if not (store / name).exists()]
    for start in range(0, len(missing), _TOGETHER):
        for name, data in shared.read(missing[start : start + _TOGETHER]).items():
            if _is_whole(data, name):
                write_once(data, name, store)


def check_shared_store(*, private: bool) -> None:
    """Write a small file where files are shared, and read it back; nothing where none are shared."""
    shared = SharedFiles.named_by(STORE)
    if shared is None:
        return
    if private:
        raise ConfigError(
            STORE, what="this run is for its owner alone, and its files would lie there for others",
            fix="unset the variable for this command",
        )  # fmt: skip
    name = f"{sha256_bytes(_MARK)}.txt"
    if shared.read([name]).get(name) != _MARK:
        shared.write({name: _MARK})
    if shared.read([name]).get(name) != _MARK:
        raise PlaceUnavailable(
            STORE, what="what is written there is not what is read back",
            fix="name another place, or unset the variable",
        )  # fmt: skip


def _is_whole(data: bytes, name: str) -> bool:
    return sha256_bytes(data) == name.partition(".")[0][-_HASH:]


def _lost(path: Path, found: str, fix: str) -> InputError:
    expected = "the file that its name says"
    return InputError.one(str(path), expected=expected, found=found, fix=fix)


# -- What was found in the parts of a long film, kept on disk as each is done: a kill costs one part


class Segments:
    """The parts of one piece of work, by number from 0; what is damaged counts as not there.

    ``folder``: where they are kept; None keeps nothing. ``basis``: all that what is kept depends on.
    """

    def __init__(self, folder: Path | None = None, basis: Json = None) -> None:
        self.folder = None if folder is None else folder / digest(basis)[:32]

    def get(self, number: int) -> Json | None:
        """Return what was kept of a part, or None."""
        if self.folder is None:
            return None
        try:
            return json.loads(zlib.decompress((self.folder / f"{number:06d}").read_bytes()))
        except (OSError, ValueError, zlib.error):
            return None

    def put(self, number: int, value: Json) -> None:
        """Keep a part; it is on disk when this returns."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self.folder / f"{number:06d}", [zlib.compress(canonical_bytes(value))])

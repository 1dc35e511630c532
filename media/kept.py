"""Files that are named by their content: written once, never seen half written, checked when read."""

import os
import threading
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import sha256_bytes
from ..schemas.plain_files import read_plain


def keep_file(data: bytes, name: str, store: Path) -> None:
    """Write a file into a folder, unless it is there; the folder is made if there is none."""
    target = store / name
    if target.exists():
        return
    store.mkdir(parents=True, exist_ok=True)
    part = store / f".{name}.{os.getpid()}.{threading.get_ident()}"
    part.write_bytes(data)
    part.replace(target)


def kept_bytes(store: Path, name: str, *, fix: str) -> bytes:
    """Return the bytes of a kept picture, whose name begins with their SHA-256.

    Args:
        store: the folder.
        name: of the file: the hash, and a suffix.
        fix: what to do where it is not what its name says.

    Raises:
        InputError: it is not there, or its bytes are others.
    """
    path = store / name
    try:
        data = read_plain(path, follow=True)
    except OSError as error:
        raise _lost(path, str(error.strerror), fix) from error
    if sha256_bytes(data) != name.partition(".")[0]:
        raise _lost(path, "other bytes", fix)
    return data


def _lost(path: Path, found: str, fix: str) -> InputError:
    expected = "the picture that its name says"
    return InputError([UserError(str(path), expected=expected, found=found, fix=fix)])

"""Reading files that others made: regular files only, no more than was asked for, JSON of bounded depth."""

import errno
import io
import json
import os
import stat
from pathlib import Path
from typing import Any

LARGEST_DOCUMENT = 256 * 1024 * 1024
"""Bytes that a JSON document, a card or another file that is read whole may have."""
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes that a line of a JSONL file may have."""
DEEPEST = 100
"""Lists and objects that may lie in each other; records have five or six."""


class PlainFile(io.BufferedReader):
    """A regular file that is read; a line of it has an end before :data:`LONGEST_LINE`."""

    def __next__(self) -> bytes:
        line = self.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise OSError(errno.EFBIG, f"a line longer than {LONGEST_LINE:,} bytes", str(self.name))
        if not line:
            raise StopIteration
        return line


def open_plain(path: Path, *, follow: bool = False) -> PlainFile:
    """Open a file for reading; what is opened is what is checked, so that nothing can be put in between.

    Args:
        path: the file.
        follow: whether it may be a link to one. Files of a release may not: a link can lead out of it.

    Raises:
        OSError: it cannot be read, or is no regular file: a pipe would never begin, a device never end.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        handle = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    except OSError as error:
        found = {errno.ELOOP: "a link", errno.ENXIO: "a pipe or a device"}.get(error.errno or 0)
        if found is None:
            raise
        raise OSError(error.errno, found, str(path)) from None
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            found = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise OSError(errno.EINVAL, found, str(path))
        return PlainFile(io.FileIO(handle, "rb"))
    except BaseException:
        os.close(handle)
        raise


def read_plain(path: Path, most: int = LARGEST_DOCUMENT) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: as for :func:`open_plain`, or it has more than ``most`` bytes.
    """
    with open_plain(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", os.fspath(path))
    return content


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8.

    Raises:
        OSError: as for :func:`read_plain`. UnicodeDecodeError: it is no UTF-8.
    """
    return read_plain(path).decode("utf-8")


def read_json(path: Path, most: int = LARGEST_DOCUMENT) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON document in a regular file.

    Raises:
        OSError: as for :func:`read_plain`. ValueError: as for :func:`parse_json`.
    """
    return parse_json(read_plain(path, most))


def parse_json(content: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON value in bytes.

    Raises:
        ValueError: it is none, or lists and objects lie deeper than :data:`DEEPEST` in each other.
    """
    too_deep = ValueError(f"lists and objects deeper than {DEEPEST} in each other")
    try:
        value = json.loads(content)
    except RecursionError:
        raise too_deep from None
    if is_deep(value, content):
        raise too_deep
    return value


def is_deep(value: Any, content: bytes) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether lists and objects lie deeper than :data:`DEEPEST` in each other.

    Args:
        value: a JSON value.
        content: the bytes that it was read from.
    """
    if content.count(b"[") + content.count(b"{") <= DEEPEST:
        return False
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        parts = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        level = [part for part in parts if isinstance(part, dict | list)]
    return bool(level)

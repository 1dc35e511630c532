"""Reading files that others made: regular files only, no more than was asked for, JSON of bounded depth.

Files of a release may not be links. Elsewhere (``follow``) a link to a regular file is as good as the file.
"""

import errno
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import ExitCode, UserError

LARGEST_DOCUMENT = 256 * 1024 * 1024
"""Bytes that a JSON document, a card or another file that is read whole may have."""
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes that a line of a JSONL file may have."""
DEEPEST = 100
"""Lists and objects that may lie in each other; records have five or six."""
UNZIPPED, RATIO = 64 * 1024 * 1024, 200
"""Bytes that what is packed may come to in any case, and times its own size; texts pack to a tenth."""
LARGEST_WHOLE = 2**63
"""What a whole number must be nearer to zero than: tables and databases hold no larger ones."""
_POINTER, _LARGEST_POINTER = b"version https://git-lfs.github.com/spec/v1", 1024
_PLAIN = "put a regular file of a usual size there"
_TOO_DEEP = f"lists and objects deeper than {DEEPEST} in each other"


class NotPlain(UserError, OSError):
    """At a path is no regular file of a bearable size, or what Git LFS leaves in place of one.

    Whoever can do without the file handles it as the ``OSError`` that it is, with ``errno``, ``strerror`` and
    ``filename``; where nobody does, it says what the user can do.
    """

    exit_code = ExitCode.FINDINGS

    def __init__(self, number: int, found: str, path: str, fix: str = _PLAIN) -> None:
        UserError.__init__(self, path, what=f"this cannot be read: {found}", fix=fix)
        self.errno, self.strerror, self.filename = number, found, path

    def __reduce__(self) -> tuple[object, ...]:
        return (NotPlain, (self.errno, self.strerror, self.filename, self.fix))


class PlainFile(io.BufferedReader):
    """A regular file that is read; a line of it has an end before :data:`LONGEST_LINE`."""

    def __init__(self, handle: int, path: str) -> None:
        super().__init__(io.FileIO(handle, "rb"))
        self._path = path

    def __next__(self) -> bytes:
        line = self.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise NotPlain(errno.EFBIG, f"a line longer than {LONGEST_LINE:,} bytes", self._path)
        if not line:
            raise StopIteration
        return line


def open_plain(path: Path, *, follow: bool = False) -> PlainFile:
    """Open a file for reading; what is opened is what is checked, so that nothing can be put in between."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        handle = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    except OSError as error:
        kind = {errno.ELOOP: "a link", errno.ENXIO: "a pipe or a device"}.get(error.errno or 0)
        if kind is None:
            raise
        raise NotPlain(error.errno or 0, kind, str(path)) from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            kind = "a folder" if stat.S_ISDIR(facts.st_mode) else "a pipe or a device"
            raise NotPlain(errno.EINVAL, kind, str(path))
        if facts.st_size <= _LARGEST_POINTER and os.pread(handle, len(_POINTER), 0) == _POINTER:
            kind = "a Git LFS pointer in place of the file: run `git lfs pull`"
            raise NotPlain(errno.ENODATA, kind, str(path), "run `git lfs pull` in the clone that it lies in")
        return PlainFile(handle, str(path))
    except BaseException:
        os.close(handle)
        raise


def read_plain(path: Path, most: int = LARGEST_DOCUMENT, *, follow: bool = False) -> bytes:
    """Return the bytes of a regular file."""
    with open_plain(path, follow=follow) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise NotPlain(errno.EFBIG, f"larger than {most:,} bytes", os.fspath(path))
    return content


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8."""
    return read_plain(path).decode("utf-8")


def read_json(path: Path, most: int = LARGEST_DOCUMENT, *, follow: bool = False) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON document in a regular file."""
    return parse_json(read_plain(path, most, follow=follow))


def reason_of(error: Exception) -> str:
    """Return what kept a file from being read, without its name, for a message that names it already."""
    if isinstance(error, RecursionError):
        return _TOO_DEEP
    return (isinstance(error, OSError) and error.strerror) or str(error)


def parse_json(content: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON value in bytes."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if is_deep(value, content):
        raise ValueError(_TOO_DEEP)
    return value


def parse_storable(content: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON value in bytes that somebody sent, if files, tables and databases can hold it."""
    value = parse_json(content)
    check_storable(value)
    return value


def check_storable(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Check that files, tables and databases can hold a JSON value."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode("utf-8")
    json.loads(text, parse_int=_within_64_bits)


def _within_64_bits(digits: str) -> int:
    number = int(digits) if len(digits) < 21 else LARGEST_WHOLE
    if not -LARGEST_WHOLE < number < LARGEST_WHOLE:
        raise ValueError(f"the whole number {digits[:40]} is beyond 64 bits")
    return number


def unzipped(blob: bytes) -> bytes:
    """Return what zlib packed, as rows of a journal hold it; whoever made the journal."""
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(blob, max(UNZIPPED, RATIO * len(blob)))
    if not unpacking.eof:
        raise zlib.error("it ends early, or unpacks to far more than texts do")
    return data


def json_lines(path: Path) -> Iterator[Any]:
    """Yield the JSON value of each line of a file."""
    with open_plain(path) as lines:
        for line in lines:
            yield parse_json(line)


def is_deep(value: Any, content: bytes) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether lists and objects lie deeper than :data:`DEEPEST` in each other.

    ``content``: the bytes that it was read from.
    """
    if content.count(b"[") + content.count(b"{") <= DEEPEST:
        return False
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        parts = (part for inner in level for part in (inner.values() if isinstance(inner, dict) else inner))
        level = [part for part in parts if isinstance(part, dict | list)]
    return bool(level)

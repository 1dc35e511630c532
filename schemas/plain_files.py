"""Reading files that others made: regular files only, no more than was asked for, JSON of bounded depth.

Files of a release may not be links. Elsewhere (``follow``) a link to a regular file is as good as the file.
"""

import csv
import difflib
import errno
import io
import json
import os
import re
import stat
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import ExitCode, InputError, UserError
from .text import counted

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
    if isinstance(error, json.JSONDecodeError):
        return json_reason(error)
    if hasattr(error, "errors"):  # of pydantic: the first value that a type does not allow
        return type_reasons(error)[0]
    if isinstance(error, FileNotFoundError):
        return f"nothing there{alike(Path(error.filename))}" if error.filename else "nothing there"
    return (isinstance(error, OSError) and error.strerror) or str(error)


MISSHAPEN = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""What reading a document raises that may be of another form than the one expected."""


@contextmanager
def explaining(
    where: object, fix: str, *, what: str = "it cannot be read",
    kind: Callable[..., UserError] = InputError.one,
    of: type[Exception] | tuple[type[Exception], ...] = (OSError, ValueError),
) -> Iterator[None]:  # fmt: skip
    """Raise a ``kind`` with the reason in place of the exceptions ``of`` what is done in the block."""
    try:
        yield
    except of as error:
        raise kind(str(where), what=f"{what}: {reason_of(error)}", fix=fix) from error


_SYNTAX = {
    "Extra data": "more stands behind the end",
    "Expecting value": "a value is missing",
    "Expecting property name": "a name in double quotes is missing",
    "Expecting ',' delimiter": "a comma, or the end, is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Unterminated string": "the text that begins here is not closed; is the line cut off?",
    "Invalid control character": "a tab or other control character stands within a text",
    "Invalid \\": "a backslash must be written twice",
}
"""How the parser of JSON begins -> what is wrong."""


def json_reason(error: json.JSONDecodeError) -> str:
    """Return what is wrong with a JSON text, and where, with what stands there."""
    if error.msg.startswith("Invalid control") and error.doc[error.pos] in "\r\n":
        try:  # the parser tells where the line ends; the mistake is in the text that it ends in
            json.loads(error.doc[: error.pos])
        except json.JSONDecodeError as unclosed:
            error = unclosed
    before, behind = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    what = next((words for start, words in _SYNTAX.items() if error.msg.startswith(start)), error.msg)
    if behind[:1] == "," and error.msg.startswith("Extra data"):
        what = "a comma stands behind the end"
    elif before[-1:] == "," and behind[:1] in ("]", "}"):
        what = f"a comma stands before {behind[0]}"
    line = f"line {error.lineno}, " if error.lineno > 1 else ""
    near = f"{before[-12:]}{behind[:12]}".replace("\n", " ")
    return f"{what} ({line}column {error.colno}, near {near!r})" if near else "there is no text"


_TYPES = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "dict_type": "an object is wanted here",
    "model_type": "an object is wanted here",
    "list_type": "a list is wanted here",
    "tuple_type": "a list is wanted here",
    "string_type": "a text is wanted here",
    "int_type": "a whole number is wanted here",
    "int_parsing": "a whole number is wanted here",
    "int_from_float": "a whole number is wanted here",
    "float_parsing": "a number is wanted here",
    "float_type": "a number is wanted here",
    "bool_parsing": "true or false is wanted here",
    "greater_than_equal": "at least {ge} is wanted here",
    "less_than_equal": "at most {le} is wanted here",
    "greater_than": "more than {gt} is wanted here",
    "less_than": "less than {lt} is wanted here",
    "bool_type": "true or false is wanted here",
    "json_invalid": "this is no JSON",
    "finite_number": "a number that is neither infinite nor NaN is wanted here",
}
"""Kind of a mistake in pydantic's words -> what is said of it."""


def type_reason(detail: Any) -> str:  # noqa: ANN401 - a mistake as pydantic tells it
    """Return in plain words why a type does not allow a value, with the value where it is short."""
    kind, value = detail["type"], detail.get("input")
    shown = "input" in detail and isinstance(value, str | int | float | None)
    of_json = isinstance(value, bool) or value is None
    told = f", found {json.dumps(value) if of_json else repr(value)}"[:90] if shown else ""
    if kind == "json_invalid" and isinstance(value, str | bytes):
        try:
            parse_json((value.encode() if isinstance(value, str) else value).rstrip())
        except (ValueError, RecursionError) as error:
            return f"this is no JSON: {reason_of(error)}"
    if kind in _TYPES:
        absent = kind in ("missing", "extra_forbidden")
        bounds = {key: _whole(bound) for key, bound in detail.get("ctx", {}).items()}
        return _TYPES[kind].format(**bounds) + ("" if absent else told)
    if kind == "string_pattern_mismatch":
        return f"{value!r} is not written as {detail['ctx']['pattern']} says"[:200]
    message = str(detail["msg"]).removeprefix("Value error, ")
    message = re.sub(r"^[\w ]+ should (be |have )?", "expected ", message)
    return message.partition(" after validation")[0] + told


def type_reasons(error: Any) -> list[str]:  # noqa: ANN401 - a ValidationError of pydantic
    """Return in plain words every reason why a type does not allow a value, each with its place."""
    details = error.errors(include_url=False)
    places = (".".join(map(str, detail["loc"])) for detail in details)
    return [
        (f"{place}: " if place else "") + type_reason(detail)
        for place, detail in zip(places, details, strict=True)
    ]


def _whole(bound: object) -> object:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def alike(path: Path) -> str:
    """Return what of a like name lies where a path is not, in brackets; empty if nothing does."""
    try:
        names = [entry.name for entry in path.absolute().parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, 1, 0.75)
    return f" ({near[0]} is)" if near else ""


def parse_json(content: bytes) -> Any:  # noqa: ANN401 - any JSON value
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


# -- Whether a folder is on a network disk, where SQLite cannot lock files reliably

MOUNTS = Path("/proc/self/mounts")
"""The list of what is mounted where, as Linux gives it."""
_NETWORK = (
    "nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "fuse.glusterfs",
    "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.mountpoint-s3", "fuse.rclone", "fuse.juicefs",
    "fuse.ceph", "wekafs",
)  # fmt: skip
"""How the names of network file systems start."""


def network_disk(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the kind of the network file system that a folder is on, such as ``nfs4``; None for a local one.

    Only Linux tells; elsewhere None.
    """
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    where, depth, kind = folder.resolve(), -1, ""
    for line in lines:
        _, point, form, *_ = line.split(" ")
        mounted = Path(point.replace("\\040", " "))
        if where.is_relative_to(mounted) and len(mounted.parts) >= depth:
            depth, kind = len(mounted.parts), form
    return kind if kind.startswith(_NETWORK) else None


# -- Names from file systems and archives, compared in normal form C: macOS writes é as e and an accent


def composed(name: str) -> str:
    """Return a name in normal form C, in which names are compared."""
    return unicodedata.normalize("NFC", name)


def by_name(names: Iterable[str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return name in normal form C -> the name as it is written there, and pairs of names that become one.

    Of such a pair the first is taken.
    """
    written: dict[str, str] = {}
    pairs: list[tuple[str, str]] = []
    for name in names:
        first = written.setdefault(composed(name), name)
        if first != name:
            pairs.append((first, name))
    return written, pairs


def below(folder: Path, name: str) -> Path:
    """Return the file or folder of a name below a folder, as its name is written there.

    That of exactly this name goes before one whose name is the same in normal form C; where there is neither,
    the path as it would be.
    """
    path = folder / name
    try:
        if name.isascii() or path.exists():
            return path
        for part in Path(name).parts:
            exact = folder / part
            entries = folder.iterdir() if folder.is_dir() and not exact.exists() else iter(())
            folder = next((entry for entry in entries if composed(entry.name) == composed(part)), exact)
    except OSError:  # a name that is too long, a folder that cannot be listed
        return path
    return folder


# -- Reading CSV that others made: a header that names each column once, and rows with their lines

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_LONGEST = 2**31 - 1


class BadCsv(ValueError):
    """A text is not the CSV that it should be.

    Attributes:
        line: where, from 1.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class CsvTable:
    """A table with named columns.

    ``text``: the table. ``separators``: what may stand between cells; the one that the first line has most
    often does. ``quoted``: whether quotes hold cells together, as they do in CSV and not in TSV.

    Attributes:
        columns: the names of the columns, in order.

    Raises BadCsv: the first line cannot be read, is separated otherwise, or names a column twice.
    """

    def __init__(self, text: str, separators: str = ",", *, quoted: bool = True) -> None:
        head = text.lstrip("\r\n").partition("\n")[0]
        separator = max(separators, key=head.count)
        csv.field_size_limit(max(csv.field_size_limit(), min(len(text) + 1, _LONGEST)))
        self._reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, strict=True,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )  # fmt: skip
        header = next((cells for _, cells in self._cells() if cells), [])
        self.columns = tuple(name.strip() for name in header)
        others = [other for other in _SEPARATORS if other not in separators and other in head]
        if len(self.columns) == 1 and others:
            raise BadCsv(
                1,
                f"columns that {_SEPARATORS[others[0]]} separate; save it with {_SEPARATORS[separators[0]]}",
            )
        twice = sorted({name for name in self.columns if name and self.columns.count(name) > 1})
        if twice:
            raise BadCsv(1, f"columns that are there twice: {', '.join(map(repr, twice))}; keep one of each")

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line and cells of each row that is not empty."""
        nameless = [at for at, name in enumerate(self.columns) if not name]
        for line, cells in self._cells():
            if any(cells[at].strip() for at in nameless if at < len(cells)):
                raise BadCsv(line, "a cell under a column without a name; name it, or remove it")
            if cells:
                yield line, cells

    def named(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield line and cells by column of each row."""
        for line, cells in self.rows():
            if len(cells) != len(self.columns):
                raise BadCsv(
                    line, f"{counted(len(cells), 'cell')} for {counted(len(self.columns), 'column')}"
                )
            yield line, self.by_name(cells)

    def by_name(self, cells: list[str]) -> dict[str, str]:
        """Return the cells of a row, of which there is one for each column, by column."""
        return {name: cell for name, cell in zip(self.columns, cells, strict=True) if name}

    def _cells(self) -> Iterator[tuple[int, list[str]]]:
        line = self._reader.line_num + 1
        try:
            for cells in self._reader:
                yield line, cells
                line = self._reader.line_num + 1
        except csv.Error as error:
            raise BadCsv(line, f"no CSV: {error}; correct the quotes") from error

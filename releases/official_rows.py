"""Reading the lines of an official package: every problem gathered, nothing lost in silence."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json, canonical_bytes, sha256_bytes
from ..schemas.issue import Issue
from ..schemas.plain_files import open_plain
from ..validators.codes import show
from ..validators.lines import read_objects

LISTED = 1000
"""Most problems that are gathered; a package of another kind is wrong in every line."""

DEEPEST = 100
"""Most levels of nesting in a line; readers elsewhere have limits of their own."""

_TOLERATED = ("byte-order-mark",)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a package.

    Attributes:
        where: file and line, for problems.
        id: the text in the field that names it; empty where lines have no such field.
        data: the object.
        content: its canonical JSON.
    """

    where: str
    id: str
    data: dict[str, Json]
    content: bytes


class Problems:
    """The problems of a package, up to :data:`LISTED`."""

    def __init__(self) -> None:
        self.found: list[UserError] = []

    def add(self, where: str, expected: str, found: str, fix: str) -> None:
        """Note one problem.

        Raises:
            InputError: there are too many; lists those so far.
        """
        self.found.append(UserError(where, expected=expected, found=found, fix=fix))
        if len(self.found) >= LISTED:
            self.settle()

    def add_issue(self, issue: Issue) -> None:
        """Note what reading a file reports, unless nothing is lost by it."""
        if issue.code not in _TOLERATED:
            self.add(issue.where, "one JSON object a line, in UTF-8", issue.message, issue.cure)

    def settle(self) -> None:
        """Go on if there are none.

        Raises:
            InputError: there are; lists them.
        """
        if self.found:
            raise InputError(self.found)


def read_rows(path: Path, name: str, key: str | None, problems: Problems) -> Iterator[Row]:
    """Yield the lines of a file that can be read, in its order.

    Blank lines, a byte order mark and any form of line end are passed over; values are not touched.

    Args:
        path: the file.
        name: how problems call it.
        key: the field that names a line, whose values must be texts, each once; None where lines have none.
        problems: takes the others.

    Raises:
        InputError: the file cannot be read, or there are too many problems.
    """
    if _starts_with(path, _UTF16):
        problems.add(name, "a file in UTF-8", "one in UTF-16", "save it as UTF-8")
        return
    seen: dict[str, str] = {}
    for line in read_objects(path, name, problems.add_issue):
        where = f"{name}:{line.number}"
        if _deeper(line.data, DEEPEST):
            problems.add(where, f"at most {DEEPEST} levels of nesting", "more", "keep such values elsewhere")
            continue
        try:
            content = canonical_bytes(line.data)
        except ValueError as error:
            problems.add(where, "values that JSON can carry", str(error), "write the number or text again")
            continue
        row_id = "" if key is None else line.data.get(key)
        if not isinstance(row_id, str) or (key and not row_id):
            problems.add(where, f"a text in {key}", show(row_id), "name the line by it")
        elif key and row_id in seen:
            problems.add(
                where, f"each {key} once", f"{show(row_id)}, as {seen[row_id]} has", "keep one of the two"
            )
        else:
            seen[row_id] = where
            yield Row(where, row_id, line.data, content)


def rows_digest(hashes: Mapping[str, str]) -> str:
    """Return one digest of many lines, whatever order they come in.

    Args:
        hashes: what names a line -> SHA-256 of its canonical JSON, in hexadecimal.
    """
    return sha256_bytes("".join(f"{hashes[name]}\n" for name in sorted(hashes)).encode("ascii"))


def _deeper(value: Json, most: int) -> bool:
    """Return whether a value is nested deeper than so many levels."""
    level = [value]
    for _ in range(most):
        level = [child for one in level if isinstance(one, (dict, list)) for child in _children(one)]
        if not level:
            return False
    return True


def _children(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value


def _starts_with(path: Path, marks: tuple[bytes, ...]) -> bool:
    try:
        with open_plain(path, follow=True) as handle:
            return handle.read(2) in marks
    except OSError as error:
        found, fix = error.strerror or str(error), "check its permissions"
        raise InputError([UserError(str(path), what=f"the file cannot be read: {found}", fix=fix)]) from error

"""Opening submissions that anybody may have made: folders and zip files of plain files, with limits."""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..evaluation.archive.archive import EVALUATION, JUDGEMENTS
from ..evaluation.report.pictures import FRAMES
from ..media.images import open_picture
from ..schemas.canonical import sha256_file
from ..schemas.packed_files import Limits, NotPacked, ZippedFiles, open_zip
from ..schemas.plain_files import open_plain
from ..schemas.values import Issue

SUBMISSION, SCORES, STORE = "submission.json", "scores.csv", "store"
LIMITS = Limits(files=20_000, bytes=1 << 30)
"""What a submission may hold."""
LARGEST_FILE = {SUBMISSION: 4 << 20, EVALUATION: 16 << 20, SCORES: 16 << 20, JUDGEMENTS: LIMITS.bytes}
"""Most bytes of a file that is read whole, or line by line; of the others :data:`LARGEST_OTHER`."""
LARGEST_OTHER = 64 << 20
LONGEST_LINE = 4 << 20
"""Most bytes of a line; what a judge says has a few thousand."""
_PICTURE = re.compile(rf"{STORE}/[0-9a-f]{{64}}\.(jpg|png)")
USUAL = (SUBMISSION, SCORES, EVALUATION, JUDGEMENTS, FRAMES)


@dataclass(frozen=True)
class Opened:
    """A submission on disk."""

    folder: Path  # where its files are; a temporary one if it was packed
    names: tuple[str, ...]  # its files, with forward slashes, sorted
    # what is wrong with them; where there are errors, not all of it may be unpacked
    issues: tuple[Issue, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether what it holds may be read."""
        return not any(issue.level == "error" for issue in self.issues)


@contextmanager
def opened(path: Path, beside: tuple[str, ...] = ()) -> Iterator[Opened]:
    """Open a submission, a folder or a ``.zip``; nothing is raised for what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="fabula-submission-") as scratch:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        folder = path if is_folder else Path(scratch)
        names, issues = _listed(path) if is_folder else _unpacked(path, folder)
        there = names if is_folder or not issues else ()
        yield Opened(folder, names, (*issues, *_strange(folder, there, beside)))


def _listed(folder: Path) -> tuple[tuple[str, ...], list[Issue]]:
    names, issues, size = [], [], 0
    for root, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            path = Path(root) / entry
            name = path.relative_to(folder).as_posix()
            about = path.lstat()
            if any("\ud800" <= char <= "\udfff" for char in name):
                issues.append(_issue(name, "unsafe-file", "its name is not UTF-8"))
            elif stat.S_ISREG(about.st_mode):
                names.append(name)
                size += about.st_size
            elif not stat.S_ISDIR(about.st_mode):
                issues.append(_issue(name, "unsafe-file", "this is a link, a pipe or a device"))
        if len(names) + len(issues) > LIMITS.files or size > LIMITS.bytes:
            issues.append(_too_large("$", str(LIMITS)))
            break
    return tuple(sorted(names)), issues[: LIMITS.files]


CODES = {"too_large": "too-large", "unsafe": "unsafe-file", "encrypted": "unsafe-file", "damaged": "damaged"}


def _unpacked(path: Path, target: Path) -> tuple[tuple[str, ...], list[Issue]]:
    try:
        with open_plain(path) as file, open_zip(file, LIMITS) as packed:
            issues = [_issue(each.where, CODES[each.code], str(each)) for each in packed.problems()]
            if not issues:
                _unpack(packed, target)
            return tuple(sorted(packed.sizes)), issues
    except NotPacked as error:
        return (), [_issue(error.where or path.name, CODES[error.code], str(error))]
    except OSError as error:
        return (), [_issue(path.name, "damaged", f"the zip file cannot be read: {error.strerror or error}")]


def _unpack(packed: ZippedFiles, target: Path) -> None:
    for name in packed.sizes:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        with (target / name).open("xb") as out:
            packed.copy(name, out)


def _strange(folder: Path, names: tuple[str, ...], beside: tuple[str, ...]) -> Iterator[Issue]:
    """Yield the files that no submission has, or that are too large, and pictures that cannot be shown."""
    for name in names:
        file, largest = folder / name, LARGEST_FILE.get(name, LARGEST_OTHER)
        if file.lstat().st_size > largest:
            yield _too_large(name, f"at most {largest:,} bytes in this file")
        elif name in (*USUAL, *beside):
            if name.endswith(".jsonl") and (number := _long_line(file)):
                yield _too_large(
                    name, f"at most {LONGEST_LINE:,} bytes in a line, and line {number:,} has more"
                )
        elif not _PICTURE.fullmatch(name):
            yield _issue(name, "file-extra", "a submission has no such file", "take it out")
        elif sha256_file(file) != Path(name).stem:
            yield _issue(name, "file-changed", "the picture is not the one that its name says")
        else:
            yield from _unreadable(file, name)


def _long_line(file: Path) -> int:
    """Return the number of the first line that is too long; 0 where none is."""
    with open_plain(file) as lines:
        number = 0
        while line := lines.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                return number
    return 0


def _unreadable(file: Path, name: str) -> Iterator[Issue]:
    try:
        open_picture(file)
    except UserError as error:
        yield _issue(name, "damaged", f"the picture cannot be opened: {error.what}")


def _too_large(where: str, most: str) -> Issue:
    return _issue(where, "too-large", f"a submission has {most}", "leave pictures out (--frames 0)")


def _issue(
    where: str, code: str, message: str, cure: str = "make it with fabula leaderboard submit"
) -> Issue:
    where = where.encode("utf-8", "replace").decode("utf-8")[:200]
    return Issue(where, "$", code, message, cure)

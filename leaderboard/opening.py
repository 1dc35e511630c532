"""Opening submissions that anybody may have made: folders and zip files, with limits."""

import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import UserError
from ..evaluation.archive.archive import EVALUATION, JUDGEMENTS
from ..evaluation.report.pictures import FRAMES
from ..media.images import open_picture
from ..schemas.canonical import sha256_file
from ..schemas.values import Issue

SUBMISSION, SCORES, STORE = "submission.json", "scores.csv", "store"
MOST_FILES = 20_000
LARGEST = 1 << 30
"""Most bytes of a submission, unpacked."""
LARGEST_RATIO = 200
"""Most bytes that one packed byte may become, from :data:`SMALL` on; text of judges packs to a tenth."""
SMALL = 1 << 20
_BLOCK = 1 << 20
_PICTURE = re.compile(rf"{STORE}/[0-9a-f]{{64}}\.(jpg|png)")
USUAL = (SUBMISSION, SCORES, EVALUATION, JUDGEMENTS, FRAMES)


@dataclass(frozen=True)
class Opened:
    """A submission on disk.

    Attributes:
        folder: where its files are; a temporary one if it was packed.
        names: its files, with forward slashes, sorted.
        issues: what is wrong with them; where there are errors, not all of it may be unpacked.
    """

    folder: Path
    names: tuple[str, ...]
    issues: tuple[Issue, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether what it holds may be read."""
        return not any(issue.level == "error" for issue in self.issues)


@contextmanager
def opened(path: Path, beside: tuple[str, ...] = ()) -> Iterator[Opened]:
    """Open a submission, a folder or a ``.zip``; nothing is raised for what is wrong with it.

    Args:
        path: the submission.
        beside: files that archives of its protocol have besides.
    """
    if path.is_dir() and not path.is_symlink():
        names, issues = _listed(path)
        yield Opened(path, names, (*issues, *_strange(path, names, beside)))
        return
    with tempfile.TemporaryDirectory(prefix="fabula-submission-") as scratch:
        folder = Path(scratch)
        names, issues = _unpacked(path, folder)
        yield Opened(folder, names, (*issues, *_strange(folder, names, beside)))


def _listed(folder: Path) -> tuple[tuple[str, ...], list[Issue]]:
    names, issues, size = [], [], 0
    for root, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            path = Path(root) / entry
            name = path.relative_to(folder).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                names.append(name)
                size += path.lstat().st_size
            elif not stat.S_ISDIR(mode):
                issues.append(_issue(name, "unsafe-file", "this is a link, a pipe or a device"))
        if len(names) > MOST_FILES or size > LARGEST:
            issues.append(_too_large())
            break
    return tuple(sorted(names)), issues


def _unpacked(path: Path, target: Path) -> tuple[tuple[str, ...], list[Issue]]:
    try:
        with zipfile.ZipFile(path) as packed:
            entries = [entry for entry in packed.infolist() if not entry.is_dir()]
            issues = _entry_issues(entries, path.stat().st_size)
            if not issues:
                left = LARGEST
                for entry in entries:
                    left -= _unpack(packed, entry, target / entry.filename, left)
            return tuple(sorted(entry.filename for entry in entries)), issues
    except _Grown as error:
        return (), [_issue(str(error), "too-large", "it holds more bytes than it says")]
    except (
        OSError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, ValueError,
    ) as error:  # fmt: skip
        return (), [_issue(path.name, "damaged", f"the zip file cannot be read: {str(error)[:200]}")]


class _Grown(Exception):
    """A packed file is longer than it says."""


def _unpack(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, left: int) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with packed.open(entry) as source, target.open("wb") as out:
        while block := source.read(_BLOCK):
            written += len(block)
            if written > min(left, entry.file_size):
                raise _Grown(entry.filename)
            out.write(block)
    return written


def _entry_issues(entries: list[zipfile.ZipInfo], size: int) -> list[Issue]:
    issues: list[Issue] = []
    whole = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_FILES or whole > LARGEST or whole > max(SMALL, LARGEST_RATIO * size):
        issues.append(_too_large())
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        parts = PurePosixPath(name).parts
        leads_out = name.startswith("/") or ".." in parts or "\\" in name or ":" in name
        if leads_out or any(ord(character) < 32 for character in name):
            issues.append(_issue(name, "unsafe-file", "its name leads out of the submission"))
        elif stat.S_ISLNK(entry.external_attr >> 16):
            issues.append(_issue(name, "unsafe-file", "this is a link"))
        elif name.casefold() in seen:
            issues.append(_issue(name, "unsafe-file", "the name is there twice"))
        elif entry.flag_bits & 1:
            issues.append(_issue(name, "unsafe-file", "the file is encrypted"))
        seen.add(name.casefold())
    return issues


def _strange(folder: Path, names: tuple[str, ...], beside: tuple[str, ...]) -> Iterator[Issue]:
    """Yield the files that no submission has, and pictures that cannot be shown."""
    for name in names:
        if name in (*USUAL, *beside):
            continue
        if not _PICTURE.fullmatch(name):
            yield _issue(name, "file-extra", "a submission has no such file", "take it out")
        elif (folder / name).is_file():
            if sha256_file(folder / name) != Path(name).stem:
                yield _issue(name, "file-changed", "the picture is not the one that its name says")
            else:
                yield from _unreadable(folder / name, name)


def _unreadable(file: Path, name: str) -> Iterator[Issue]:
    try:
        open_picture(file)
    except UserError as error:
        yield _issue(name, "damaged", f"the picture cannot be opened: {error.what}")


def _too_large() -> Issue:
    most = f"at most {MOST_FILES:,} files, {LARGEST:,} bytes, and {LARGEST_RATIO} times what is packed"
    return _issue("$", "too-large", f"a submission has {most}", "leave pictures out (--frames 0)")


def _issue(
    where: str, code: str, message: str, cure: str = "make it with fabula leaderboard submit"
) -> Issue:
    return Issue(where, "$", code, message, cure)

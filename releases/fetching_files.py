"""The files of a version: which there must be, and whether those that came are they."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import InputError, UserError
from ..schemas.canonical import Json, sha256_bytes, sha256_file
from ..schemas.plain_files import parse_json
from .git_names import git_oid
from .hub_client import RemoteFile
from .layout import RELEASE, SUMS, files_in

LARGEST_DOCUMENT = 256 * 1024 * 1024
MOST_FILES = 100_000
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FIX = "do not use it; tell its maintainers, and fetch a version that is sound"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file must be.

    Attributes:
        size: in bytes; None where only the hash is known.
        sha256: of its content; None where only git's name is known.
        oid: git's name of its content; None where the SHA-256 is known.
    """

    size: int | None
    sha256: str | None = None
    oid: str | None = None

    def as_json(self) -> list[Json]:
        """Return it as plain JSON."""
        return [self.size, self.sha256, self.oid]

    def problem(self, path: Path) -> str | None:
        """Return in which way a file is another one; None where it is the one."""
        if not path.is_file() or path.is_symlink():
            return "is not there"
        found = path.stat().st_size
        if self.size is not None and found != self.size:
            return f"has {found} bytes, not {self.size}"
        if self.sha256 is not None and sha256_file(path) != self.sha256:
            return "has another SHA-256"
        if self.oid is not None and git_oid(path) != self.oid:
            return "is not the file that the commit has"
        return None


def expected_of_release(document: bytes, where: str) -> dict[str, Expected]:
    """Return path -> what it must be, of every file of a release, from its ``release.json``.

    Args:
        document: the bytes of ``release.json``.
        where: what to call it in errors.

    Raises:
        InputError: it is none, or lists what must not be written to a disk.
    """
    try:
        content = parse_json(document)
        files = content["files"]
        found = {path: Expected(entry["bytes"], entry["sha256"]) for path, entry in files.items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _unsound(where, f"a {RELEASE} that lists files with size and hash", str(error)) from None
    bad = [path for path, entry in found.items() if not _is_sound(path, entry)]
    if bad or len(found) > MOST_FILES or RELEASE in found or SUMS in found:
        shown = repr(bad[0]) if bad else f"{len(found)} files"
        raise _unsound(where, "plain relative paths with size and SHA-256", shown)
    _require_distinct(found, where)
    sums = {path: entry.sha256 for path, entry in found.items()} | {RELEASE: sha256_bytes(document)}
    lines = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums)).encode("utf-8")
    found[SUMS] = Expected(len(lines), sha256_bytes(lines))
    found[RELEASE] = Expected(len(document), sha256_bytes(document))
    return found


def of_remote(listed: RemoteFile) -> Expected:
    """Return what a file must be, from the Hub's listing."""
    return Expected(listed.size, listed.sha256, None if listed.sha256 else listed.oid)


def expected_of_tree(tree: Mapping[str, RemoteFile], where: str) -> dict[str, Expected]:
    """Return path -> what it must be, of every file of a commit, from the Hub's listing.

    Raises:
        InputError: it lists what must not be written to a disk.
    """
    found = {path: of_remote(one) for path, one in tree.items()}
    bad = next((path for path in found if not safe_path(path)), None)
    if bad is not None or len(found) > MOST_FILES:
        raise _unsound(where, "plain relative paths", repr(bad) if bad else f"{len(found)} files")
    _require_distinct(found, where)
    return found


def differences(folder: Path, expected: Mapping[str, Expected], fix: str = _FIX) -> Iterator[UserError]:
    """Yield every file of a folder that is not what it must be, and those that nobody listed."""
    for path, wanted in sorted(expected.items()):
        problem = wanted.problem(folder / path)
        if problem is not None:
            yield tampered(folder / path, f"the file {problem}", fix)
    for path in sorted(set(files_in(folder)) - set(expected)):
        yield tampered(folder / path, "a file that is listed nowhere", fix)


def tampered(where: Path | str, found: str, fix: str = _FIX) -> UserError:
    """Return the error for a file that is not what it must be."""
    return UserError(str(where), expected="the file that was published", found=found, fix=fix)


def safe_path(path: Json) -> bool:
    """Return whether a path from elsewhere may be written under a folder of ours."""
    if not isinstance(path, str) or not path or len(path) > 1000 or not path.isprintable():
        return False
    parts = PurePosixPath(path).parts
    plain = path == "/".join(parts) and not path.startswith("/") and "\\" not in path and ":" not in path
    return plain and ".." not in parts and parts[0] not in (".git", ".cache")


def _is_sound(path: str, entry: Expected) -> bool:
    size = entry.size
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        return False
    return safe_path(path) and isinstance(entry.sha256, str) and bool(_SHA256.fullmatch(entry.sha256))


def _require_distinct(files: Mapping[str, Expected], where: str) -> None:
    """Refuse paths that would overwrite each other: by letter case on some disks, or a file as a folder."""
    folded = {path.casefold() for path in files}
    folders = {str(parent).casefold() for path in files for parent in PurePosixPath(path).parents}
    if len(folded) < len(files) or folded & folders:
        clash = sorted(folded & folders) or ["two paths that differ in letter case only"]
        raise _unsound(where, "paths that stay different on every file system", clash[0])


def _unsound(where: str, expected: str, found: str) -> InputError:
    return InputError([UserError(where, expected=expected, found=found[:300], fix=_FIX)])

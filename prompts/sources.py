"""Where the files of a public repository are read from: a clone, an archive, a plain folder or an address.

Nothing of a repository is executed, and nothing is unpacked: single files are read out.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import InputError, MissingRequirement, UserError
from ..models.programs import ProgramStopped, allowed_environment, run_program
from ..schemas.packed_files import Limits, NotPacked, PackedFiles, open_tar, open_zip
from ..schemas.plain_files import open_plain, read_plain

LARGEST_FILE, LARGEST_ARCHIVE = 5_000_000, 500_000_000
"""Most bytes of a file that is read, and of an archive that is downloaded."""
LIMITS = Limits(files=200_000, bytes=2_000_000_000)
"""What an archive may hold."""
_CONNECT, _SILENT = 20.0, 120.0
"""Seconds until a connection stands, and without a byte."""

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a repository at one commit."""

    where: str  # what they are read from, for messages
    read: Read  # path in the repository -> content; None where there is no such file
    commit: str | None = None  # the commit, where the source says so itself


@contextmanager
def open_files(location: str | Path, commit: str) -> Iterator[Files]:
    """Give the files of a repository."""
    if str(location).startswith(("http://", "https://")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "archive"
            download(str(location), path)
            with _archive(path, str(location)) as files:
                yield files
        return
    path = Path(location)
    if path.is_dir():
        yield _clone(path, commit) or Files(str(path), lambda name: _content(path / name))
    elif path.is_file():
        with _archive(path, str(path)) as files:
            yield files
    else:
        problem = UserError(str(path), what="there is no such file or folder", fix="check the spelling")
        raise InputError([problem])


def download(address: str, path: Path) -> None:
    """Download an archive."""
    import httpx2

    timeout = httpx2.Timeout(_SILENT, connect=_CONNECT)
    try:
        with httpx2.stream("GET", address, follow_redirects=True, timeout=timeout) as reply:
            reply.raise_for_status()
            size = 0
            with path.open("wb") as out:
                for chunk in reply.iter_bytes():
                    size += len(chunk)
                    if size > LARGEST_ARCHIVE:
                        raise OSError(f"more than {LARGEST_ARCHIVE:,} bytes")
                    out.write(chunk)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise MissingRequirement(
            address, what=f"it cannot be downloaded: {lines[0][:200]}",
            fix="fetch the repository on a machine with network, and name the clone or archive with --from",
        ) from error  # fmt: skip


def _clone(folder: Path, commit: str) -> Files | None:
    """Return the files of a clone at a commit.

    None where files lie in the folder itself, at whatever commit.
    """
    bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    if not bare and not (folder / ".git").exists():
        return None
    named = _git(folder, "rev-parse", "--verify", f"{commit}^{{commit}}")
    if named is None:
        if not bare:
            return None
        what = f"git does not find commit {commit} in this bare clone"
        fix = "fetch the commit there, and see that git is installed and the clone is yours"
        raise InputError([UserError(str(folder), what=what, fix=fix)])
    full = named.decode("ascii").strip()
    return Files(str(folder), lambda name: _git(folder, "cat-file", "blob", f"{full}:{name}"), full)


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git says; None where it is not installed, or there is no such thing."""
    command = ["git", "-C", str(folder), "--no-pager", *arguments]
    try:
        ended = run_program(command, allowed_environment(), seconds=60, output="kept")
    except (OSError, ProgramStopped):
        return None
    return ended.output if ended.status == 0 else None


def _content(path: Path) -> bytes | None:
    try:
        return read_plain(path, LARGEST_FILE, follow=True)
    except OSError:
        return None


@contextmanager
def _archive(path: Path, where: str) -> Iterator[Files]:
    """Give the files of an archive; both forms may name their commit, as archives of hosted clones do."""
    try:
        with open_plain(path, follow=True) as file:
            is_zip = file.read(4) == b"PK\x03\x04"
            with (open_zip if is_zip else open_tar)(file, LIMITS) as packed:
                yield Files(where, _packed(packed), _commit(packed.comment))
    except NotPacked as error:
        what = f"this is no zip or tar archive that can be read: {error}"
        problem = UserError(where, what=what, fix="give a clone, an archive or a folder")
        raise InputError([problem]) from error


def _packed(archive: PackedFiles) -> Read:
    members = {_below(name): name for name in archive.sizes}

    def read(name: str) -> bytes | None:
        member = members.get(name)
        return None if member is None or archive.sizes[member] > LARGEST_FILE else archive.read(member)

    return read


def _below(name: str) -> str:
    """Return a path without the folder that holds everything."""
    return "/".join(PurePosixPath(name).parts[1:])


def _commit(text: str) -> str | None:
    is_one = len(text) == 40 and all(char in "0123456789abcdef" for char in text)
    return text if is_one else None

"""A finished run as one file, ``RUN.tar.zst``, and back: every file byte for byte, checked both ways.

The archive is a tar of Zstandard frames that usual programs open. Its first member, ``archive.json``, lists
the files with size and SHA-256. After a kill at any moment the run is there, or a whole archive of it.
"""

import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from pydantic import Field, ValidationError

from ...errors import FabulaError, InputError, RunError, TargetError, UserError
from ...schemas.canonical import file_mode, pretty_bytes, sha256_file
from ...schemas.plain_files import open_plain
from ...schemas.values import Own
from .. import journal_file
from ..batches.books import running_lines
from ..execute import STORE, is_settled
from ..journal import Journal
from ..journal_file import NAME as JOURNAL
from ..journal_file import explained, unwritable
from ..lock import HOLDER, LOCK, hold, is_private
from ..machines.reuse import bring_stored
from ..manifest import read_manifest
from ..runner import Options

SUFFIX = ".tar.zst"
LIST = "archive.json"
_LEFT_OUT = (LOCK, HOLDER, f"{JOURNAL}-wal", f"{JOURNAL}-shm")
_PIECE = 1 << 20
_LARGEST_LIST = 1 << 30
LOST = (
    "times and owners of files; their bytes and rights are kept",
    "what says who works on the run, and files that were half written",
)
"""What an archive does not hold, in words."""


class Member(Own):
    """One file of a run in an archive."""

    path: str
    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    mode: int = Field(ge=0, le=0o777)


class Contents(Own):
    """The content of ``archive.json``.

    Attributes:
        format: version of this form.
        name: of the run's folder.
        kind: of the run.
        created_at: when the run was created.
        mode: rights of the folder.
        files: its files, by path.
    """

    format: Literal[1] = 1
    name: str
    kind: str
    created_at: str
    mode: int = Field(ge=0, le=0o777)
    files: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Archived:
    """What became of a run that was archived or restored.

    Attributes:
        done: ``archived`` or ``restored``.
        folder: the run.
        archive: the file.
        files: how many files it holds.
        size: bytes of these files.
        packed: bytes of the archive.
        removed: whether the run's folder is gone.
    """

    done: str
    folder: Path
    archive: Path
    files: int
    size: int
    packed: int
    removed: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "done": self.done, "folder": str(self.folder), "archive": str(self.archive), "files": self.files,
            "bytes": self.size, "packed_bytes": self.packed, "removed": self.removed, "lost": list(LOST),
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Return it as lines for people."""
        target = self.archive if self.done == "archived" else self.folder
        sizes = f"{self.size:,} bytes ({self.packed:,} packed)"
        yield f"{self.done}: {target}, {self.files} files, {sizes}, all checked"
        yield from (f"not kept: {lost}" for lost in LOST)
        if self.removed:
            yield f"{self.folder} was removed; to have it back: fabula run restore {self.archive}"


def archive_run(folder: Path, out: Path | None = None, *, remove: bool = False) -> Archived:
    """Write a finished run into one file, and read that back; then remove the run if that is wanted.

    Args:
        folder: the run.
        out: the file; the folder's name with ``.tar.zst``, beside it, if not given.
        remove: whether the folder is removed once the archive was checked.

    Raises:
        RunError: the run is not finished, is no run, or holds something that is no plain file. RunBusy:
            somebody works on it. TargetError: the file exists, or cannot be written; or files that the run
            lacks lie where they cannot be reached.
    """
    folder = Path(os.path.realpath(folder))
    target = Path(out).absolute() if out is not None else folder.with_name(folder.name + SUFFIX)
    read_manifest(folder)  # nothing is written into a folder that is no run
    _check_target(folder, target)
    with hold(folder):
        contents = _contents(folder)
        mode = 0o600 if is_private(folder) else file_mode(target.parent)
        part = target.with_name(f".{target.name}.part")
        try:
            part.unlink(missing_ok=True)
            part.touch(0o600)
            part.chmod(mode)
            _pack(folder, contents, part)
            with part.open("rb") as file:
                _read(part, file, contents)
            part.replace(target)
        except OSError as error:
            raise unwritable(target, error) from error
        finally:
            part.unlink(missing_ok=True)
        if remove:
            _remove(folder, contents)
    size = sum(member.size for member in contents.files)
    return Archived("archived", folder, target, len(contents.files), size, target.stat().st_size, remove)


def restore_run(archive: Path, out: Path | None = None) -> Archived:
    """Write the run in an archive into a folder; every file is as it was when it was archived.

    Args:
        archive: the file.
        out: the folder, which must not exist; that of the run's name beside the archive, if not given.

    Raises:
        InputError: the file is no archive of a run, or damaged. TargetError: the folder exists, or cannot be
            written.
    """
    archive = Path(archive).absolute()
    try:
        with open_plain(archive, follow=True) as file:
            contents = _read(archive, file)
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise UserError(str(archive), what=what, fix="check the path of the archive") from error
    try:
        target = Path(out).absolute() if out is not None else archive.with_name(contents.name)
        if target.exists():
            raise _exists(target)
        part = target.with_name(f".{target.name}.restoring")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        part.chmod(contents.mode | 0o700)
        with open_plain(archive, follow=True) as file:
            _read(archive, file, contents, lambda member: _written(part, member))
        part.rename(target)
        shutil.rmtree(_leaving(target), ignore_errors=True)
    except OSError as error:
        if isinstance(error, FabulaError):
            raise
        raise unwritable(out or archive, error) from error
    size = sum(member.size for member in contents.files)
    return Archived("restored", target, archive, len(contents.files), size, archive.stat().st_size)


def _check_target(folder: Path, target: Path) -> None:
    if target.exists():
        raise _exists(target)
    if target.is_relative_to(folder):
        fix = "give a file outside of it with --out"
        raise TargetError(str(target), what="the archive would lie in the run itself", fix=fix)
    if not target.name.endswith(SUFFIX):
        raise TargetError(str(target), what=f"the name does not end with {SUFFIX}", fix="give such a name")


def _exists(path: Path) -> TargetError:
    return TargetError(str(path), what="it is there already", fix="give another place with --out")


def _contents(folder: Path) -> Contents:
    """Return what an archive of a run holds; the journal is brought into one file first.

    Raises:
        RunError: it is not finished, or holds something that is no plain file.
    """
    manifest, path = read_manifest(folder), folder / JOURNAL
    if not path.is_file():
        raise journal_file.missing(path)
    running = running_lines(path, folder)
    if running or not is_settled(folder, Options()):
        raise RunError(
            str(folder), what="\n".join(["the run is not finished", *running]),
            fix=f"finish it first: fabula run retry {folder}",
        )  # fmt: skip
    with Journal.open(folder, writable=False) as journal:
        bring_stored(journal, folder / STORE)
    with explained(path), closing(journal_file.connect(path, read_only=False)) as connection:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        fix = "wait until it is done, and start again"
        raise RunError(str(path), what="another program is reading the journal", fix=fix)
    members = tuple(_member(folder, name) for name in sorted(_names(folder)))
    mode = folder.stat().st_mode & 0o777
    return Contents(
        name=folder.name, kind=manifest.kind, created_at=manifest.created_at, mode=mode, files=members
    )


def _names(folder: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            inside = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                fix = "replace it by the file itself, or take it away"
                raise RunError(
                    str(path), what="this is a link or no plain file; archives hold files", fix=fix
                )
            half = path.name.startswith(".") and path.name.endswith(".part")
            if path.is_file() and inside not in _LEFT_OUT and not half:
                yield inside


def _member(folder: Path, name: str) -> Member:
    path = folder / name
    stat = path.stat()
    return Member(path=name, size=stat.st_size, sha256=sha256_file(path), mode=stat.st_mode & 0o777)


def _pack(folder: Path, contents: Contents, path: Path) -> None:
    import pyarrow as pa

    with (
        pa.CompressedOutputStream(str(path), "zstd") as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        listed = pretty_bytes(contents.as_json())
        tar.addfile(_entry(LIST, len(listed), 0o644), io.BytesIO(listed))
        for member in contents.files:
            with (folder / member.path).open("rb") as data:
                tar.addfile(_entry(f"{contents.name}/{member.path}", member.size, member.mode), data)
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _entry(name: str, size: int, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    return entry


Sink = Callable[[Member], IO[bytes]]


def _read(
    path: Path, file: IO[bytes], expected: Contents | None = None, sink: Sink | None = None
) -> Contents:
    """Read an archive to its end; compare every file with its hash, and write it where ``sink`` says.

    Raises:
        InputError: something in it is not as its list says.
    """
    import pyarrow as pa

    with (
        _as_damage(path),
        pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as packed,
        tarfile.open(fileobj=packed, mode="r|") as tar,
    ):
        first = tar.next()
        if first is None or first.name != LIST or first.size > _LARGEST_LIST:
            raise ValueError(f"it does not begin with {LIST}")
        contents = Contents.model_validate_json(_data(tar, first).read())
        if expected is not None and contents != expected:
            raise ValueError("its list of files is another than was written")
        left = {f"{contents.name}/{member.path}": member for member in contents.files}
        while (entry := tar.next()) is not None:
            member = left.pop(entry.name, None)
            if member is None or not entry.isreg() or not _is_plain(contents.name, member.path):
                raise ValueError(f"{entry.name[:200]!r} does not belong to it")
            _take(_data(tar, entry), member, sink)
        if left:
            raise ValueError(f"{min(left)} is missing")
    return contents


def _data(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    data = tar.extractfile(entry)
    if data is None:
        raise ValueError(f"{entry.name[:200]!r} is no file")
    return data


def _is_plain(name: str, path: str) -> bool:
    """Whether a path in an archive leads into the run, and nowhere else."""
    whole = PurePosixPath(name, path)
    return len(PurePosixPath(name).parts) == 1 and ".." not in whole.parts and not whole.is_absolute()


def _take(data: IO[bytes], member: Member, sink: Sink | None) -> None:
    state, size = hashlib.sha256(), 0
    out = None if sink is None else sink(member)
    try:
        while piece := data.read(_PIECE):
            state.update(piece)
            size += len(piece)
            if out is not None:
                out.write(piece)
        if out is not None:
            out.flush()
            os.fsync(out.fileno())
    finally:
        if out is not None:
            out.close()
    if (size, state.hexdigest()) != (member.size, member.sha256):
        raise ValueError(f"{member.path} has other bytes than its hash says")


def _written(folder: Path, member: Member) -> IO[bytes]:
    path = folder / member.path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    path.chmod(member.mode)
    return os.fdopen(handle, "wb")


@contextmanager
def _as_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, ValidationError, tarfile.TarError, EOFError, RecursionError) as error:
        raise _damaged(path, error) from error
    except OSError as error:
        # pyarrow says so, without a number, where frames are damaged; what the system says has one.
        if isinstance(error, FabulaError) or error.errno is not None:
            raise
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    text = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    what = f"this is no whole archive of a run: {text}"
    return InputError([UserError(str(path), what=what, fix="take another copy of the archive")])


def _remove(folder: Path, contents: Contents) -> None:
    """Remove a run that has not changed since it was listed.

    Raises:
        RunError: it has changed.
    """
    now = {name: (folder / name).stat().st_size for name in _names(folder)}
    if now != {member.path: member.size for member in contents.files}:
        fix = "nothing was removed; archive it again under another name"
        raise RunError(str(folder), what="the run has changed while it was archived", fix=fix)
    leaving = _leaving(folder)
    shutil.rmtree(leaving, ignore_errors=True)
    folder.rename(leaving)  # never half a run in its place
    shutil.rmtree(leaving)


def _leaving(folder: Path) -> Path:
    """Return what a run is called while it is removed."""
    return folder.with_name(f".{folder.name}.removed")

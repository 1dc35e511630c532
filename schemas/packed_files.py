"""Reading zip and tar files that others made: plain files only, so many, so large."""

import bz2
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

SMALL = 1 << 20
"""Bytes that an archive may hold whatever its own size; from there on, its ratio counts."""
_BLOCK = 1 << 20
_LARGEST_READ = 64 << 20
_ENTRY = 1024  # bytes of a zip file's list that one file has at most, on average
_END, _TAIL = struct.Struct("<4s4H2LH"), 22 + 0xFFFF
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of the others, zipfile unpacks all at once
_OPENERS: tuple[tuple[bytes, Any], ...] = (
    (b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open), (b"\x5d\x00\x00", lzma.open),
)  # fmt: skip


class NotPacked(Exception):
    """An archive holds what is not read.

    Attributes:
        code: ``damaged``, ``encrypted``, ``too_large``, or ``unsafe``: something other than a plain file.
        where: which of its files; empty where it is the archive itself.
    """

    def __init__(self, code: str, reason: str, where: str = "") -> None:
        super().__init__(reason)
        self.code, self.where = code, where


@dataclass(frozen=True, slots=True)
class Limits:
    """What an archive may hold."""

    files: int  # so many files
    bytes: int  # so many bytes, unpacked, all together
    ratio: int = 200  # so many times its own size, unpacked; texts pack to a tenth

    def most(self, packed: int) -> int:
        """Return how many bytes an archive of so many bytes may hold."""
        return min(self.bytes, max(SMALL, self.ratio * packed))

    def __str__(self) -> str:
        return f"at most {self.files:,} files, {self.bytes:,} bytes, and {self.ratio} times what is packed"


class PackedFiles:
    """The plain files of an archive whose list is within limits.

    Attributes:
        sizes: name -> bytes, unpacked, in the order of the list.
        comment: what the archive says of itself.
    """

    def __init__(self, sizes: Mapping[str, int], comment: str, limits: Limits) -> None:
        self.sizes, self.comment = sizes, comment
        self._limits, self._left = limits, limits.bytes

    def copy(self, name: str, out: IO[bytes]) -> None:
        """Write the bytes of a file somewhere."""
        self._left -= self.sizes[name]
        if self._left < 0:
            raise NotPacked("too_large", f"more is read from it than allowed: {self._limits}")
        try:
            with self._opened(name) as source:
                while block := source.read(_BLOCK):
                    out.write(block)
        except _DAMAGED as error:
            raise NotPacked("damaged", f"{name} cannot be unpacked: {str(error)[:200]}", name) from error

    def read(self, name: str) -> bytes:
        """Return the bytes of a file. Raises as :meth:`copy`."""
        out = io.BytesIO()
        self.copy(name, out)
        return out.getvalue()

    def _opened(self, name: str) -> IO[bytes]:
        raise NotImplementedError


class ZippedFiles(PackedFiles):
    """The files of a zip archive; links are told by :meth:`problems`, and by reading them."""

    def __init__(self, archive: zipfile.ZipFile, limits: Limits, packed: int) -> None:
        self._archive = archive
        self._entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        self._named = {entry.filename: entry for entry in self._entries}
        sizes = {name: entry.file_size for name, entry in self._named.items()}
        super().__init__(sizes, archive.comment.decode("ascii", "replace"), limits)
        whole = sum(entry.file_size for entry in self._entries)
        if len(self._entries) > limits.files or whole > limits.most(packed):
            raise NotPacked("too_large", f"it holds more than allowed: {limits}")

    def problems(self) -> Iterator[NotPacked]:
        """Yield what keeps the files from being written to disk under their names."""
        seen: set[str] = set()
        for entry in self._entries:
            name = entry.filename
            leads_out = name.startswith("/") or ".." in PurePosixPath(name).parts
            if leads_out or any(ord(character) < 32 or character in "\\:" for character in name):
                yield NotPacked("unsafe", "its name leads out of the archive", name)
            elif name.casefold() in seen:
                yield NotPacked("unsafe", "the name is there twice", name)
            elif (problem := _problem_of(entry)) is not None:
                yield problem
            seen.add(name.casefold())

    def _opened(self, name: str) -> IO[bytes]:
        entry = self._named[name]
        if (problem := _problem_of(entry)) is not None:
            raise problem
        return self._archive.open(entry)


class TarredFiles(PackedFiles):
    """The plain files of a tar archive; links, devices and files with holes are left out."""

    def __init__(self, archive: tarfile.TarFile, entries: Sequence[tarfile.TarInfo], limits: Limits) -> None:
        self._archive, self._named = archive, {entry.name: entry for entry in entries}
        sizes = {name: entry.size for name, entry in self._named.items()}
        super().__init__(sizes, archive.pax_headers.get("comment", ""), limits)

    def _opened(self, name: str) -> IO[bytes]:
        opened = self._archive.extractfile(self._named[name])
        assert opened is not None  # plain files alone are named
        return opened


_DAMAGED = (
    OSError, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, RuntimeError, EOFError,
    ValueError,
)  # fmt: skip


def _problem_of(entry: zipfile.ZipInfo) -> NotPacked | None:
    """Return why a file in a zip archive cannot be read, if it cannot."""
    name = entry.filename
    if entry.flag_bits & 1:
        return NotPacked("encrypted", "the file is encrypted", name)
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        return NotPacked("unsafe", "this is a link, a pipe or a device", name)
    if entry.compress_type not in _METHODS:
        return NotPacked("damaged", "it is packed otherwise than with deflate", name)
    return None


@contextmanager
def open_zip(file: IO[bytes], limits: Limits) -> Iterator[ZippedFiles]:
    """Open a zip archive. None of its files is longer than the list says, so limits hold for what is read.

    ``file``: the archive, as :func:`.plain_files.open_plain` gives it, or its bytes.
    """
    size = file.seek(0, os.SEEK_END)
    if _listed_bytes(file, size) > limits.files * _ENTRY:
        raise NotPacked("too_large", f"it holds more than allowed: {limits}")
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGED as error:
        raise NotPacked("damaged", f"it is no zip file, or a damaged one: {str(error)[:200]}") from error
    with archive:
        yield ZippedFiles(archive, limits, size)


def _listed_bytes(file: IO[bytes], size: int) -> int:
    """Return how many bytes the list of a zip file has, where ``zipfile`` will look: it is read whole."""
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    file.seek(0)
    last = tail[-_END.size :]
    at = len(tail) - _END.size
    if not (last.startswith(b"PK\x05\x06") and last.endswith(b"\0\0")):
        at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        return 0  # it is no zip file
    if tail[max(0, at - 20) : at].startswith(b"PK\x06\x07"):
        return size  # a second list of the form for more than 4 GB
    return int(_END.unpack_from(tail, at)[5])


class _Bounded(io.RawIOBase):
    """What is unpacked from a stream, up to so many bytes from its start."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most = stream, most

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _LARGEST_READ:  # such as a header that says that it is so long
            raise NotPacked("too_large", f"more than {_LARGEST_READ:,} bytes of it belong to one thing")
        data = self._stream.read(size)
        if self._stream.tell() > self._most:
            raise NotPacked("too_large", f"it unpacks to more than {self._most:,} bytes")
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_SET and offset > self._most:
            raise NotPacked("too_large", f"it unpacks to more than {self._most:,} bytes")
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


@contextmanager
def open_tar(file: IO[bytes], limits: Limits) -> Iterator[TarredFiles]:
    """Open a tar archive, plain or packed with gzip, bzip2 or xz; otherwise as :func:`open_zip`."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    unpack = next((opener for magic, opener in _OPENERS if start.startswith(magic)), None)
    bounded: Any = _Bounded(file if unpack is None else unpack(file), limits.most(size))
    try:
        archive = tarfile.TarFile(fileobj=bounded)
        entries = list(_plain_entries(archive, limits))
    except _DAMAGED as error:
        raise NotPacked("damaged", f"it is no tar file, or a damaged one: {str(error)[:200]}") from error
    with archive:
        yield TarredFiles(archive, entries, limits)


def _plain_entries(archive: tarfile.TarFile, limits: Limits) -> Iterator[tarfile.TarInfo]:
    for number, entry in enumerate(archive, 1):
        if number > limits.files:
            raise NotPacked("too_large", f"it holds more than allowed: {limits}")
        if entry.isreg() and not entry.issparse():
            yield entry

"""Small files that machines share: in a folder, or in any file system that fsspec knows, such as a bucket.

No database: SQLite needs locks that network disks and buckets do not have. Several machines may write the
same file at once. A file is put in place whole where the file system can do so; where it cannot, whoever
reads has to see from the content that it is a part.
"""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Optional, TypeVar

from ..errors import ConfigError, PlaceUnavailable

STORE = "FABULA_STORE"
"""The environment variable that names where stored files of runs are shared, such as ``s3://bucket/files``."""
VECTORS = "FABULA_VECTORS"
"""The same for vectors of pictures and texts."""
T = TypeVar("T")


class SharedFiles:
    """Files by name at an address.

    Args:
        address: a folder, or an address of a file system that fsspec knows.
        variable: the environment variable that names it, for messages.

    Raises:
        ConfigError: there is no such file system, or what it needs is not installed.
    """

    def __init__(self, address: str, variable: str) -> None:
        import fsspec

        self._where = f"{variable}={address}"
        try:
            self._files, root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError) as error:
            raise ConfigError(
                variable, what=f"{address} cannot be used: {error}",
                fix="name a folder, or an address whose fsspec package is installed, such as s3fs for s3://",
            ) from error  # fmt: skip
        self._root = root.rstrip("/")
        self._renames = "file" in self._files.protocol

    @classmethod
    def named_by(cls, variable: str) -> Optional["SharedFiles"]:
        """Return the files where an environment variable says; None where it is not set."""
        address = os.environ.get(variable)
        return _opened(address, variable) if address else None

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of the files that are there."""
        paths = {self._path(name): name for name in names}
        files: dict[str, Any] = self._tried(lambda: self._files.cat(list(paths), on_error="return"))
        contents = {}
        for path, content in files.items():
            name = next(known for known in (path, path.removeprefix("/")) if known in paths)
            if isinstance(content, bytes):
                contents[paths[name]] = content
            elif not isinstance(content, FileNotFoundError):
                raise self._unavailable(content) from content
        return contents

    def size(self, name: str) -> int | None:
        """Return the bytes that a file has, None where it is not there."""

        def size() -> int | None:
            try:
                return int(self._files.info(self._path(name))["size"])
            except FileNotFoundError:
                return None

        return self._tried(size)

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Put files there; those that are there are replaced."""
        placed = {self._path(name): content for name, content in contents.items()}
        written = {self._part(path): path for path in placed}

        def put() -> None:
            for folder in {path.rpartition("/")[0] for path in placed}:
                self._files.makedirs(folder, exist_ok=True)
            self._files.pipe({part: placed[path] for part, path in written.items()})
            for part, path in written.items():
                if part != path:
                    self._files.mv(part, path)

        self._tried(put)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name[:2]}/{name}"

    def _part(self, path: str) -> str:
        """Return where a file is written first: buckets put it in place whole, disks by renaming."""
        folder, _, name = path.rpartition("/")
        return f"{folder}/.{name}.{uuid.uuid4().hex}.part" if self._renames else path

    def _tried(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:  # file system boundary: each raises errors of its own
            raise self._unavailable(error) from error

    def _unavailable(self, error: BaseException) -> PlaceUnavailable:
        return PlaceUnavailable(
            self._where, what=f"the shared files cannot be used: {error or type(error).__name__}",
            fix="check the address, the network and your rights there, or unset the variable",
        )  # fmt: skip


@cache
def _opened(address: str, variable: str) -> SharedFiles:
    return SharedFiles(address, variable)

"""Rows of vectors that several machines share: one small file each, in a folder or bucket that fsspec reads.

No database: SQLite needs locks that network disks and buckets do not have. A file holds the SHA-256 of a row
and the row, so that one that is half written, or that something damaged, is a row that is not there.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ConfigError, TargetError
from .types import Rows

VARIABLE = "FABULA_VECTORS"
"""The environment variable that names the place: a folder, or an address such as ``s3://bucket/vectors``."""
_DIGEST = 32


class SharedRows:
    """Rows at an address, by key.

    Args:
        address: a folder, or an address of a file system that fsspec knows.

    Raises:
        ConfigError: there is no such file system, or what it needs is not installed.
    """

    def __init__(self, address: str) -> None:
        import fsspec

        self._address = address
        try:
            self._files, root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError) as error:
            raise ConfigError(
                VARIABLE, what=f"{address} cannot be used: {error}",
                fix="name a folder, or an address whose fsspec package is installed, such as s3fs for s3://",
            ) from error  # fmt: skip
        self._root = root.rstrip("/")

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Rows]:
        """Return the rows that are there.

        Raises:
            TargetError: the place cannot be read.
        """
        paths = {self._path(key): key for key in keys}
        files: dict[str, Any] = self._tried(lambda: self._files.cat(list(paths), on_error="return"))
        rows = {}
        for path, content in files.items():
            name = next(known for known in (path, path.removeprefix("/")) if known in paths)
            if isinstance(content, bytes):
                digest, row = content[:_DIGEST], content[_DIGEST:]
                if row and hashlib.sha256(row).digest() == digest:
                    rows[paths[name]] = np.frombuffer(row, dtype="<f4")
            elif not isinstance(content, FileNotFoundError):
                self._tried(lambda problem=content: _raise(problem))
        return rows

    def write(self, rows: Mapping[bytes, Rows]) -> None:
        """Put rows there; equal ones may be written by several machines at once.

        Raises:
            TargetError: the place cannot be written.
        """
        contents = {}
        for key, row in rows.items():
            content = row.astype("<f4").tobytes()
            contents[self._path(key)] = hashlib.sha256(content).digest() + content

        def put() -> None:
            for folder in {path.rpartition("/")[0] for path in contents}:
                self._files.makedirs(folder, exist_ok=True)
            self._files.pipe(contents)

        self._tried(put)

    def _path(self, key: bytes) -> str:
        name = key.hex()
        return f"{self._root}/{name[:2]}/{name}"

    def _tried(self, work: Any) -> Any:  # noqa: ANN401 - what the file system gives
        try:
            return work()
        except OSError as error:
            raise TargetError(
                f"{VARIABLE}={self._address}", what=f"the shared vectors cannot be used: {error}",
                fix="check the address and your rights there, or unset the variable",
            ) from error  # fmt: skip


def _raise(problem: BaseException) -> None:
    raise problem

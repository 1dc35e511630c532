"""Rows of vectors that several machines share: one small file each, in a folder or bucket that fsspec reads.

A file holds the SHA-256 of a row and the row, so that one that is half written, or that something damaged, is
a row that is not there.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Optional

import numpy as np

from ...schemas.shared_files import VECTORS, SharedFiles
from .types import Rows

_DIGEST = 32


class SharedRows:
    """Rows in shared files, by key."""

    def __init__(self, files: SharedFiles) -> None:
        self._files = files

    @classmethod
    def of_user(cls) -> Optional["SharedRows"]:
        """Return the rows where ``FABULA_VECTORS`` says; None where it is not set.

        Raises:
            ConfigError: there is no such file system, or what it needs is not installed.
        """
        files = SharedFiles.named_by(VECTORS)
        return None if files is None else cls(files)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Rows]:
        """Return the rows that are there.

        Raises:
            PlaceUnavailable: the place cannot be read.
        """
        rows = {}
        for name, content in self._files.read([key.hex() for key in keys]).items():
            digest, row = content[:_DIGEST], content[_DIGEST:]
            if row and hashlib.sha256(row).digest() == digest:
                rows[bytes.fromhex(name)] = np.frombuffer(row, dtype="<f4")
        return rows

    def write(self, rows: Mapping[bytes, Rows]) -> None:
        """Put rows there; equal ones may be written by several machines at once.

        Raises:
            PlaceUnavailable: the place cannot be written.
        """
        contents = {}
        for key, row in rows.items():
            content = row.astype("<f4").tobytes()
            contents[key.hex()] = hashlib.sha256(content).digest() + content
        self._files.write(contents)

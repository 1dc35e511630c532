"""Names that git gives to contents, which a Hub knows its files by."""

import hashlib
import os
from pathlib import Path

from ..schemas.plain_files import open_plain


def git_oid(path: Path) -> str:
    """Return git's name of a file's content: SHA-1 of a short head and the content, 40 hexadecimal digits."""
    with open_plain(path) as handle:
        size = os.fstat(handle.fileno()).st_size
        found = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        while piece := handle.read(1 << 20):
            found.update(piece)
    return found.hexdigest()

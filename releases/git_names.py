"""Names that git gives to contents, which a Hub knows its files by."""

import hashlib
from pathlib import Path


def git_oid(path: Path) -> str:
    """Return git's name of a file's content: SHA-1 of a short head and the content, 40 hexadecimal digits."""
    found = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as handle:
        while piece := handle.read(1 << 20):
            found.update(piece)
    return found.hexdigest()

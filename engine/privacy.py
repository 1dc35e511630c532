"""Files for their owner's eyes only: runs and releases that hold what must not be published."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

OTHERS = 0o077
"""The rights of everybody but the owner."""


def is_private(path: Path) -> bool:
    """Whether only its owner may use a file or folder; False for one that is not there."""
    with suppress(OSError):
        return not path.stat().st_mode & OTHERS
    return False


def keep_private(folder: Path) -> None:
    """Take a folder, and all that is in it, from everybody but their owner, whatever the umask says.

    What belongs to somebody else, or lies on a file system without rights, stays as it is.
    """
    for path in (folder, *_below(folder)):
        with suppress(OSError):  # a file may go meanwhile: the journal's side files do
            if not path.is_symlink() and not is_private(path):
                path.chmod(0o700 if path.is_dir() else 0o600)


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        yield from (Path(place) / name for name in (*folders, *files))

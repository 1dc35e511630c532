"""Comparing the folders of two runs, byte for byte; a difference is told by the names of files."""

from collections.abc import Collection
from pathlib import Path

_OWN = ("journal.sqlite", ".lock", "run.lock")


def differing(first: Path, second: Path, without: Collection[str] = ()) -> list[str]:
    """Return the names of files that two runs do not have alike.

    Args:
        first: the folder of a run.
        second: that of another.
        without: names of files that are not compared; journals and locks are none of them.

    Raises:
        ValueError: a folder holds nothing to compare.
    """
    files = [_files(folder, without) for folder in (first, second)]
    if not all(files):
        raise ValueError(f"there is nothing to compare in {first} or {second}")
    return sorted(
        name for name in files[0].keys() | files[1].keys() if files[0].get(name) != files[1].get(name)
    )


def _files(run: Path, without: Collection[str]) -> dict[str, bytes]:
    return {
        name: path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and not path.name.startswith(_OWN)
        if (name := path.relative_to(run).as_posix()) not in without
    }

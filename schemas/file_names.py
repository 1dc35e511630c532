"""Names from file systems and archives, compared in normal form C: macOS writes é as e and an accent."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path


def composed(name: str) -> str:
    """Return a name in normal form C, in which names are compared."""
    return unicodedata.normalize("NFC", name)


def by_name(names: Iterable[str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return name in normal form C -> the name as it is written there, and pairs of names that become one.

    Of such a pair the first is taken.
    """
    written: dict[str, str] = {}
    pairs: list[tuple[str, str]] = []
    for name in names:
        first = written.setdefault(composed(name), name)
        if first != name:
            pairs.append((first, name))
    return written, pairs


def below(folder: Path, name: str) -> Path:
    """Return the file or folder of a name below a folder, as its name is written there.

    That of exactly this name goes before one whose name is the same in normal form C; where there is neither,
    the path as it would be.
    """
    path = folder / name
    try:
        if name.isascii() or path.exists():
            return path
        for part in Path(name).parts:
            exact = folder / part
            entries = folder.iterdir() if folder.is_dir() and not exact.exists() else iter(())
            folder = next((entry for entry in entries if composed(entry.name) == composed(part)), exact)
    except OSError:  # a name that is too long, a folder that cannot be listed
        return path
    return folder

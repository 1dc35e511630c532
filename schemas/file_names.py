"""Names from file systems and archives, compared in normal form C: macOS writes é as e and an accent."""

import unicodedata
from collections.abc import Iterable


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

"""What other packages add by entry points, read once: it takes longer than all else in small commands."""

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


def plugins(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, of all packages on the path, in the order of their names."""
    return tuple(sorted(_installed(tuple(sys.path)).select(group=group), key=lambda entry: entry.name))


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> Any:  # noqa: ANN401, ARG001 - of another path, another answer
    return entry_points()

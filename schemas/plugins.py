"""What other packages add by entry points, read once, as it takes long; which versions are installed."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any


def plugins(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, of all packages on the path, in the order of their names."""
    return tuple(sorted(_installed(tuple(sys.path)).select(group=group), key=lambda entry: entry.name))


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> Any:  # noqa: ANN401, ARG001 - of another path, another answer
    return entry_points()


_DISTRIBUTIONS = {
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python"),
    "onnxruntime": ("onnxruntime-gpu", "onnxruntime"),
}
"""Module -> the distributions that have it, where they bear another name."""


def versions_of(modules: Iterable[str]) -> dict[str, str]:
    """Return module -> version of the installed distribution that has it, of those that are there."""
    versions = {}
    for module in modules:
        for distribution in _DISTRIBUTIONS.get(module, (module,)):
            with suppress(PackageNotFoundError):
                versions[module] = version(distribution)
                break
    return versions

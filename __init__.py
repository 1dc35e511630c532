"""Fabula builds, validates, releases and evaluates visual-story benchmarks.

Nothing is imported here: attributes are loaded on first use, so that ``import fabula`` is cheap.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "BuildOptions": ".builders.katha.building",
    "PackOptions": ".releases.options",
    "build_katha": ".kinds.verbs",
    "load": ".kinds.verbs",
    "pack": ".kinds.verbs",
    "validate": ".kinds.verbs",
    "verify": ".kinds.verbs",
}

__all__ = [
    "BuildOptions",
    "PackOptions",
    "__version__",
    "build_katha",
    "load",
    "pack",
    "validate",
    "verify",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type is that of the attribute loaded
    if name not in _LAZY:
        raise AttributeError(f"module 'fabula' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)


def __dir__() -> list[str]:
    return list(__all__)

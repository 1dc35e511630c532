"""Releases: pack a finished run, verify a release, load it, compare two, publish and fetch.

Attributes are loaded on first use, so that importing this package is cheap. No module has the name of one of
them: importing it would bind the module here in the function's place.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diffing.compare import ReleaseDiff, diff
    from .hub.fetch import FetchOptions, fetch, release_folder
    from .hub.publish import PublishOptions, plan_publishing, publish
    from .loading import Release
    from .official_export import export_package
    from .official_import import import_package
    from .official_lines import ImportOptions
    from .options import PackOptions
    from .pack_result import PackResult
    from .packing import pack
    from .selection import LeftOut
    from .suite_loading import SuiteRelease, load
    from .verification import VerifyReport, verify

_LAZY = {
    "ImportOptions": "official_lines",
    "ReleaseDiff": "diffing.compare",
    "diff": "diffing.compare",
    "export_package": "official_export",
    "import_package": "official_import",
    "LeftOut": "selection",
    "PackOptions": "options",
    "PackResult": "pack_result",
    "Release": "loading",
    "VerifyReport": "verification",
    "SuiteRelease": "suite_loading",
    "FetchOptions": "hub.fetch",
    "PublishOptions": "hub.publish",
    "fetch": "hub.fetch",
    "plan_publishing": "hub.publish",
    "publish": "hub.publish",
    "release_folder": "hub.fetch",
    "load": "suite_loading",
    "pack": "packing",
    "verify": "verification",
}

__all__ = [
    "FetchOptions",
    "ImportOptions",
    "LeftOut",
    "PackOptions",
    "PackResult",
    "PublishOptions",
    "Release",
    "ReleaseDiff",
    "SuiteRelease",
    "VerifyReport",
    "diff",
    "export_package",
    "fetch",
    "import_package",
    "load",
    "pack",
    "plan_publishing",
    "publish",
    "release_folder",
    "verify",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type is that of the attribute loaded
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return list(__all__)

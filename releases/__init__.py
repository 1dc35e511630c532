"""Releases: pack a finished run, verify a release, load it, compare two, publish and fetch.

Attributes are loaded on first use, so that importing this package is cheap. No module has the name of one of
them: importing it would bind the module here in the function's place.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diffing.compare import ReleaseDiff, diff
    from .event_form import SuiteRelease
    from .form import LeftOut
    from .forms import load, pack, verify
    from .hub.fetch import FetchOptions, fetch, release_folder
    from .hub.publish import PublishOptions, plan_publishing, publish
    from .loading import Release
    from .official_export import export_package
    from .official_import import import_package
    from .official_lines import ImportOptions
    from .options import PackOptions
    from .packing import PackResult
    from .verification import VerifyReport

_LAZY = {
    "ImportOptions": "official_lines",
    "ReleaseDiff": "diffing.compare",
    "diff": "diffing.compare",
    "export_package": "official_export",
    "import_package": "official_import",
    "LeftOut": "form",
    "PackOptions": "options",
    "PackResult": "packing",
    "Release": "loading",
    "VerifyReport": "verification",
    "SuiteRelease": "event_form",
    "FetchOptions": "hub.fetch",
    "PublishOptions": "hub.publish",
    "fetch": "hub.fetch",
    "plan_publishing": "hub.publish",
    "publish": "hub.publish",
    "release_folder": "hub.fetch",
    "load": "forms",
    "pack": "forms",
    "verify": "forms",
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

"""The ``release.json`` of an imported package: what it is, and what came in."""

import platform
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..schemas.canonical import Json, sha256_bytes, sha256_file
from ..schemas.ids import slug
from ..schemas.katha import SCHEMA_VERSION
from ..validators.dataset import IMPORTED
from ..validators.lines import ignore, read_document
from ..validators.statistics import HiddenCounts
from .documents import file_entries
from .layout import CROISSANT, FORMAT, JSONL_FILES, KIND
from .licence import licence
from .official import WHOLE, Package
from .official_lines import ImportOptions, PackageLines
from .official_rows import rows_digest
from .options import SEMVER, PackOptions

UNKNOWN_VERSION = "0.0.0"
"""The version of a package that states none in its metadata."""

_MOST = 16 * 1024 * 1024


def metadata(package: Package, name: str) -> Json:
    """Return a JSON document of the package, ``None`` if it is not there, is huge or cannot be parsed.

    Raises:
        InputError: it is there and cannot be read.
    """
    path = package.files.get(name)
    return None if path is None or path.stat().st_size > _MOST else read_document(path, name, ignore)


def described(package: Package, options: ImportOptions) -> PackOptions:
    """Return version, name and makers of a package, as the caller or its Croissant metadata state them.

    Raises:
        ConfigError: the caller's name or version has a wrong form.
    """
    document = metadata(package, CROISSANT)
    stated: dict[str, Any] = document if isinstance(document, dict) else {}
    version = stated.get("version")
    version = version if isinstance(version, str) and SEMVER.fullmatch(version) else UNKNOWN_VERSION
    makers = stated.get("creator")
    makers = makers if isinstance(makers, list) else [makers]
    names = [one.get("name") for one in makers if isinstance(one, dict)]
    creators = tuple(one for one in names if isinstance(one, str) and one.strip() and one.isprintable())
    name = options.name or slug(package.name) or "imported"
    return PackOptions(
        options.version or version,
        name=name,
        title=name,
        creators=creators or ("not stated in the package",),
    ).checked()


def import_document(
    draft: Path, package: Package, lines: PackageLines, about: PackOptions, hidden: HiddenCounts
) -> dict[str, Json]:
    """Return the content of ``release.json``.

    Args:
        draft: the folder, with every other file in it.
        package: what is imported.
        lines: its lines.
        about: version, name and makers.
        hidden: how many hidden stories there are that the package does not hold.
    """
    return {
        "format": FORMAT,
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "visibility": WHOLE if lines.hidden else "public",
        "version": about.version,
        "license": _licence(lines.licences),
        "created_at": next(iter(lines.created)) if len(lines.created) == 1 else None,
        "about": about.as_json(),
        "tools": {"python": platform.python_version(), "fabula": _own_version()},
        "prompts": {},
        IMPORTED: {
            "from": package.origin,
            "files": {name: _came(package, lines, name) for name in sorted(package.files)},
            "missing": list(package.missing),
            "skipped": list(package.skipped),
            "fields": list(lines.counts.rows()),
            "hidden_in_place": {"stories": len(lines.hidden), "ids": sorted(lines.hidden)},
        },
        "counts": lines.composition.totals,
        "hidden_test": hidden.as_json(),
        "splits": {split: counts["stories"] for split, counts in lines.composition.by_split.items()},
        "checks": {},
        "left_out": {
            "stories": [],
            "hidden_test_stories": 0,
            "files": [{"name": name, "reason": "not in the package"} for name in package.missing],
        },
        "records": {
            name: {row_id: sha256_bytes(content) for row_id, content in lines.made[name].items()}
            for name in JSONL_FILES
        },
        "files": file_entries(draft),
    }


def _came(package: Package, lines: PackageLines, name: str) -> dict[str, Json]:
    """Return what a file of the package was: size, hash, and of lines how many and their digest."""
    path = package.files[name]
    entry: dict[str, Json] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    if name in lines.came:
        entry |= {"rows": len(lines.came[name]), "rows_sha256": rows_digest(lines.came[name])}
    return entry


def _licence(stated: set[str]) -> str | None:
    """Return the licence that all records state, by its SPDX id where it has one."""
    if len(stated) != 1:
        return None
    (name,) = stated
    try:
        return licence(name).spdx_id
    except ConfigError:
        return name


def _own_version() -> str:
    from .. import __version__

    return __version__

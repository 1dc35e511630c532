"""Importing an official KathaBench package: a folder that loads, validates and is judged as a release is.

Every line is fitted into the type of its file. Every file of the package is kept beside, byte for byte, so
that :func:`.package_export.export_package` gives it back.
"""

import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ConfigError, TargetError
from ...schemas.canonical import Json, pretty_bytes, sha256_bytes, sha256_file
from ...schemas.katha import SCHEMA_VERSION
from ...schemas.layout import (
    CROISSANT,
    FORMAT,
    IMPORTED,
    JSONL_FILES,
    MORAL_BALANCE,
    RELEASE,
    STATISTICS,
    SUMS,
    WHOLE,
)
from ...schemas.text import slug, tallied, tallies
from ...validators.lines import ignore, read_document
from ...validators.statistics import HiddenCounts, hidden_counts, moral_balance
from ..hub.address import looks_like_reference
from ..loading import KIND
from ..options import SEMVER, PackOptions, licence
from ..pack.documents import checksums, file_entries
from ..target import require_free, staged
from .package import ORIGINALS, Package, copy_file, open_package
from .package_lines import ImportOptions, PackageLines, read_lines
from .package_types import plain

_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Imported:
    """What was imported."""

    folder: Path  # the folder made
    version: str  # the version that it states
    counts: dict[str, int]  # how many stories, scenes, transitions, questions and variants
    # file, field and count of what no type of ours has; it stands in ``official/``
    fields: tuple[dict[str, Json], ...]
    hidden: int  # how many stories of the hidden test split the package holds among the others
    missing: tuple[str, ...]  # the files of Table 23 that the package does not have
    skipped: tuple[str, ...]  # files and folders that begin with a dot, which are not taken over

    def as_json(self) -> dict[str, Json]:
        """Return the result as plain JSON."""
        return {
            "folder": str(self.folder),
            "version": self.version,
            "counts": dict(self.counts),
            "fields": list(self.fields),
            "hidden_in_place": self.hidden,
            "missing": list(self.missing),
            "skipped": list(self.skipped),
        }

    def lines(self) -> Iterable[str]:
        """Yield the result as lines for people."""
        counted = tallies(self.counts)
        yield f"{self.folder}: version {self.version}; {counted}"
        for one in self.fields[:_SHOWN]:
            yield f"  only in {ORIGINALS}/: {one['file']} {plain(one['field'])} ({one['count']})"
        if len(self.fields) > _SHOWN:
            yield f"  ... and {tallied(len(self.fields) - _SHOWN, 'more fields')}; {RELEASE} lists them all"
        if self.hidden:
            some = (
                "1 hidden-test story stays" if self.hidden == 1 else f"{self.hidden} hidden-test stories stay"
            )
            yield f"  {some} among the others; {RELEASE} lists them"
        if self.missing:
            yield f"  not in the package: {', '.join(self.missing)}"
        if self.skipped:
            yield f"  not taken over: {plain(', '.join(self.skipped))}"
        yield f"next: fabula validate {self.folder}"


def import_package(
    source: str | Path,
    out: str | Path,
    options: ImportOptions | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Import an official package from a folder or a repository on a Hub.

    ``source``: the folder with the files of Table 23, of which ``annotations.jsonl`` must be there; or a
    version on a Hub, such as ``user/package@1.0``. A folder of that name goes first.

    Returns:
        What was imported. The same package and options give the same bytes.
    """
    chosen = (options or ImportOptions()).checked()
    target = Path(out)
    require_free(target)
    package = _found(source, tell)
    if target.absolute().resolve().is_relative_to(package.folder.resolve()):
        raise TargetError(
            str(out),
            what=f"it lies inside the package {package.folder}",
            fix="choose another --out",
        )
    about = described(package, chosen)
    lines = read_lines(package, chosen)
    with staged(target.absolute()) as (draft,):
        _write_data(draft, package, lines)
        hidden = _write_statistics(draft, package, lines)
        document = import_document(draft, package, lines, about, hidden)
        (draft / RELEASE).write_bytes(pretty_bytes(document))
        (draft / SUMS).write_bytes(checksums(draft))
    return Imported(
        folder=target,
        version=about.version,
        counts=lines.composition.totals,
        fields=tuple(_unknown(lines)),
        hidden=len(lines.hidden),
        missing=package.missing,
        skipped=package.skipped,
    )


def _found(source: str | Path, tell: Callable[[str], None]) -> Package:
    """Return the package in a folder, or in a repository that is fetched into the cache."""
    if Path(source).exists() or not looks_like_reference(str(source)):
        return open_package(Path(source))
    from ..hub.fetch import fetch_repository

    fetched = fetch_repository(str(source), tell=tell)
    return open_package(fetched.folder, f"{fetched.reference.repo}@{fetched.commit}")


def _write_data(draft: Path, package: Package, lines: PackageLines) -> None:
    for name, rows in lines.made.items():
        _write_lines(draft / name, (rows[row_id] for row_id in sorted(rows)))
    for name, content in lines.gold.items():
        _write_lines(draft / name, content)
    for name, path in package.files.items():
        copy_file(path, draft / ORIGINALS / name)


def _unknown(lines: PackageLines) -> list[dict[str, Json]]:
    return [
        {"file": file, "field": place, "count": count}
        for (file, place), count in sorted(lines.unknown.items())
    ]


def _write_statistics(draft: Path, package: Package, lines: PackageLines) -> HiddenCounts:
    """Write the statistics of the records; return how many hidden stories there are elsewhere."""
    # Where a package holds its hidden stories, they are counted among the others.
    hidden = HiddenCounts() if lines.hidden else hidden_counts(metadata(package, STATISTICS))
    (draft / STATISTICS).write_bytes(pretty_bytes(lines.statistics.result(hidden)))
    (draft / MORAL_BALANCE).write_bytes(pretty_bytes(moral_balance(lines.labels)))
    return hidden


def _write_lines(path: Path, rows: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(row + b"\n" for row in rows)


UNKNOWN_VERSION = "0.0.0"
"""The version of a package that states none in its metadata."""

_MOST = 16 * 1024 * 1024


def metadata(package: Package, name: str) -> Json:
    """Return a JSON document of the package, ``None`` if it is not there, is huge or cannot be parsed."""
    path = package.files.get(name)
    return None if path is None or path.stat().st_size > _MOST else read_document(path, name, ignore)


def described(package: Package, options: ImportOptions) -> PackOptions:
    """Return version, name and makers of a package, as the caller or its Croissant metadata state them."""
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
    """Return the content of ``release.json``."""
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
            "files": {
                name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
                for name, path in sorted(package.files.items())
            },
            "missing": list(package.missing),
            "skipped": list(package.skipped),
            "fields": _unknown(lines),
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
    from ... import version

    return version.__version__

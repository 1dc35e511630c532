"""Exporting the official files: an imported package as it came, or a release of our own by the same names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError, TargetError, UserError
from ...schemas.canonical import Json, sha256_file
from ...schemas.layout import IMPORTED, RECORD_IDS, RELEASE, SUMS, files_in
from ...schemas.plain_files import open_plain
from ...schemas.text import tallied
from ...schemas.values import Issue
from ..loading import KIND, read_release_document
from ..target import require_free, staged
from ..verify.files import check_listing, check_records, check_release_document
from .package import ORIGINALS, TABLE_23, copy_file

_OURS = (RELEASE, SUMS)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was exported."""

    folder: Path  # the folder made
    files: dict[str, int | None]  # path -> number of lines of a file of lines, None of any other
    restored: bool  # whether it is an imported package, byte for byte as it came in
    missing: tuple[str, ...]  # the files of Table 23 that are not in it

    def as_json(self) -> dict[str, Json]:
        """Return the result as plain JSON."""
        return {
            "folder": str(self.folder),
            "files": dict(self.files),
            "restored": self.restored,
            "missing": list(self.missing),
        }

    def lines(self) -> Iterable[str]:
        """Yield the result as lines for people."""
        counted = ", ".join(
            f"{name} ({tallied(rows, 'lines')})" for name, rows in self.files.items() if rows is not None
        )
        yield f"{self.folder}: {tallied(len(self.files), 'files')}; {counted}"
        if self.restored:
            yield "  every file is that of the imported package, byte for byte"
        if self.missing:
            yield f"  not there: {', '.join(self.missing)}"


def export_package(folder: str | Path, out: str | Path) -> Exported:
    """Write the official files of a release into a folder of their own.

    An imported package comes out byte for byte as it came in. A release of our own gives all its files but
    ``release.json`` and ``SHA256SUMS``.
    """
    source, target = Path(folder), Path(out)
    document = read_release_document(source, KIND)
    _require_public(source, document)
    if target.absolute().resolve().is_relative_to(source.resolve()):
        raise TargetError(
            str(out),
            what=f"it lies inside the release {folder}",
            fix="choose a folder elsewhere",
        )
    require_free(target)
    _require_untouched(source, document)
    imported = document.get(IMPORTED)
    with staged(target.absolute()) as (draft,):
        files = _copy(source, draft) if imported is None else _restored(source, draft, imported)
    missing = tuple(name for name in TABLE_23 if name not in files)
    return Exported(target, dict(sorted(files.items())), imported is not None, missing)


def _require_public(folder: Path, document: Mapping[str, Json]) -> None:
    if document.get("visibility") == "hidden":
        raise _refused(str(folder), "a public release", "the hidden test of one", "give the public folder")


def _require_untouched(folder: Path, document: Mapping[str, Json]) -> None:
    found: list[Issue] = []
    again = "import the package again" if IMPORTED in document else "pack the run again"
    try:
        found += check_listing(folder, document, RECORD_IDS)
        found += check_release_document(folder, document)
        found += check_records(folder, document, lambda _name, _row: None, RECORD_IDS)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise _refused(
            str(folder / RELEASE), "what packing or importing writes", str(error), again
        ) from error
    if found:
        raise InputError(
            [
                UserError(
                    f"{folder}/{one.where}",
                    what=f"the folder was changed after it was packed or imported: {one.message}",
                    fix=again,
                )
                for one in found
            ]
        )


def _copy(folder: Path, draft: Path) -> dict[str, int | None]:
    files: dict[str, int | None] = {}
    for name in files_in(folder):
        if name not in _OURS:
            copy_file(folder / name, draft / name)
            files[name] = _count(draft / name) if name.endswith(".jsonl") else None
    return files


def _restored(folder: Path, draft: Path, imported: Mapping[str, Json]) -> dict[str, int | None]:
    """Write the files of an imported package; nothing is exported that is not what came in."""
    there = set(files_in(folder))
    files: dict[str, int | None] = {}
    for name, entry in imported["files"].items():
        kept = f"{ORIGINALS}/{name}"
        if kept not in there:  # names in a document may lead anywhere
            raise _differs(folder / RELEASE)
        copy_file(folder / kept, draft / name)
        if sha256_file(draft / name) != entry["sha256"]:
            raise _differs(folder / kept)
        files[name] = _count(draft / name) if name.endswith(".jsonl") else None
    return files


def _count(path: Path) -> int:
    with open_plain(path) as lines:
        return sum(1 for _ in lines)


def _differs(path: Path) -> InputError:
    return _refused(
        str(path),
        "every file of the imported package in official/",
        "others, or not all of them",
        "import the package again",
    )


def _refused(where: str, expected: str, found: str, fix: str) -> InputError:
    return InputError([UserError(where, expected=expected, found=found, fix=fix)])

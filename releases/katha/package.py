"""The official KathaBench package (Table 23): its files by name, and where an import keeps them."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from ...errors import InputError, TargetError, UserError
from ...schemas.canonical import Json, Plain, canonical_bytes, sha256_file
from ...schemas.katha import HumanValidation, ProducerLine, Question, Scene, StoryRecord, Transition, Variant
from ...schemas.paths import (
    ANNOTATIONS,
    CARD,
    CROISSANT,
    IMPORTED,
    LICENSE,
    MORAL_BALANCE,
    PRODUCERS,
    RECORD_IDS,
    RELEASE,
    REVIEWS,
    SOURCE_MANIFEST,
    STATISTICS,
    SUMS,
    VARIANTS,
    VOTE_FILES,
    files_in,
    pointer,
)
from ...schemas.plain_files import alike, open_plain, reason_of, type_reason
from ...schemas.text import tallied
from ...schemas.values import Issue, Own
from ...validators.report import as_user_error
from ..loading import KIND, read_release_document
from ..target import require_free, staged
from ..verify.files import AGAIN, check_listing, check_records, check_release_document, tampering

TYPES: dict[str, type[Own]] = {
    VARIANTS: Variant,
    ANNOTATIONS: StoryRecord,
    REVIEWS: HumanValidation,
    PRODUCERS: ProducerLine,
}
"""File -> the type of its lines, in the order of reading; ``producers.jsonl`` is ours, not of Table 23."""

IDS = {VARIANTS: "variant_id", ANNOTATIONS: "story_id", REVIEWS: "story_id", PRODUCERS: "id"}
"""File -> the field that names a line."""

GOLD = tuple(name for name in VOTE_FILES if name != REVIEWS)
"""Files of lines whose shape the paper does not give; their lines are kept as they are."""

TABLE_23 = (
    ANNOTATIONS, VARIANTS, REVIEWS, *GOLD, STATISTICS, MORAL_BALANCE, CARD, SOURCE_MANIFEST, CROISSANT,
    LICENSE,
)  # fmt: skip
"""The files of the official package."""

ORIGINALS = "official"
"""Folder of an import that holds every file of the package, byte for byte."""


@dataclass(frozen=True, slots=True)
class Package:
    """An official package on disk."""

    folder: Path  # where it is
    origin: str  # what it is called: the name of the folder, or repository and commit
    files: Mapping[str, Path]  # path in the package, with forward slashes -> the file
    # names that begin with a dot, files and folders, which belong to tools and not to the package
    skipped: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its folder or repository."""
        return self.origin.partition("@")[0].rpartition("/")[2]

    @property
    def missing(self) -> tuple[str, ...]:
        """The files of Table 23 that are not there."""
        return tuple(name for name in TABLE_23 if name not in self.files)


def open_package(folder: Path, origin: str | None = None) -> Package:
    """Find the files of a package; none is opened."""
    if not folder.is_dir():
        found = "a file" if folder.is_file() else f"nothing there{alike(folder)}"
        raise _not_one(folder, found, "give the folder that holds the files of the package")
    if (folder / RELEASE).is_file():
        raise _not_one(
            folder, f"a release of Fabula, with a {RELEASE}", "use it as it is: it needs no import"
        )
    if not (folder / ANNOTATIONS).exists():
        there = ", ".join(sorted(_names(folder))[:5]) or "no file"
        raise _not_one(folder, f"no {ANNOTATIONS} ({there})", "give the folder that holds it")
    skipped: list[str] = []
    files = dict(sorted(_walk(folder, skipped)))
    strange = [path for path in files if not _plain(folder, files[path])]
    if strange:
        raise InputError(
            [
                UserError(
                    str(files[path]),
                    what="it is a link that leads out of the package, or a special file",
                    fix="put the file itself there",
                )
                for path in strange
            ]
        )
    return Package(folder, origin or folder.resolve().name, files, tuple(sorted(skipped)))


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError as error:
        raise _unreadable(error) from error


def _walk(folder: Path, skipped: list[str]) -> Iterator[tuple[str, Path]]:
    for place, folders, names in os.walk(folder, onerror=_raise):
        here = Path(place)
        for name in (*folders, *names):
            if name.startswith("."):
                skipped.append((here / name).relative_to(folder).as_posix())
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*names, *links):
            if not name.startswith("."):
                yield (here / name).relative_to(folder).as_posix(), here / name


def _raise(error: OSError) -> None:
    raise _unreadable(error) from error


def _unreadable(error: OSError) -> InputError:
    found, fix = reason_of(error), "check its permissions"
    expected = "a folder and files that can be read"
    return InputError.one(str(error.filename), expected=expected, found=found, fix=fix)


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file into a new one, whose folder is made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = open_plain(source, follow=True)
    except OSError as error:
        raise _unreadable(error) from error
    with file, target.open("wb") as copy:
        shutil.copyfileobj(file, copy)


def _plain(folder: Path, file: Path) -> bool:
    """Return whether a file is one, in the folder; the Hub's cache keeps contents in ``blobs`` beside it."""
    if not file.is_file():
        return False
    root = folder.resolve()
    return any(file.resolve().is_relative_to(place) for place in (root, root.parent.parent / "blobs"))


def _not_one(folder: Path, found: str, fix: str) -> InputError:
    expected = f"the folder of an official KathaBench package, with {ANNOTATIONS}"
    return InputError.one(str(folder), expected=expected, found=found, fix=fix)


# -- A line of somebody else's file as a type of ours: what the type lacks is left out, gaps are filled
#
# Nothing is lost by it: an import keeps every file of the package as it came.

Kind = TypeVar("Kind", bound=Own)
_MAY_BE_EMPTY = frozenset(
    {"characters", "objects", "visual_must_show", "evidence_scenes", "correction_flags"}
)
"""Lists that say something by being empty, so that none at all may be read as that."""


def fit(own: type[Kind], line: Mapping[str, Json], unknown: set[str]) -> Kind | list[tuple[str, str]]:
    """Return a line as a type of ours, or what of it cannot be held: JSON pointer and reason.

    Absent fields that may be null are null, absent lists that may be empty are empty, and ids and positions
    of parts follow from their place.
    """
    filled = _filled(own, line, line.get("story_id"), 0, "", unknown)
    try:
        return own.model_validate_json(canonical_bytes(filled), strict=True)
    except ValidationError as error:
        return [(pointer(detail["loc"]), type_reason(detail)) for detail in error.errors(include_url=False)]


def _filled(
    own: type[Own], value: Mapping[str, Json], story_id: Json, position: int, at: str, unknown: set[str]
) -> dict[str, Json]:
    by_place: dict[tuple[type[Own], str], Json] = {
        **{(part, "story_id"): story_id for part in (Scene, Transition, Question)},
        (Scene, "scene_index"): position + 1,
        (Transition, "from_scene"): position + 1,
        (Transition, "to_scene"): position + 2,
    }
    unknown |= {f"{at}{pointer((name,))}" for name in value.keys() - own.model_fields.keys()}
    made: dict[str, Json] = {}
    for name, info in own.model_fields.items():
        annotation: Any = info.annotation
        part, found, here = _part_of(annotation), value.get(name), f"{at}/{name}"
        if name not in value:
            if (own, name) in by_place:
                made[name] = by_place[own, name]
            elif name in _MAY_BE_EMPTY:
                made[name] = []
            elif info.is_required() and NoneType in get_args(annotation):
                made[name] = None
        elif part is not None and isinstance(found, dict):
            made[name] = _filled(part, found, story_id, 0, here, unknown)
        elif part is not None and isinstance(found, list):
            made[name] = [
                _filled(part, one, story_id, number, f"{here}/*", unknown) if isinstance(one, dict) else one
                for number, one in enumerate(found)
            ]
        else:
            made[name] = found
    return made


@cache
def _part_of(annotation: Any) -> type[Own] | None:  # noqa: ANN401 - annotations are any object
    """Return the type of ours that a field holds, alone, in a list or beside null."""
    if isinstance(annotation, type) and issubclass(annotation, Own):
        return annotation
    return next((part for one in get_args(annotation) if (part := _part_of(one)) is not None), None)


def plain(text: str) -> str:
    """Return a text from a package as it may be shown: on one line, without control characters, cut."""
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:197]}..."


# -- Exporting the official files: an imported package as it came, or a release of our own by the same names

_OURS = (RELEASE, SUMS)


@dataclass(frozen=True, slots=True)
class Exported(Plain):
    """What was exported."""

    folder: Path  # the folder made
    files: dict[str, int | None]  # path -> number of lines of a file of lines, None of any other
    restored: bool  # whether it is an imported package, byte for byte as it came in
    missing: tuple[str, ...]  # the files of Table 23 that are not in it

    def lines(self) -> Iterable[str]:
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
    again = "import the package again" if IMPORTED in document else AGAIN
    try:
        found += check_listing(folder, document, RECORD_IDS)
        found += check_release_document(folder, document)
        found += check_records(folder, document, lambda _name, _row: None, RECORD_IDS)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise _refused(
            str(folder / RELEASE), "what packing or importing writes", str(error), again
        ) from error
    if cause := tampering(folder, found, again):
        raise InputError([cause])
    if found:
        raise InputError([as_user_error(one) for one in found])


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
    return InputError.one(where, expected=expected, found=found, fix=fix)

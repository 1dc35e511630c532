"""The official KathaBench package (Table 23): its files by name, and where an import keeps them."""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError, UserError
from ...schemas.katha import HumanValidation, ProducerLine, StoryRecord, Variant
from ...schemas.layout import (
    ANNOTATIONS,
    CARD,
    CROISSANT,
    LICENSE,
    MORAL_BALANCE,
    PRODUCERS,
    RELEASE,
    REVIEWS,
    SOURCE_MANIFEST,
    STATISTICS,
    VARIANTS,
    VOTE_FILES,
)
from ...schemas.plain_files import open_plain
from ...schemas.values import Own

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
        found = "a file" if folder.is_file() else "nothing there"
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
    found, fix = error.strerror or str(error), "check its permissions"
    expected = "a folder and files that can be read"
    return InputError([UserError(str(error.filename), expected=expected, found=found, fix=fix)])


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
    return InputError([UserError(str(folder), expected=expected, found=found, fix=fix)])

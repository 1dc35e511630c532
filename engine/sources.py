"""What a run is made from: its source files and folders, known by their content."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import digest, sha256_file
from ..schemas.plain_files import reason_of
from ..schemas.text import quoted

EDITS, EDITS_ROLE = "edits.jsonl", "edits"
_NOWHERE = "a link that leads nowhere"
_NO_FILE = "neither a file nor a folder"
_UNREADABLE = "a file that cannot be read"


@dataclass(frozen=True, slots=True)
class Source:
    """One source of a run."""

    role: str  # what it holds: ``stories``, ``records``, ``answers`` or ``edits``
    path: Path  # a file or a folder
    # when it was added to a run that was there already, RFC 3339; None for one of the first
    added_at: str | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A source and the digest of its content."""

    role: str
    name: str
    path: Path
    sha256: str
    added_at: str | None = None

    def field(self) -> dict[str, str]:
        """Return what the first stage sees of it: no path, so that moving a file changes nothing."""
        return source_field(self.role, self.name, self.sha256, self.added_at)

    def as_json(self, folder: Path) -> dict[str, str]:
        """Return what ``run.json`` in that folder says of it."""
        return {**self.field(), "path": path_from(folder, self.path)}


def path_from(folder: Path, path: Path) -> str:
    """Return a path relative to a folder, so that both can be moved together.

    Links on the way to both are followed, as ``..`` means another folder behind them. On another drive of
    Windows, the path stays as it is.
    """
    inside = Path(os.path.realpath(path.absolute().parent), path.name)
    try:
        return Path(os.path.relpath(inside, os.path.realpath(folder))).as_posix()
    except ValueError:
        return str(path)


def path_in(folder: Path, path: str) -> Path:
    """Return where :func:`path_from` points to; earlier versions wrote some paths as they were, absolute."""
    return Path(os.path.normpath(Path(os.path.realpath(folder), path)))


def source_field(role: str, name: str, sha256: str, added_at: str | None) -> dict[str, str]:
    """Return what the first stage sees of a source; ``added_at`` only of one that was added later."""
    field = {"role": role, "name": name, "sha256": sha256}
    return field if added_at is None else {**field, "added_at": added_at}


def fingerprint(source: Source) -> Fingerprint:
    """Read a source and return its fingerprint.

    A folder's digest covers the names and contents of all files below it, except hidden ones. Of a link that
    leads nowhere, of a pipe or device, and of a file that may not be read, it covers the name: whether that
    matters is for the stage that opens it.
    """
    path = Path(source.path).absolute()
    if path.is_dir():
        listing = [
            [file.relative_to(path).as_posix(), _content(file)]
            for folder, names, files in os.walk(path)
            if not _prune(names)
            for file in (Path(folder) / name for name in files)
            if not file.name.startswith(".")
        ]
        sha256 = digest(sorted(_printable(name, sha) for name, sha in listing))
    else:
        sha256 = sha256_file(path)
    return Fingerprint(source.role, _printable(path.name, "")[0], path, sha256, source.added_at)


def _content(file: Path) -> str:
    if file.is_file():
        try:
            return sha256_file(file)
        except OSError:
            return _UNREADABLE
    return _NO_FILE if file.exists() else _NOWHERE


def _prune(names: list[str]) -> bool:
    """Leave hidden folders out of the walk; always False."""
    names[:] = [name for name in names if not name.startswith(".")]
    return False


def _printable(name: str, sha256: str) -> list[str]:
    """Return a file name, which need not be valid UTF-8, as text that can be stored."""
    return [name.encode("utf-8", "backslashreplace").decode("utf-8"), sha256]


def with_edits(sources: tuple[Source, ...], folder: Path) -> tuple[Source, ...]:
    """Return the sources with the run's own edits last, if there are any now."""
    own = Source(EDITS_ROLE, folder.absolute() / EDITS)
    others = tuple(source for source in sources if place_of(source)[1] != place_of(own)[1])
    return (*others, own) if own.path.exists() else others


def with_added(sources: tuple[Source, ...], known: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the sources that are named, and behind them those that the run was extended with.

    What a run was extended with stays part of it, at the time when it was added, named again or not.
    """
    if not sources:
        return known
    times = {place_of(source): source.added_at for source in known}
    named = [replace(source, added_at=source.added_at or times.get(place_of(source))) for source in sources]
    places = {place_of(source) for source in named}
    missing = (source for source in known if source.added_at is not None)
    return (*named, *(source for source in missing if place_of(source) not in places))


def relocated(
    known: Sequence[Mapping[str, str]], sources: tuple[Source, ...], given: Sequence[Path]
) -> tuple[Source, ...]:
    """Return the sources of a run, those that have moved at their new places."""
    moved = list(sources)
    for base in given:
        listed = [base, *(base / entry["name"] for entry in known)] if base.is_dir() else [base]
        try:
            prints = {
                fingerprint(Source("", path)).sha256: path for path in listed if path == base or path.exists()
            }
        except OSError as error:
            raise InputError([unreadable(base, error)]) from error
        here = [number for number, entry in enumerate(known) if entry["sha256"] in prints]
        if not here:
            raise ConfigError(
                f"--sources {base}", what="no source of the run is there as it was",
                fix=f"the run was made from {', '.join(entry['name'] for entry in known)}",
            )  # fmt: skip
        for number in here:
            moved[number] = replace(moved[number], path=prints[known[number]["sha256"]])
    return tuple(moved)


def place_of(source: Source) -> tuple[str, str]:
    """Return role and place of a source, however its path is written."""
    return source.role, os.path.realpath(source.path)


def fingerprints(sources: tuple[Source, ...], folder: Path) -> tuple[Fingerprint, ...]:
    """Return the fingerprints of a run's sources, with the run's own edits last, if there are any."""
    prints, problems = [], []
    for source in with_edits(sources, folder):
        try:
            str(source.path.absolute()).encode("utf-8")
            prints.append(fingerprint(source))
        except OSError as error:
            run = folder if (folder / "run.json").exists() else None
            problems.append(unreadable(source.path, error, run))
        except UnicodeEncodeError:
            problems.append(_unwritable_name(source.path))
    if problems:
        raise InputError(problems)
    return tuple(prints)


def _unwritable_name(path: Path) -> UserError:
    return UserError(
        ascii(str(path)), what="the name is not text in this locale",
        fix="rename the file or folder, or move it elsewhere",
    )  # fmt: skip


def unreadable(path: Path, error: OSError, run: Path | None = None) -> UserError:
    """Return the error for a source that cannot be read; of a run that is there, it may have moved."""
    retry = f"fabula run retry {quoted(run)} --sources PATH" if run else ""
    return UserError(
        str(path),
        what=f"cannot be read: {reason_of(error)}",
        fix="check the path and its permissions" + (f"; if it has moved: {retry}" if retry else ""),
    )  # fmt: skip

"""Folders of outputs: what lies in them, by unit, and ``outputs.json`` for what is called otherwise."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from ...errors import ConfigError, InputError, UserError
from ...schemas.paths import format_path
from ...schemas.plain_files import alike, below, composed, read_plain, reason_of, type_reason
from ...schemas.text import counted
from ...schemas.values import Issue, Own
from .layout import NOTHING_FOUND, Key, Names, finding, listed_names

MANIFEST = "outputs.json"
_MOST_BYTES = 20_000_000
_LONGEST = 80  # characters of a name that a message shows
_LOOKED_INTO = 1000  # folders that may be those of methods
_SYSTEM_FILES = ("thumbs.db", "desktop.ini")


class NamedFolders(Own):
    """``outputs.json`` where every story has a folder. Everything in it is optional."""

    folders: dict[str, str] = Field(
        default_factory=dict,
        description="Story id -> its folder below this one, where that bears no name by which it is known.",
    )


class NamedFiles(Own):
    """``outputs.json`` where every prompt has a file. Everything in it is optional."""

    files: dict[str, str] = Field(
        default_factory=dict,
        description="File name in the suite -> the file below this folder, or below the folder of each seed.",
    )


Manifest = TypeVar("Manifest", bound=Own)


_FIX = "see docs/outputs.md for the layout"


def read_manifest(folder: Path, kind: type[Manifest]) -> Manifest:
    """Return the manifest of a folder of outputs; an empty one where there is none."""
    if not folder.is_dir():
        found = "a file" if folder.exists() else f"nothing there{alike(folder)}"
        raise InputError([_problem(str(folder), "the folder of a method's outputs", found)])
    path = folder / MANIFEST
    if not path.exists():
        return kind()
    try:
        data = read_plain(path, _MOST_BYTES, follow=True)
        return kind.model_validate(json.loads(data, object_pairs_hook=pairs_once))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise InputError(
            [_wrong_key(f"{path} {format_path(detail['loc'])}", detail, kind) for detail in details]
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError([_problem(str(path), "a JSON object", reason_of(error)[:200])]) from error


def named_places(
    folder: Path, field: str, named: Mapping[str, str], known: Callable[[str], bool], what: str
) -> dict[str, Path]:
    """Return the places that ``outputs.json`` gives stories or prompts, resolved, each below the folder.

    ``named``: id -> place, as the manifest has it.
    """
    problems: list[UserError] = []
    places: dict[str, Path] = {}
    noun = field.removesuffix("s")
    for name, place in sorted(named.items()):
        try:
            path = _below(folder, place, noun)
            others = [one for one, its in places.items() if its == path]
            if not known(name):
                raise ValueError(f"{name} is not a {what}")
            if others:
                raise ValueError(f"{place!r} is also the {noun} of {others[0]}")
            places[name] = path
        except ValueError as wrong:
            where, own = f"{folder / MANIFEST} $.{field}.{name}", what.partition(" ")[0]
            fix = f'write "{name}": "{noun.upper()}", with the {own}\'s own {noun}'
            problems.append(UserError(where, what=str(wrong), fix=fix))
    if problems:
        raise InputError(problems)
    return places


def entries(folder: Path) -> Iterator[Path]:
    """Yield what lies in a folder by name, without hidden files and those that systems leave behind."""
    try:
        there = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError([_problem(str(folder), "a folder that can be read", str(error.strerror))]) from error
    for entry in there:
        if not entry.name.startswith(".") and entry.name.lower() not in _SYSTEM_FILES:
            yield entry


def folders_in(folder: Path) -> list[Path]:
    return [entry for entry in entries(folder) if entry.is_dir()]


@dataclass(frozen=True)
class Form:
    """How the outputs of a kind lie in a method's folder."""

    unit: str  # story, episode, prompt
    endings: tuple[str, ...]  # of the files that are looked for
    expected: str  # what should lie in the folder, in words
    # how many numbers a part is called by; 0 where a unit is one file. Where it is 1, no file is a unit.
    numbers: int = 1
    unknown: str = "stray-file"  # code of a folder that is of no unit
    cure: str = f"rename it, name it in {MANIFEST}, or move it elsewhere"  # for such a folder
    ours: tuple[str, ...] = (MANIFEST,)  # names of files that are no outputs


@dataclass(slots=True)
class Place:
    """What lies in a method's folder of one unit."""

    folder: Path | None = None  # its own folder
    wholes: list[Path] = field(default_factory=list)  # files called like it, by name
    parts: list[tuple[Key, Path]] = field(default_factory=list)  # files beside the folders: ``UNIT_PART``


@dataclass(frozen=True, slots=True)
class Places:
    """What lies in a method's folder."""

    of: dict[str, Place]  # unit -> what there is; only units of which there is something
    issues: list[Issue]  # what is of no unit, and what is not guessed


def walk(folder: Path, names: Names, form: Form, named: Mapping[str, Path] | None = None) -> Places:
    """Return what lies in a method's folder, by unit.

    What ``outputs.json`` says counts first, then a folder that bears the unit's id, then the only one whose
    name means that unit alone. Nothing else is guessed.

    ``named``: unit -> its folder, as ``outputs.json`` says.
    """
    places = {unit: Place(home) for unit, home in (named or {}).items()}
    tops = (home.relative_to(folder.resolve()).parts[0] for home in (named or {}).values())
    ours = {*map(composed, form.ours), *map(composed, tops)}
    issues: list[Issue] = []
    claims: dict[str, list[Path]] = {}
    there = [(composed(entry.name), entry) for entry in entries(folder)]
    for name, entry in sorted(there, key=lambda each: each[0] not in names.ids):
        if name in ours:
            continue
        is_folder = entry.is_dir()
        fits = not is_folder and entry.suffix.lower() in form.endings
        units = names.of(name if is_folder or name in names.ids else entry.stem) if is_folder or fits else []
        split = names.flat(entry.stem, form.numbers or 1) if fits else None
        if is_folder and len(units) == 1:
            places.setdefault(units[0], Place())
            claims.setdefault(units[0], []).append(entry)
        elif fits and form.numbers != 1 and len(units) == 1:
            places.setdefault(units[0], Place()).wholes.append(entry)
        elif split is not None:
            places.setdefault(split[0], Place()).parts.append((split[1], entry))
        else:
            issues.append(_stranger(entry, is_folder, units, form))
    for unit, home in places.items():
        folders = claims.get(unit, [])
        if home.folder is None and folders and (len(folders) == 1 or composed(folders[0].name) in names.ids):
            home.folder = folders.pop(0)
        issues += _rivals(folders, unit, home, form)
        if home.folder is not None:
            home.parts.clear()
    return Places({unit: home for unit, home in places.items() if home != Place()}, issues)


def _stranger(entry: Path, is_folder: bool, units: Sequence[str], form: Form) -> Issue:
    """Return the finding about an entry that is taken for no unit."""
    if len(units) > 1:
        message = f"{counted(len(units), form.unit)} bear this name ({listed_names(units)}): not guessed"
        return _warning(entry, "ambiguous-title", message, f"rename it to the id of its {form.unit}")
    code, cure = (form.unknown, form.cure) if is_folder else ("stray-file", "move it elsewhere")
    return _warning(entry, code, f"expected {form.expected}", cure)


def _rivals(folders: Sequence[Path], unit: str, home: Place, form: Form) -> Iterator[Issue]:
    """Yield the findings about what is called like a unit and not taken for it."""
    for entry in folders:
        if home.folder is not None:
            message = f"called like {unit}, which has another folder"
            yield _warning(entry, form.unknown, message, "keep one of the two folders")
        else:
            others = ", ".join(shown(other.name) for other in folders if other is not entry)
            message = f"called like {unit}, and so is {others}: not guessed"
            yield _warning(entry, "ambiguous-title", message, f"rename the right one to {unit}")
    for _, file in home.parts if home.folder is not None else ():
        yield _warning(file, "stray-file", f"{unit} has a folder; this is beside it", "move it into that")


def _warning(entry: Path, code: str, message: str, cure: str) -> Issue:
    return finding(shown(entry.name), code, message, cure, "warning")


def nothing_found(folder: Path, names: Names, form: Form, otherwise: tuple[str, str]) -> Issue:
    """Return the finding where nothing that is judged is there.

    ``otherwise``: message and cure where the folder does not hold those of methods.
    """
    below = folders_in(folder)[:_LOOKED_INTO]
    methods = [shown(entry.name) for entry in below if _is_method(entry, names, form)]
    message, cure = otherwise
    if methods:
        message = f"this folder holds the outputs of {counted(len(methods), 'method')}"
        cure = f"give one of: {listed_names(methods)}"
    return finding(".", NOTHING_FOUND, message, cure)


def _is_method(folder: Path, names: Names, form: Form) -> bool:
    try:
        inside = (folder, *(seed for seed in folders_in(folder) if seed.name.startswith("seed_")))
        return (folder / MANIFEST).is_file() or any(walk(below, names, form).of for below in inside)
    except InputError:  # it cannot be read
        return False


def shown(name: str) -> str:
    """Return a name as it can be printed everywhere: other characters are written as their numbers."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in name[:200]
    )


def require_distinct(names: Sequence[str]) -> None:
    """Refuse folders of outputs with the same name, which is the method's."""
    bare = [composed(name) for name in names]
    twice = sorted({name for name in bare if bare.count(name) > 1})
    if twice:
        raise ConfigError(
            "--outputs",
            what=f"several folders are called {', '.join(twice)}",
            fix="rename one folder: its name is the method's",
        )


def _below(folder: Path, name: str, noun: str) -> Path:
    path = Path(name)
    shown = repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name:
        raise ValueError(f"{shown} is not a {noun} below this one")
    try:
        resolved = below(folder, name).resolve()
        is_there = resolved.is_dir() or noun != "folder"
    except (OSError, RuntimeError):  # a name that is too long, a link to itself
        is_there = False
    if not is_there:
        raise ValueError(f"there is no {noun} {shown}")
    if not resolved.is_relative_to(folder.resolve()):
        raise ValueError(f"{shown} is a link that leads out of this folder")
    return resolved


def pairs_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object that JSON pairs make."""
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the key {twice[0]!r} twice")
    return dict(pairs)


def _wrong_key(where: str, detail: ErrorDetails, kind: type[Own]) -> UserError:
    """Return the error of a key that is not known, or whose value is not allowed."""
    if detail["type"] != "extra_forbidden" or len(detail["loc"]) > 1:
        return UserError(where, what=type_reason(detail), fix=_FIX)
    key, known = str(detail["loc"][0]), list(kind.model_fields)
    close = get_close_matches(key, known, n=1)
    fix = f"did you mean {close[0]!r}?" if close else f"remove it; the known keys are {', '.join(known)}"
    return UserError(where, what=f"unknown key {key!r}", fix=fix)


def _problem(where: str, expected: str, found: str) -> UserError:
    return UserError(where, expected=expected, found=found, fix=_FIX)

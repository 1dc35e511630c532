"""Folders of outputs: what lies in them, and ``outputs.json`` for what does not bear the name of its unit."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from ...errors import ConfigError, InputError, UserError
from ...schemas.paths import format_path
from ...schemas.plain_files import alike, below, composed, read_plain, reason_of, type_reason
from ...schemas.values import Own

MANIFEST = "outputs.json"
_MOST_BYTES = 20_000_000
_LONGEST = 80  # characters of a name that a message shows
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
    """Return the folders that lie in a folder, by name."""
    return [entry for entry in entries(folder) if entry.is_dir()]


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
    """Return a place below a folder."""
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

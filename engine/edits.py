"""``edits.jsonl``: corrections of single fields, as data, applied by a stage of the pipeline."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from ..errors import InputError, UserError
from ..schemas.canonical import canonical_bytes, write_atomic
from ..schemas.paths import parse_path
from ..schemas.values import Edit
from .journal_file import unwritable
from .manifest import read_manifest
from .sources import EDITS as NAME
from .sources import unreadable

__all__ = ["NAME", "append_edit", "read_edits"]


def append_edit(folder: Path, edit: Edit) -> None:
    """Add one correction to a run's ``edits.jsonl``; the next build or retry applies it.

    The file is replaced as a whole, so that a kill never leaves half a line.

    Raises:
        RunError: the folder is not a run.
        InputError: the file there is damaged, or the correction's path is not a JSON path.
        TargetError: the folder cannot be written.
    """
    folder = Path(folder)
    read_manifest(folder)
    problem = _bad_path("the edit", edit)
    if problem:
        raise InputError([problem])
    path = folder / NAME
    known = read_edits(path) if path.exists() else ()
    try:
        write_atomic(path, (canonical_bytes(entry.as_json()) + b"\n" for entry in (*known, edit)))
    except OSError as error:
        raise unwritable(path, error) from error


def read_edits(path: Path) -> tuple[Edit, ...]:
    """Return the corrections in a file, in order.

    Raises:
        InputError: the file cannot be read, or lines of it are not corrections; every bad line is listed.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError([unreadable(path, error)]) from error
    found: list[Edit] = []
    problems: list[UserError] = []
    for number, line in _lines(data):
        where = f"{path}:{number}"
        try:
            edit = Edit.model_validate(json.loads(line.decode("utf-8")))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            found_text = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
            problems.append(_bad_line(where, found_text))
        except (ValueError, RecursionError) as error:
            problems.append(_bad_line(where, str(error)))
        else:
            problem = _bad_path(where, edit)
            if problem:
                problems.append(problem)
            found.append(edit)
    if problems:
        raise InputError(problems)
    return tuple(found)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield number, line


def _bad_line(where: str, found: str) -> UserError:
    return UserError(
        where, expected="one edit as JSON: id, path, old, new, who, why", found=found,
        fix="correct or remove that line",
    )  # fmt: skip


def _bad_path(where: str, edit: Edit) -> UserError | None:
    try:
        parse_path(edit.path)
    except ValueError as error:
        return UserError(
            where, expected="a JSON path such as $.scenes[0].action", found=str(error), fix="correct the path"
        )
    return None

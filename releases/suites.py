"""Reading and writing prompt suites in the official form: one JSON object, indented by four, ASCII."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import InputError, UserError
from ..schemas.canonical import Json, write_atomic
from ..schemas.events import EventPrompt, Suite
from ..schemas.paths import format_path
from .layout import SUITE

__all__ = ["SUITE", "load_suite", "read_named", "suite_bytes", "write_suite"]


def load_suite(path: str | Path) -> Suite:
    """Return the suite in a file.

    Raises:
        InputError: it cannot be read, or something in it is not as the form has it; every problem is listed.
    """
    place = Path(path)
    if place.is_dir():
        place = place / SUITE
    document = read_named(place)
    problems: list[UserError] = []
    prompts: dict[str, EventPrompt] = {}
    for name, value in document.items():
        where = f"{place} {format_path((name,))}"
        if problem := _bad_name(where, name):
            problems.append(problem)
        try:
            prompts[name] = EventPrompt.model_validate(value)
        except ValidationError as error:
            problems.extend(
                _problem(
                    f"{where} {format_path(one['loc'])}", "a value of the official form", str(one["msg"])
                )
                for one in error.errors(include_url=False, include_input=False)
            )
    if not document:
        problems.append(_problem(str(place), "at least one prompt", "none"))
    if problems:
        raise InputError(problems)
    return Suite(prompts)


def write_suite(path: Path, suite: Suite) -> None:
    """Write a suite as the official file is written, with a line end at the end."""
    write_atomic(path, [suite_bytes(suite.as_json()), b"\n"])


def suite_bytes(document: Json) -> bytes:
    """Return JSON as the official files are laid out: indented by four, ASCII, in the order given."""
    return json.dumps(document, indent=4, allow_nan=False).encode("ascii")


def read_named(path: Path) -> Mapping[str, Any]:
    """Return a JSON file that holds one object whose names must differ.

    Raises:
        InputError: it cannot be read, is no such object, or has a name twice.
    """
    twice: list[str] = []

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(sorted({name for name in names if names.count(name) > 1}))
        return found

    try:
        document = json.loads(path.read_bytes(), object_pairs_hook=distinct)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError([_problem(str(path), "a readable JSON file", str(error))]) from error
    if not isinstance(document, dict):
        found = f"a JSON {type(document).__name__}"
        raise InputError([_problem(str(path), "one JSON object: file name -> prompt", found)])
    if twice:
        raise InputError([_problem(f"{path} {name}", "the name once", "it twice") for name in twice])
    return document


def _bad_name(where: str, name: str) -> UserError | None:
    if name and not any(mark in name for mark in "/\\\0") and name not in (".", ".."):
        return None
    return _problem(where, "the file name of a video", repr(name))


def _problem(where: str, expected: str, found: str) -> UserError:
    return UserError(
        where, expected=expected, found=found, fix="give a suite in the form of all_prompts.json"
    )

"""Reading and writing prompt suites in the official form: one JSON object, indented by four, ASCII."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import InputError, UserError
from ..schemas.canonical import Json, write_atomic
from ..schemas.events import EventPrompt, Suite
from ..schemas.plain_files import read_plain, reason_of
from ..schemas.quoted_paths import quoted_path
from .layout import SUITE
from .strict_json import load_strictly

__all__ = ["SUITE", "load_suite", "read_named", "read_prompts", "suite_bytes", "write_suite"]

_FIX = "give a suite in the form of all_prompts.json"
_SAID = {
    "missing": "the field is missing",
    "string_type": "expected a text",
    "tuple_type": "expected a list",
    "too_short": "expected at least one",
    "model_type": "expected an object with prompt, event_list and class",
}
"""Kind of a mistake -> how it is said, where the checking library speaks of its own things."""


def load_suite(path: str | Path) -> Suite:
    """Return the suite in a file.

    Raises:
        InputError: it cannot be read, or something in it is not as the form has it; every problem is listed.
    """
    place = Path(path)
    problems: list[UserError] = []
    prompts = read_prompts(place / SUITE if place.is_dir() else place, problems)
    if problems:
        raise InputError(problems)
    return Suite(prompts)


def read_prompts(place: Path, problems: list[UserError]) -> dict[str, EventPrompt]:
    """Return the prompts of a suite's file that can be read; add a problem for everything that is wrong.

    Raises:
        InputError: the file cannot be read, is no JSON object, or has a name twice.
    """
    document = read_named(place)
    prompts: dict[str, EventPrompt] = {}
    for name, value in document.items():
        if problem := _bad_name(f"{place} {quoted_path((name,))}", name):
            problems.append(problem)
        try:
            prompts[name] = EventPrompt.model_validate(value)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False):
                where = f"{place} {quoted_path((name, *one['loc']))}"
                what = _SAID.get(one["type"], one["msg"])
                problems.append(UserError(where, what=what, fix=_FIX))
    if not document:
        problems.append(_problem(str(place), "at least one prompt", "none"))
    return prompts


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
    try:
        document = load_strictly(read_plain(path), twice)
    except (OSError, ValueError, RecursionError) as error:
        half = isinstance(error, UnicodeEncodeError)
        found = "an escape such as \\ud800, which is half a character" if half else reason_of(error)
        raise InputError([_problem(str(path), "a readable JSON file", found)]) from error
    if not isinstance(document, dict):
        found = f"a JSON {type(document).__name__}"
        raise InputError([_problem(str(path), "one JSON object: file name -> prompt", found)])
    if twice:
        raise InputError(
            [_problem(f"{path} {quoted_path((name,))}", "the name once", "it twice") for name in twice]
        )
    return document


def _bad_name(where: str, name: str) -> UserError | None:
    if name and not any(mark in name for mark in "/\\\0") and name not in (".", ".."):
        return None
    return _problem(where, "the file name of a video", repr(name))


def _problem(where: str, expected: str, found: str) -> UserError:
    return UserError(where, expected=expected, found=found, fix=_FIX)

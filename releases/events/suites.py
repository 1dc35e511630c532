"""Reading and writing prompt suites in the official form: one JSON object, indented by four, ASCII."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError, UserError
from ...schemas.canonical import Json, write_atomic
from ...schemas.events import EventPrompt, Suite, SuiteRecord
from ...schemas.paths import quoted_path
from ...schemas.plain_files import read_plain, reason_of
from ...schemas.values import Issue
from ...validators.events.rules import check_events, check_prompts, issue
from ...validators.report import IssueBin, show
from ...validators.rules import Opened
from ...validators.view import find_redacted
from ..loading import read_rows, repeated
from ..strict_json import load_strictly

EVENTS = "events"
"""Name of the kind."""
SUITE = "all_prompts.json"
"""Name of the official file of a prompt suite."""
PROMPTS = "prompts.jsonl"
"""A prompt suite with its history, one line per prompt."""

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
    """Return the suite in a file."""
    place = Path(path)
    problems: list[UserError] = []
    prompts = read_prompts(place / SUITE if place.is_dir() else place, problems)
    if problems:
        raise InputError(problems)
    return Suite(prompts)


def read_prompts(place: Path, problems: list[UserError]) -> dict[str, EventPrompt]:
    """Return the prompts of a suite's file that can be read; add a problem for everything that is wrong."""
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
    """Return a JSON file that holds one object whose names must differ."""
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


@dataclass(frozen=True, slots=True)
class ReadSuite:
    """A suite as it was read."""

    file: Path  # the file that holds it
    prompts: Mapping[str, EventPrompt]  # file name of the video -> its prompt
    # the prompts with their history; None where only the file was given
    records: tuple[SuiteRecord, ...] | None


def _is_file(path: Path) -> bool:
    return path.is_file() and path.suffix == ".json"


def open_suite(path: Path) -> Opened:
    """Read a suite: a file in the official form, or the folder of a run or release of events."""
    is_file = _is_file(path)
    found, problems = IssueBin(), list[UserError]()
    place = path if is_file else path / SUITE
    prompts: Mapping[str, EventPrompt] = {}
    try:
        prompts = read_prompts(place, problems)
    except InputError as error:
        problems.extend(error.problems)
    records: tuple[SuiteRecord, ...] | None = None
    if not is_file:
        records = tuple(read_rows(path / PROMPTS, SuiteRecord, problems))
        problems.extend(repeated(path / PROMPTS, [record.unit for record in records]))
    for problem in problems:
        found.add(_as_issue(problem, place))
    return Opened(path, "events", ReadSuite(place, prompts, records), found)


def check_read(suite: ReadSuite, found: IssueBin) -> dict[str, int]:
    """Take what breaks a rule: conditions of prompts, history, and what was taken out of texts.

    Conditions are checked with the numbers that a build has where nobody says otherwise.
    """
    found.extend(check_prompts(suite.prompts, suite.file.name))
    if suite.records is not None:
        found.extend(_check_history(suite.records, suite.prompts))
    prompts = suite.prompts.values()
    return {"prompts": len(prompts), "events": sum(len(prompt.event_list) for prompt in prompts)}


def _check_history(records: tuple[SuiteRecord, ...], prompts: Mapping[str, EventPrompt]) -> Iterator[Issue]:
    """Yield where the lines of ``prompts.jsonl`` are not about the prompts of the suite."""
    entries: dict[str, Any] = {}
    for record in records:
        where = f"{PROMPTS} {record.unit}"
        entries[record.unit] = record.entry.as_json()
        if record.unit not in prompts:
            yield issue("history", where, "$", f"{SUITE} has no such prompt")
        elif entries[record.unit] != prompts[record.unit].as_json():
            yield issue("history", where, "$.entry", f"{SUITE} has another one under this name")
        elif record.built:
            yield from check_events(record.entry, where, ("entry",))
        # The texts of the entry are those of the suite, where they were looked through.
        yield from find_redacted({**record.as_json(), "entry": None}, where)
    for name in prompts.keys() - entries.keys():
        yield issue("history", PROMPTS, "$", f"there is no line about {show(name, 240)}")


def _as_issue(problem: UserError, suite: Path) -> Issue:
    text = problem.where.removeprefix(f"{suite.parent}/")
    where = suite.name if text.startswith(suite.name) else text.partition(" ")[0]
    return issue("form", where, text[len(where) :].strip() or "$", problem.what)


def _bad_name(where: str, name: str) -> UserError | None:
    if name and not any(mark in name for mark in "/\\\0") and name not in (".", ".."):
        return None
    return _problem(where, "the file name of a video", repr(name))


def _problem(where: str, expected: str, found: str) -> UserError:
    return UserError(where, expected=expected, found=found, fix=_FIX)

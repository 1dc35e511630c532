"""Checking a prompt suite: a file in the official form, or the folder of a run or release of events."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, UserError
from ..schemas.events import EventPrompt, SuiteRecord
from ..schemas.issue import Issue
from ..validators.codes import show
from ..validators.redacted import find_redacted
from ..validators.report import IssueBin, ValidationReport
from ..validators.suites.codes import issue
from ..validators.suites.suite_rules import check_prompts
from .layout import PROMPTS, SUITE
from .loading import read_rows, repeated
from .suites import read_prompts


def check_suite(path: Path) -> ValidationReport | None:
    """Return every finding about a suite: its form, its conditions, and what was taken out of its texts.

    Conditions are checked with the numbers that a build has where nobody says otherwise.

    Returns:
        None where the path is no file in JSON, and no folder of a run or release of events.
    """
    is_file = path.is_file() and path.suffix == ".json"
    if not is_file and not (path / PROMPTS).is_file():
        return None
    found, problems = IssueBin(), list[UserError]()
    place = path if is_file else path / SUITE
    prompts: Mapping[str, EventPrompt] = {}
    try:
        prompts = read_prompts(place, problems)
    except InputError as error:
        problems.extend(error.problems)
    found.extend(check_prompts(prompts, place.name))
    if not is_file:
        records = tuple(read_rows(path / PROMPTS, SuiteRecord, problems))
        problems.extend(repeated(path / PROMPTS, [record.unit for record in records]))
        found.extend(_check_history(records, prompts))
    for problem in problems:
        found.add(_issue_of(problem, place))
    checked = {"prompts": len(prompts), "events": sum(len(one.event_list) for one in prompts.values())}
    return found.report(str(path), "events", checked)


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
        # The texts of the entry are those of the suite, where they were looked through.
        yield from find_redacted({**record.as_json(), "entry": None}, where)
    for name in prompts.keys() - entries.keys():
        yield issue("history", PROMPTS, "$", f"there is no line about {show(name, 240)}")


def _issue_of(problem: UserError, suite: Path) -> Issue:
    text = problem.where.removeprefix(f"{suite.parent}/")
    where = suite.name if text.startswith(suite.name) else text.partition(" ")[0]
    return issue("form", where, text[len(where) :].strip() or "$", problem.what)

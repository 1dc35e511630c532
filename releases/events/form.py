"""Prompt suites as releases: what they hold beyond what all flat releases do."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError, UserError
from ...schemas.canonical import Json, write_atomic
from ...schemas.events import DIFFICULTIES, EventPrompt, Suite, SuiteRecord
from ...schemas.paths import SOURCE_MANIFEST, STATISTICS, quoted_path
from ...schemas.plain_files import read_plain, reason_of, type_reason
from ...schemas.values import Issue
from ...validators.events.rules import (
    check_entry,
    check_events,
    check_names,
    check_prompts,
    issue,
    prompt_statistics,
    suite_statistics,
)
from ...validators.report import IssueBin, Opened, RuleSet, show
from ...validators.view import find_redacted
from ..diff.form import DiffForm, RecordFile
from ..form import Facts, FlatRecords, ReleaseForm
from ..loading import LoadedRelease, load_records, load_strictly, read_rows, repeated, whole_rows
from ..parquet import PlacedRow, read_lines, row_of, table

# -- Reading and writing prompt suites in the official form: one JSON object, indented by four, ASCII

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
                what = _SAID.get(one["type"]) or type_reason(one)
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


# -- Prompt suites as releases

_FILES = (
    (SUITE, "the suite in the official form: file name of the video, prompt, events, classes"),
    (PROMPTS, "the same with its history: where each prompt is from, who made what"),
    ("data/TABLE/test.parquet", "the flat tables"),
    (STATISTICS, "counts and distributions"),
    (SOURCE_MANIFEST, "what the prompts were made from"),
)


SPLIT = "test"
"""The one split of a suite: nothing in it is for training."""
PROMPT_TABLE = table(
    "prompts", "One row per prompt.", "unit",
    ("unit", "text", "File name of the prompt's video, which names the prompt."),
    ("prompt", "text", "What the video model is asked for.", "entry.prompt"),
    ("event_list", "texts", "The events in order, each as one statement.", "entry.event_list"),
    ("class", "texts", "Participants, origin, difficulty, number of events.", "entry.class"),
    ("origin", "text", "retrieval, brainstorm or guided: where the prompt is from."),
    ("prompt_by", "text", "Who wrote the prompt.", "producers.prompt"),
    ("events_by", "text", "Who listed its events.", "producers.event_list"),
)  # fmt: skip
EVENT_TABLE = table(
    "events", "One row per event of a prompt.", "unit number",
    ("unit", "text", "The prompt, by the file name of its video."),
    ("number", "integer", "Place of the event in the prompt, from 1."),
    ("event", "text", "The event as a statement."),
    references={"unit": ("prompts", "unit")},
)  # fmt: skip
TABLES = (PROMPT_TABLE, EVENT_TABLE)


@dataclass(frozen=True)
class SuiteRelease(LoadedRelease[SuiteRecord]):
    """A released prompt suite in memory: the prompts with their history."""

    id_field = "unit"

    @cached_property
    def suite(self) -> Suite:
        """The suite, as the official file has it."""
        return Suite({record.unit: record.entry for record in self.records})


def load_suite_release(path: str | Path) -> SuiteRelease:
    return SuiteRelease(Path(path), *load_records(Path(path), EVENTS, PROMPTS, SuiteRelease, SuiteRecord))


def statistics_of_suite(path: Path) -> dict[str, Json]:
    """Return counts over a suite: a file in the official form, or a run or release of events."""
    if path.is_file():
        return prompt_statistics(load_suite(path).prompts.values())
    return suite_statistics(whole_rows(path / PROMPTS, SuiteRecord))


def _rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield the rows that the lines of ``prompts.jsonl`` ask for."""
    for record in read_lines(folder / PROMPTS):
        yield SPLIT, PROMPT_TABLE, row_of(PROMPT_TABLE, record)
        for number, event in enumerate(record["entry"]["event_list"], 1):
            row: Json = {"unit": record["unit"], "number": number, "event": event}
            yield SPLIT, EVENT_TABLE, row


def _statistics(folder: Path, records: Sequence[SuiteRecord]) -> dict[str, Json]:  # noqa: ARG001 - of a kind
    return suite_statistics(records)


def _write_official(run: Path, draft: Path, records: Sequence[SuiteRecord]) -> None:
    write_suite(draft / SUITE, _in_order_of(run / SUITE, records))


def _in_order_of(file: Path, records: Sequence[SuiteRecord]) -> Suite:
    """Return the prompts of records in the order of a suite's file, those that it lacks at the end."""
    entries = {record.unit: record.entry for record in records}
    try:
        order = [name for name in read_named(file) if name in entries]
    except InputError:
        order = []
    return Suite({name: entries[name] for name in (*order, *entries)})


def _official(folder: Path, records: Sequence[SuiteRecord]) -> Iterator[str]:  # noqa: ARG001 - of a kind
    yield SUITE


def _check_record(record: SuiteRecord, where: str) -> Iterator[Issue]:
    yield from check_entry(record.entry, where, ("entry",))
    if record.built:
        yield from check_events(record.entry, where, ("entry",))


def _check_official(folder: Path, records: Sequence[SuiteRecord]) -> Iterator[Issue]:
    wanted = suite_bytes(_in_order_of(folder / SUITE, records).as_json()) + b"\n"
    if read_plain(folder / SUITE) != wanted:
        message = f"not the prompts of {PROMPTS} in the official form"
        yield Issue(SUITE, "$", "suite", message, "pack the run again")
    built = {record.unit for record in records if record.built}
    yield from check_names({record.unit: record.entry for record in records}, PROMPTS, built)


def _summary(facts: Facts) -> str:
    totals = facts.totals
    return (
        f"{totals['prompts']} prompts that name {totals['events']} consecutive events, for testing which "
        "of the events of its prompt a generated video shows completed. No person has reviewed them as a "
        "whole."
    )


def _is_graded(facts: Facts) -> bool:
    return bool(set(DIFFICULTIES) & set(facts.statistics["classes"]))


def _details(facts: Facts) -> dict[str, Any]:
    return {"graded": _is_graded(facts), "origins": sorted(facts.statistics["origins"])}


def _notes(facts: Facts) -> Iterator[str]:
    if not _is_graded(facts):
        yield "no prompt has a difficulty: it comes from judged videos (fabula build events --results)"


RULES = RuleSet(open_suite, check_read, statistics_of_suite)
RECORDS = FlatRecords(
    model=SuiteRecord,
    statistics=_statistics,
    write_official=_write_official,
    official=_official,
    check_record=_check_record,
    check_official=_check_official,
    notes=_notes,
    items="prompts",
    files=_FILES,
    texts="prompts",
)
FORM = ReleaseForm(
    kind=EVENTS,
    runs={EVENTS: PROMPTS},
    tables=TABLES,
    record_ids={PROMPTS: "unit"},
    described=(SUITE, PROMPTS, STATISTICS, SOURCE_MANIFEST),
    rows=_rows,
    name="fabula-event-suite",
    title="Fabula event suite",
    what="a prompt suite",
    unit="prompts",
    tasks=("text-to-video",),
    tags=("video-generation", "event-completion", "benchmark", "evaluation", "croissant"),
    keywords=("video generation", "event completion", "benchmark"),
    rights_scope=(
        "This manifest documents what the prompts were made from, so that they can be traced. It gives no "
        "right to any video that a prompt captions."
    ),
    templates=("events/card.j2", "events/license.j2", "events/responsible_ai.j2"),
    changes=DiffForm({PROMPTS: RecordFile("prompt", "prompts", frozenset(("origin", "producers")))}),
    load=load_suite_release,
    summary=_summary,
    details=_details,
    **RECORDS.parts(),
)

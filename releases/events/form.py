"""Prompt suites as releases: what they hold beyond what all flat releases do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json
from ...schemas.events import DIFFICULTIES, Suite, SuiteRecord
from ...schemas.layout import SOURCE_MANIFEST, STATISTICS
from ...schemas.plain_files import read_plain
from ...schemas.values import Issue
from ...validators.events.rules import (
    check_entry,
    check_events,
    check_names,
    prompt_statistics,
    suite_statistics,
)
from ...validators.rules import RuleSet
from ..diff.form import DiffForm, RecordFile
from ..flat_records import FlatRecords
from ..form import Facts, ReleaseForm
from ..loading import LoadedRelease, load_records, read_rows
from ..tables import PlacedRow, read_lines, row_of, table
from .suites import (
    EVENTS,
    PROMPTS,
    SUITE,
    check_read,
    load_suite,
    open_suite,
    read_named,
    suite_bytes,
    write_suite,
)

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
    """Load a released prompt suite."""
    return SuiteRelease(Path(path), *load_records(Path(path), EVENTS, PROMPTS, SuiteRelease, SuiteRecord))


def statistics_of_suite(path: Path) -> dict[str, Json]:
    """Return counts over a suite: a file in the official form, or a run or release of events."""
    if path.is_file():
        return prompt_statistics(load_suite(path).prompts.values())
    problems: list[UserError] = []
    records = tuple(read_rows(path / PROMPTS, SuiteRecord, problems))
    if problems:
        raise InputError(problems)
    return suite_statistics(records)


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
    """Return whether prompts have a difficulty."""
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

"""Prompt suites as releases: what they hold beyond what all flat releases do."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..schemas.canonical import Json
from ..schemas.events import DIFFICULTIES, Suite, SuiteRecord
from ..schemas.issue import Issue
from ..schemas.plain_files import read_plain
from ..validators.suite_statistics import suite_statistics
from ..validators.suites.suite_rules import check_entry
from .flat_kind import FlatKind
from .layout import CROISSANT, LICENSE, PROMPTS, RELEASE, SOURCE_MANIFEST, STATISTICS, SUITE, SUMS
from .shapes import SUITES
from .suite_facts import UNSTATED, SuiteFacts
from .suites import read_named, suite_bytes, write_suite

_FILES = (
    (SUITE, "the suite in the official form: file name of the video, prompt, events, classes"),
    (PROMPTS, "the same with its history: where each prompt is from, who made what"),
    ("data/TABLE/test.parquet", "the flat tables"),
    (STATISTICS, "counts and distributions"),
    (SOURCE_MANIFEST, "what the prompts were made from"),
    (CROISSANT, "machine-readable description (Croissant 1.1 with responsible-AI fields)"),
    (RELEASE, "version, content hashes, tool versions, what was left out"),
    (LICENSE, "licence notice"),
    (SUMS, "a checksum of every other file"),
)


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


def _check_official(folder: Path, records: Sequence[SuiteRecord]) -> Iterator[Issue]:
    wanted = suite_bytes(_in_order_of(folder / SUITE, records).as_json()) + b"\n"
    if read_plain(folder / SUITE) != wanted:
        message = f"not the prompts of {PROMPTS} in the official form"
        yield Issue(SUITE, "$", "suite", message, "pack the run again")


def _summary(statistics: Mapping[str, Any]) -> str:
    totals = statistics["totals"]
    return (
        f"{totals['prompts']} prompts that name {totals['events']} consecutive events, for testing which "
        "of the events of its prompt a generated video shows completed. No person has reviewed them as a "
        "whole."
    )


def _is_graded(facts: SuiteFacts) -> bool:
    """Return whether prompts have a difficulty."""
    return bool(set(DIFFICULTIES) & set(facts.statistics["classes"]))


def _details(facts: SuiteFacts) -> dict[str, Any]:
    return {"graded": _is_graded(facts), "origins": sorted(facts.statistics["origins"])}


def _notes(facts: SuiteFacts) -> Iterator[str]:
    if not _is_graded(facts):
        yield "no prompt has a difficulty: it comes from judged videos (fabula build events --results)"
    if facts.languages == [UNSTATED]:
        yield "the language of the prompts is not stated; --language names it"


SUITE_KIND = FlatKind(
    shape=SUITES,
    model=SuiteRecord,
    name="fabula-event-suite",
    title="Fabula event suite",
    what="a prompt suite",
    unit="prompts",
    items="prompts",
    files=_FILES,
    tasks=("text-to-video",),
    tags=("video-generation", "event-completion", "benchmark", "evaluation", "croissant"),
    keywords=("video generation", "event completion", "benchmark"),
    rights_scope=(
        "This manifest documents what the prompts were made from, so that they can be traced. It gives no "
        "right to any video that a prompt captions."
    ),
    templates=("suite_card.j2", "suite_license.j2", "suite_responsible_ai.j2"),
    statistics=_statistics,
    write_official=_write_official,
    official=_official,
    check_record=_check_record,
    check_official=_check_official,
    summary=_summary,
    details=_details,
    notes=_notes,
)

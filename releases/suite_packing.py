"""Packing a finished ``build events`` run into a release folder.

The bytes depend on the run, the options and the versions of the tools only. Nothing here reads the clock.
"""

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import canonical_bytes, pretty_bytes, sha256_bytes
from ..schemas.events import SuiteRecord
from ..validators.suite_statistics import suite_statistics
from .changes_since import compare_with_previous, open_previous
from .diffing_sides import Side
from .documents import checksums, file_entries
from .layout import (
    CARD,
    CHANGES,
    CROISSANT,
    EVENTS,
    LICENSE,
    PROMPTS,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STATISTICS,
    SUITE,
    SUMS,
)
from .licence import Licence, licence
from .loading import read_rows
from .options import PackOptions
from .packing import PackResult
from .parquet import TableWriter
from .run_folder import FinishedRun, finished_run
from .selection import LeftOut
from .shapes import SUITES
from .suite_documents import suite_card, suite_croissant, suite_document, suite_licence, suite_manifest
from .suite_facts import SuiteFacts
from .suite_tables import SPLIT, prompt_rows
from .suites import write_suite
from .target import require_free, require_outside, staged

NAME, TITLE = "fabula-event-suite", "Fabula event suite"
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*", re.ASCII)


def pack_suite(run: Path, out: Path, options: PackOptions) -> PackResult:
    """Pack a finished run of the suite builder into a release folder.

    Args:
        run: the folder of a finished ``build events`` run.
        out: the folder to make.
        options: version, name, licence and authors; the licence has to be stated, as prompts carry none.

    Raises:
        ConfigError: an option has a wrong value, or no licence is stated.
        TargetError: ``out`` exists, is a file or cannot be written.
        RunError: the run is not finished, or its prompts are not up to date with it. RunBusy: another process
            is at it.
        InputError: its prompts cannot be read.
    """
    options = _named(options.checked())
    released_under = _stated(options)
    require_outside(out, run)
    require_free(out)
    previous = None if options.since is None else open_previous(options.since, options)
    with finished_run(run, EVENTS) as finished:
        problems: list[UserError] = []
        records = tuple(read_rows(run / PROMPTS, SuiteRecord, problems))
        if problems:
            raise InputError(problems)
        left_out = sorted(
            LeftOut(item.id, str(item.code), item.meaning, item.stage, item.status)
            for item in finished.report.items
        )
        with staged(out.absolute()) as (draft,):
            rows, hashes = _write_data(draft, records)
            statistics = suite_statistics(records)
            facts = SuiteFacts(options, released_under, finished.created_at, statistics, left_out, rows)
            if previous is not None:
                side = Side(draft, suite_document(facts, finished, hashes, {}), statistics)
                since = compare_with_previous(previous, side, options, finished.folder, ())
                facts = replace(facts, options=since.options, since=since)
            _write_documents(draft, finished, facts, hashes)
    return PackResult(
        folder=out,
        hidden=None,
        version=facts.options.version,
        counts=facts.totals,
        left_out=tuple(left_out),
        notes=(*(facts.since.notes if facts.since is not None else ()), *_notes(left_out, facts)),
    )


def _named(options: PackOptions) -> PackOptions:
    """Return the options of a suite: it is not called a story benchmark unless somebody says so.

    Raises:
        ConfigError: something is asked for that only releases of stories have, or a language tag is none.
    """
    for tag in options.languages:
        if not _LANGUAGE.fullmatch(tag):
            raise ConfigError(
                "--language",
                expected="a language tag such as en or zh-Hant",
                found=repr(tag),
                fix="give its tag",
            )
    usual = {one.name: one.default for one in fields(PackOptions)}
    name = NAME if options.name == usual["name"] else options.name
    return replace(options, name=name, title=TITLE if options.title == usual["title"] else options.title)


def _stated(options: PackOptions) -> Licence:
    if options.license is None:
        raise ConfigError(
            "--license", expected="the licence of the prompts", found="none; prompts state none",
            fix="name it by its SPDX id, for example --license CC-BY-4.0",
        )  # fmt: skip
    return licence(options.license)


def _write_data(draft: Path, records: Sequence[SuiteRecord]) -> tuple[dict[str, int], dict[str, str]]:
    """Write the official file, the JSONL file and the tables; return rows per table and hash per record."""
    from ..schemas.events import Suite

    write_suite(draft / SUITE, Suite({record.unit: record.entry for record in records}))
    hashes: dict[str, str] = {}
    with (draft / PROMPTS).open("wb") as file, TableWriter(draft) as writer:
        for record in sorted(records, key=lambda one: one.unit):
            document = record.as_json()
            content = canonical_bytes(document)
            file.write(content + b"\n")
            hashes[record.unit] = sha256_bytes(content)
            for table, row in prompt_rows(document):
                writer.add(table, SPLIT, row)
    return writer.counts, hashes


def _write_documents(draft: Path, run: FinishedRun, facts: SuiteFacts, hashes: dict[str, str]) -> None:
    card = suite_card(facts).encode("utf-8")
    documents: dict[str, bytes] = {
        STATISTICS: pretty_bytes(facts.statistics),
        SOURCE_MANIFEST: pretty_bytes(suite_manifest(run)),
        LICENSE: suite_licence(facts).encode("utf-8"),
        CARD: card,
        README: card,
    }
    if facts.since is not None:
        documents[CHANGES] = pretty_bytes(facts.since.changes)
    for name, content in documents.items():
        (draft / name).write_bytes(content)
    entries = file_entries(draft)
    described = {path: one for path, one in entries.items() if path in SUITES.described or path in facts.rows}
    croissant = suite_croissant(
        facts,
        {path: one["bytes"] for path, one in described.items()},
        {path: one["sha256"] for path, one in described.items()},
    )
    (draft / CROISSANT).write_bytes(pretty_bytes(croissant))
    (draft / RELEASE).write_bytes(pretty_bytes(suite_document(facts, run, hashes, file_entries(draft))))
    (draft / SUMS).write_bytes(checksums(draft))


def _notes(left_out: Sequence[LeftOut], facts: SuiteFacts) -> tuple[str, ...]:
    notes = []
    if left_out:
        notes.append(f"{len(left_out)} prompts were rejected or failed; release.json names them")
    if not facts.graded:
        notes.append(
            "no prompt has a difficulty: it comes from judged videos (fabula build events --results)"
        )
    if facts.languages == ["und"]:
        notes.append("the language of the prompts is not stated; --language names it")
    return tuple(notes)

"""Packing a finished run whose releases are flat: prompts of events, episodes.

The bytes depend on the run, the options and the versions of the tools only. Nothing here reads the clock.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import canonical_bytes, sha256_bytes
from ..schemas.issue import Issue
from ..validators.dataset import as_user_error
from ..validators.redacted import find_redacted
from .changes_since import compare_with_previous, open_previous
from .diffing.sides import Side
from .documents import file_entries, origin_of
from .flat_kind import FlatKind
from .licence import one_licence
from .loading import read_rows
from .options import PackOptions
from .pack_result import PackResult
from .parquet import TableWriter
from .run_folder import FinishedRun, finished_run
from .selection import LeftOut
from .suite_documents import flat_documents, suite_document
from .suite_facts import SuiteFacts
from .target import require_free, require_outside, staged

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*", re.ASCII)


def pack_flat(run: Path, out: Path, options: PackOptions, kind: FlatKind) -> PackResult:
    """Pack a finished run into a flat release folder.

    Args:
        run: the folder of a finished run of this kind.
        out: the folder to make.
        options: version, name, licence and authors; the licence has to be stated, as the records carry none.
        kind: what the run made.

    Raises:
        ConfigError: an option has a wrong value, or no licence is stated.
        TargetError: ``out`` exists, is a file or cannot be written.
        RunError: the run is not finished, or its records are not up to date with it. RunBusy: another process
            is at it.
        InputError: its records cannot be read, or cannot be released, such as those from which a secret was
            taken.
    """
    options = _named(options.checked(), kind)
    released_under = one_licence(Counter({None: 1}), options, str(run))
    require_outside(out, run)
    require_free(out)
    previous = None if options.since is None else open_previous(options.since, options)
    with finished_run(run, kind.shape.kind) as finished:
        problems: list[UserError] = []
        records = tuple(read_rows(run / kind.lines, kind.model, problems))
        problems += map(as_user_error, _redacted(records, kind))
        if problems:
            raise InputError(problems)
        left_out = sorted(
            LeftOut(item.id, str(item.code), item.meaning, item.stage, item.status)
            for item in finished.report.items
        )
        with staged(out.absolute()) as (draft,):
            kind.write_official(run, draft, records)
            rows, hashes = _write_data(draft, records, kind)
            statistics = kind.statistics(draft, records)
            facts = SuiteFacts(kind, options, released_under, finished.created_at, statistics, left_out, rows)
            if previous is not None:
                side = Side(draft, suite_document(facts, origin_of(finished), hashes, {}), statistics)
                since = compare_with_previous(previous, side, options, finished.folder, ())
                facts = replace(facts, options=since.options, since=since)
            _write_documents(draft, finished, facts, hashes)
    return PackResult(
        folder=out,
        hidden=None,
        version=facts.options.version,
        counts=facts.totals,
        left_out=tuple(left_out),
        notes=(*(facts.since.notes if facts.since is not None else ()), *_notes(facts)),
    )


def _named(options: PackOptions, kind: FlatKind) -> PackOptions:
    """Return the options of a release: it is not called a story benchmark unless somebody says so.

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
    name = kind.name if options.name == usual["name"] else options.name
    title = kind.title if options.title == usual["title"] else options.title
    return replace(options, name=name, title=title)


def _redacted(records: Sequence[Any], kind: FlatKind) -> Iterator[Issue]:
    """Yield every text of a record out of which a secret was taken: nobody wants to read it as it is."""
    for record in records:
        yield from find_redacted(record.as_json(), kind.id_of(record))


def _write_data(draft: Path, records: Sequence[Any], kind: FlatKind) -> tuple[dict[str, int], dict[str, str]]:
    """Write the JSONL file and the tables; return rows per table file and hash per record."""
    hashes: dict[str, str] = {}
    with (draft / kind.lines).open("wb") as file:
        for record in sorted(records, key=kind.id_of):
            content = canonical_bytes(record.as_json())
            file.write(content + b"\n")
            hashes[kind.id_of(record)] = sha256_bytes(content)
    with TableWriter(draft) as writer:
        for split, table, row in kind.shape.rows(draft):
            writer.add(table, split, row)
    return writer.counts, hashes


def _write_documents(draft: Path, run: FinishedRun, facts: SuiteFacts, hashes: dict[str, str]) -> None:
    documents = flat_documents(facts, origin_of(run), hashes, file_entries(draft))
    for name, content in documents.items():
        (draft / name).write_bytes(content)


def _notes(facts: SuiteFacts) -> Iterator[str]:
    if facts.left_out:
        items = facts.kind.items
        yield f"{len(facts.left_out)} {items} were rejected or failed; release.json names them"
    yield from facts.kind.notes(facts)

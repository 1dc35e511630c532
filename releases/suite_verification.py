"""Verifying a released prompt suite: everything that can be wrong with it, in one pass."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from ..schemas.canonical import Json, pretty_bytes
from ..schemas.events import SuiteRecord
from ..schemas.issue import Issue
from ..schemas.paths import format_path
from ..validators.suite_statistics import suite_statistics
from .check_changes import check_changes
from .check_croissant import check_croissant
from .check_files import check_listing, check_records, check_release_document, check_sums
from .findings import Findings, VerifyReport, document_of, read_back
from .front_matter import check_front_matter
from .layout import (
    CARD,
    CHANGES,
    CROISSANT,
    DATA,
    LICENSE,
    PROMPTS,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STATISTICS,
    SUITE,
    files_in,
)
from .licence import licence
from .shapes import SUITES
from .suite_documents import RIGHTS_SCOPE
from .suites import suite_bytes

_CURE = "pack the run again"


def verify_suite(folder: Path, *, quick: bool = False) -> VerifyReport:
    """Verify a released suite; finds every single-byte change in any of its files.

    Args:
        folder: the release.
        quick: check hashes and records only; documents and readers are left out.
    """
    findings = Findings()
    document = document_of(folder, findings)
    rows: list[Json] = []
    findings.gather("files", check_listing(folder, document, SUITES))
    findings.gather("SHA256SUMS", check_sums(folder))
    findings.gather(RELEASE, check_release_document(folder, document))
    findings.gather("records", check_records(folder, document, lambda _, row: rows.append(row), SUITES))
    records: list[SuiteRecord] = []
    findings.gather("rules", _check_rules(folder, rows, records))
    events = sum(len(record.entry.event_list) for record in records)
    findings.checked |= {"files": len(files_in(folder)), "prompts": len(records), "events": events}
    if not quick:
        findings.gather("documents", _check_documents(folder, document, records))
        findings.gather(CHANGES, check_changes(folder, document))
        findings.gather(CROISSANT, _check_metadata(folder))
        findings.gather("read back", read_back(folder, findings))
    return findings.report(folder, document, quick=quick)


def _check_rules(folder: Path, rows: list[Json], records: list[SuiteRecord]) -> Iterator[Issue]:
    """Yield what is wrong with the records; those that can be read are added to the list."""
    for row in rows:
        where = f"{PROMPTS}:{row.get('unit')}"
        try:
            record = SuiteRecord.model_validate(row)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False):
                yield Issue(where, format_path(one["loc"]), "schema", str(one["msg"]), "correct the value")
            continue
        records.append(record)
        size = f"{len(record.entry.event_list)}_events"
        if stated := [label for label in record.entry.labels if label.endswith("_events") and label != size]:
            message = f"labelled {', '.join(stated)}, and has {size.replace('_', ' ')}"
            yield Issue(where, "$.entry.class", "event-count", message, "correct the label")
    wanted = suite_bytes({record.unit: record.entry.as_json() for record in records}) + b"\n"
    if (folder / SUITE).read_bytes() != wanted:
        yield Issue(SUITE, "$", "suite", f"not the prompts of {PROMPTS} in the official form", _CURE)


def _check_documents(
    folder: Path, document: Mapping[str, Json], records: list[SuiteRecord]
) -> Iterator[Issue]:
    card = (folder / CARD).read_text("utf-8")
    if (folder / README).read_text("utf-8") != card:
        yield Issue(README, "$", "readme", f"differs from {CARD}", f"copy {CARD} over it")
    parquet = [path for path in files_in(folder) if path.startswith(f"{DATA}/")]
    yield from check_front_matter(card, len(records), parquet, SUITES)
    statistics = suite_statistics(records)
    if (folder / STATISTICS).read_bytes() != pretty_bytes(statistics):
        yield Issue(STATISTICS, "$", "statistics", "not what the records say", _CURE)
    if document.get("counts") != statistics["totals"]:
        message = f"{document.get('counts')} are stated, {statistics['totals']} are there"
        yield Issue(RELEASE, "$.counts", "release-counts", message, _CURE)
    if json.loads((folder / SOURCE_MANIFEST).read_bytes()).get("rights_scope") != RIGHTS_SCOPE:
        yield Issue(SOURCE_MANIFEST, "$.rights_scope", "source-manifest", "the rights note is missing", _CURE)
    released_under = licence(str(document.get("license")))
    notice = (folder / LICENSE).read_text("utf-8")
    marks = (f"SPDX-License-Identifier: {released_under.spdx_id}\n", str(released_under.url))
    if not all(mark in notice for mark in marks):
        yield Issue(LICENSE, "$", "licence", f"does not name {released_under.spdx_id} and its address", _CURE)


def _check_metadata(folder: Path) -> Iterator[Issue]:
    yield from check_croissant(folder, json.loads((folder / CROISSANT).read_bytes()), SUITES)

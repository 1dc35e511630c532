"""Verifying a flat release: everything that can be wrong with it, in one pass."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..schemas.canonical import Json, pretty_bytes
from ..schemas.issue import Issue
from ..schemas.paths import format_path
from .check_changes import check_changes
from .check_croissant import check_croissant
from .check_files import check_listing, check_records, check_release_document, check_sums
from .findings import Findings, VerifyReport, document_of, read_back
from .flat_kind import FlatKind
from .front_matter import check_front_matter
from .layout import (
    CARD,
    CHANGES,
    CROISSANT,
    DATA,
    LICENSE,
    README,
    RELEASE,
    SOURCE_MANIFEST,
    STATISTICS,
    files_in,
)
from .licence import licence

_CURE = "pack the run again"


def verify_flat(folder: Path, kind: FlatKind, *, quick: bool = False) -> VerifyReport:
    """Verify a flat release; finds every single-byte change in any of its files.

    Args:
        folder: the release.
        kind: what it holds.
        quick: check hashes and records only; documents and readers are left out.
    """
    findings = Findings()
    document = document_of(folder, findings)
    rows: list[Json] = []
    findings.gather("files", check_listing(folder, document, kind.shape))
    findings.gather("SHA256SUMS", check_sums(folder))
    findings.gather(RELEASE, check_release_document(folder, document))
    findings.gather("records", check_records(folder, document, lambda _, row: rows.append(row), kind.shape))
    records: list[Any] = []
    findings.gather("rules", _check_rules(folder, rows, records, kind))
    findings.checked |= {"files": len(files_in(folder)), kind.unit: len(records)}
    if not quick:
        findings.gather("documents", _check_documents(folder, document, records, kind))
        findings.gather(CHANGES, check_changes(folder, document))
        findings.gather(CROISSANT, _check_metadata(folder, kind))
        findings.gather("read back", read_back(folder, findings))
    return findings.report(folder, document, quick=quick)


def _check_rules(folder: Path, rows: list[Json], records: list[Any], kind: FlatKind) -> Iterator[Issue]:
    """Yield what is wrong with the records; those that can be read are added to the list."""
    for row in rows:
        where = f"{kind.lines}:{row.get(kind.key)}"
        try:
            record = kind.model.model_validate(row)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False):
                yield Issue(where, format_path(one["loc"]), "schema", str(one["msg"]), "correct the value")
            continue
        records.append(record)
        yield from kind.check_record(record, where)
    yield from kind.check_official(folder, records)


def _check_documents(
    folder: Path, document: Mapping[str, Json], records: list[Any], kind: FlatKind
) -> Iterator[Issue]:
    card = (folder / CARD).read_text("utf-8")
    if (folder / README).read_text("utf-8") != card:
        yield Issue(README, "$", "readme", f"differs from {CARD}", f"copy {CARD} over it")
    parquet = [path for path in files_in(folder) if path.startswith(f"{DATA}/")]
    yield from check_front_matter(card, len(records), parquet, kind.shape)
    statistics = kind.statistics(folder, records)
    if (folder / STATISTICS).read_bytes() != pretty_bytes(statistics):
        yield Issue(STATISTICS, "$", "statistics", "not what the records say", _CURE)
    if document.get("counts") != statistics["totals"]:
        message = f"{document.get('counts')} are stated, {statistics['totals']} are there"
        yield Issue(RELEASE, "$.counts", "release-counts", message, _CURE)
    if json.loads((folder / SOURCE_MANIFEST).read_bytes()).get("rights_scope") != kind.rights_scope:
        yield Issue(SOURCE_MANIFEST, "$.rights_scope", "source-manifest", "the rights note is missing", _CURE)
    released_under = licence(str(document.get("license")))
    notice = (folder / LICENSE).read_text("utf-8")
    marks = (f"SPDX-License-Identifier: {released_under.spdx_id}\n", str(released_under.url))
    if not all(mark in notice for mark in marks):
        yield Issue(LICENSE, "$", "licence", f"does not name {released_under.spdx_id} and its address", _CURE)


def _check_metadata(folder: Path, kind: FlatKind) -> Iterator[Issue]:
    yield from check_croissant(folder, json.loads((folder / CROISSANT).read_bytes()), kind.shape)

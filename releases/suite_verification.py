"""Verifying a flat release: everything that can be wrong with it, in one pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..schemas.canonical import Json
from ..schemas.issue import Issue
from ..schemas.paths import format_path
from ..schemas.plain_files import read_json
from .check_croissant import check_croissant
from .check_documents import check_documents, made_by_these_tools
from .check_files import check_listing, check_records, check_release_document, check_sums
from .check_tables import check_table_bytes, check_tables
from .diffing.check import check_changes
from .findings import Findings, VerifyReport, document_of, read_back
from .flat_kind import FlatKind
from .layout import (
    CHANGES,
    CROISSANT,
    RELEASE,
    files_in,
)
from .recount_facts import recount_flat

_CURE = "pack the run again"


def verify_flat(folder: Path, kind: FlatKind, *, quick: bool = False, readers: bool = True) -> VerifyReport:
    """Verify a flat release; finds every single-byte change in any of its files.

    Args:
        folder: the release.
        kind: what it holds.
        quick: check hashes, records and tables only; its documents are left out.
        readers: read it with the libraries of its users too.
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
    findings.gather("tables", check_tables(folder, kind.shape))
    findings.checked |= {"files": len(files_in(folder)), kind.unit: len(records)}
    if not quick:
        exact = made_by_these_tools(document)
        findings.documents = "bytes" if exact else "facts"

        def documents() -> Iterator[Issue]:
            again = recount_flat(folder, document, kind, records)
            yield from check_documents(folder, document, again, exact=exact)

        findings.gather("documents", documents())
        findings.gather("tables", check_table_bytes(folder, document, kind.shape))
        findings.gather(CHANGES, check_changes(folder, document, exact=exact))
        findings.gather(CROISSANT, _check_metadata(folder, kind))
        if readers:
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


def _check_metadata(folder: Path, kind: FlatKind) -> Iterator[Issue]:
    yield from check_croissant(folder, read_json(folder / CROISSANT), kind.shape)

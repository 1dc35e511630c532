"""Verifying a release: everything that can be wrong with it, in one pass."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.issue import Issue
from ..validators.dataset import IMPORTED
from .check_croissant import check_croissant
from .check_documents import check_documents, check_left_out
from .check_files import check_listing, check_records, check_release_document, check_sums
from .check_hidden import check_hidden
from .composition import Composition
from .findings import DAMAGE, Findings, VerifyReport, document_of, read_back
from .layout import ANNOTATIONS, CROISSANT, EVENTS, PRODUCERS, RELEASE, VARIANTS, files_in, hidden_folder
from .loading import kind_of
from .suite_verification import verify_suite

__all__ = ["VerifyReport", "verify"]


def verify(path: str | Path, *, quick: bool = False, hidden: str | Path | None = None) -> VerifyReport:
    """Verify a release, public or hidden; finds every single-byte change in any of its files.

    Args:
        path: the folder of the release.
        quick: check hashes, schemas, rules and hidden stories only; documents and readers are left out.
        hidden: the folder of its hidden-test stories; ``<path>-hidden`` is taken when it is there.

    Returns:
        All findings; nothing stops at the first.

    Raises:
        InputError: the folder does not exist.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(
            [UserError(str(folder), expected="a release folder", found="no folder", fix="give its folder")]
        )
    if kind_of(folder) == EVENTS:
        return verify_suite(folder, quick=quick)
    findings = Findings()
    document, composition = _check_data(folder, findings)
    public = document.get("visibility") != "hidden"
    sibling = hidden_folder(folder.absolute()) if hidden is None else Path(hidden)
    beside = public and (hidden is not None or sibling.is_dir())
    if beside:
        found = Findings()
        _check_data(sibling, found)
        findings.take(found, sibling.name, "hidden")
        findings.gather("hidden", check_hidden(folder, document, sibling))
    if not quick:
        findings.gather(RELEASE, check_left_out(document))
        if public and IMPORTED not in document:  # an import has the documents of its package, not ours
            _check_public(folder, document, composition, findings)
    return findings.report(folder, document, quick=quick)


def _check_data(folder: Path, findings: Findings) -> tuple[Mapping[str, Json], Composition]:
    """Check the bytes of all files and the rules of all records, in a public folder or a hidden one."""
    document = document_of(folder, findings)
    composition = _check_bytes(folder, document, findings)
    findings.gather("rules", _check_rules(folder, findings))
    return document, composition


def _check_bytes(folder: Path, document: Mapping[str, Json], findings: Findings) -> Composition:
    composition, seen = Composition(), Counter[str]()
    splits: dict[str, str] = {}

    def visit(name: str, row: Json) -> None:
        seen[name] += 1
        try:
            _count(composition, splits, name, row)
        except DAMAGE:
            # The schema check reports the record; here it only falls out of the counts.
            return

    findings.gather("files", check_listing(folder, document))
    findings.gather("SHA256SUMS", check_sums(folder))
    if document:
        findings.gather(RELEASE, check_release_document(folder, document))
        findings.gather("records", check_records(folder, document, visit))
    findings.checked |= {"files": len(files_in(folder)), **{name: seen[name] for name in sorted(seen)}}
    return composition


def _count(composition: Composition, splits: dict[str, str], name: str, row: Json) -> None:
    if name == ANNOTATIONS:
        splits[row["story_id"]] = row["split"]
        composition.add_record(row)
    elif name == VARIANTS:
        composition.add_variants(splits[row["base_story_id"]], 1)
    elif name == PRODUCERS:
        composition.add_producers(row["fields"])


def _check_rules(folder: Path, findings: Findings) -> Iterator[Issue]:
    from ..validators import validate

    try:
        report = validate(folder)
    except UserError as error:
        for problem in error.problems if isinstance(error, InputError) else (error,):
            message = f"expected {problem.expected}, found {problem.found}"
            yield Issue(problem.where, "$", "unreadable", message, problem.fix)
        return
    findings.checked |= {f"{name} under rules": count for name, count in report.checked.items()}
    yield from report.issues


def _check_public(
    folder: Path, document: Mapping[str, Json], composition: Composition, findings: Findings
) -> None:
    findings.gather("documents", check_documents(folder, document, composition))
    findings.gather(CROISSANT, _check_metadata(folder))
    findings.gather("read back", read_back(folder, findings))


def _check_metadata(folder: Path) -> Iterator[Issue]:
    yield from check_croissant(folder, json.loads((folder / CROISSANT).read_bytes()))

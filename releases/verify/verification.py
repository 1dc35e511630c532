"""Verifying a release: everything that can be wrong with it, in one pass."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import ConfigError, InputError
from ...schemas.canonical import Json
from ...schemas.layout import (
    CANARY,
    CHANGES,
    IMPORTED,
    RELEASE,
    WHOLE,
    files_in,
    hidden_folder,
)
from ...schemas.plain_files import read_json
from ...schemas.values import Issue
from ..diff.since import check_changes
from ..form import Reading, ReleaseForm
from ..hidden.commitments import check_canary, check_commitments, check_promises, read_salt, salt_beside
from ..hidden.marks import search_rows
from ..loading import misshapen
from .documents import check_documents, check_left_out, made_by_these_tools, recount
from .files import (
    Findings,
    VerifyReport,
    check_listing,
    check_records,
    check_release_document,
    check_sums,
    check_table_bytes,
    check_tables,
    document_of,
    read_back,
)

__all__ = ["VerifyReport", "verify"]


def verify(
    path: str | Path,
    form: ReleaseForm,
    *,
    quick: bool = False,
    readers: bool = True,
    hidden: str | Path | None = None,
    salt: str | Path | None = None,
) -> VerifyReport:
    """Verify a release, public or hidden; finds every single-byte change in any of its files.

    Whoever writes a whole release anew contradicts nothing in it: only what was published tells that one, see
    :func:`.published.compare_with_published`.

    Returns:
        All findings; nothing stops at the first.
    """
    folder = Path(path)
    if folder.is_file():
        return _prove(folder, hidden, salt)
    if not folder.is_dir():
        raise InputError.one(str(folder), what="there is no such folder", fix="give a release folder")
    findings, reading = Findings(), form.reading(form)
    document = _check_data(folder, reading, findings)
    _check_hidden_test(folder, form, document, findings, hidden, salt)
    whole = form.hidden is None or document.get("visibility") != "hidden"
    if whole and IMPORTED in document:
        findings.documents = None if quick else "imported"
    elif whole:
        _check_public(folder, document, reading, findings, quick=quick, readers=readers)
    findings.hush()
    return findings.report(folder, document, quick=quick)


def _check_hidden_test(
    folder: Path,
    form: ReleaseForm,
    document: Mapping[str, Json],
    findings: Findings,
    given_hidden: str | Path | None,
    given_salt: str | Path | None,
) -> None:
    """Check what a release says of its hidden test, and the hidden folder and salt, given or beside it."""
    if (test := form.hidden) is None:
        return
    public = document.get("visibility") != "hidden"
    sibling = hidden_folder(folder.absolute()) if given_hidden is None else Path(given_hidden)
    beside = public and (given_hidden is not None or sibling.is_dir())
    secret = _salt(sibling, given_salt) if beside else None
    if given_salt is not None and not beside:
        raise _no_hidden(f"none is given, or lies beside {folder}")
    if public:
        findings.gather("hidden", _hidden_rows(folder, document))
        findings.gather(RELEASE, check_promises(document))
    findings.gather(CANARY, check_canary(folder, document))
    if beside:
        hidden_findings = Findings()
        held = _check_data(sibling, form.reading(form), hidden_findings)
        hidden_findings.gather("hidden", test.check_folder(sibling, held))
        findings.take(hidden_findings, sibling.name, "hidden")
        findings.gather("hidden", test.check(folder, document, sibling, secret))
        if secret is not None:
            _gather_commitments(document, sibling, secret, findings)
    if not public:
        findings.gather("hidden", test.check_folder(folder, document))


def _prove(path: Path, hidden: str | Path | None, salt: str | Path | None) -> VerifyReport:
    """Check that a ``release.json`` committed to the stories of a hidden folder."""
    if hidden is None or not Path(hidden).is_dir():
        raise _no_hidden(
            f"none is given, or lies beside {path}" if hidden is None else f"there is no {hidden}"
        )
    findings, folder = Findings(), Path(hidden)
    try:
        document = read_json(path)
    except (OSError, ValueError) as error:
        document = None
        found = str(error)
    if document is not None and (wrong := next(misshapen(document), None)):
        document, found = None, " ".join(wrong)
    if document is None:
        raise InputError.one(
            str(path),
            what=f"this is not a release folder or a release.json: {found}",
            fix="give one of the two",
        )
    beside = _salt(folder, salt)
    if beside is None:
        raise ConfigError(
            "--salt",
            what=f"the salt is missing: no --salt is given, and there is no {salt_beside(folder)}",
            fix="give the file that packing wrote beside the hidden folder",
        )
    _gather_commitments(document, folder, beside, findings)
    return findings.report(path, document, quick=True)


def _gather_commitments(document: Mapping[str, Json], hidden: Path, salt: bytes, findings: Findings) -> None:
    """Take what is wrong with the commitments, and count the stories that they were compared with."""
    findings.gather("commitments", check_commitments(document, hidden, salt))
    part = document.get("commitments")
    findings.checked["commitments"] = len(part["values"]) if isinstance(part, dict) else 0


def _salt(hidden: Path, given: str | Path | None) -> bytes | None:
    beside = salt_beside(hidden.absolute()) if given is None else Path(given)
    return read_salt(beside) if given is not None or beside.exists() else None


def _no_hidden(found: str | Path) -> ConfigError:
    return ConfigError(
        "--hidden",
        what=f"the folder of the hidden-test stories is missing: {found}",
        fix="give that folder with --hidden",
    )


def _hidden_rows(folder: Path, document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield files with rows of the hidden split; a package of others may have them where they are."""
    if not (document.get("visibility") == WHOLE and IMPORTED in document):
        yield from search_rows(folder)


def _check_data(folder: Path, reading: Reading, findings: Findings) -> Mapping[str, Json]:
    """Check the bytes of all files and the rules of all records, in a public folder or a hidden one."""
    document = document_of(folder, reading.form, findings)
    findings.gather("files", check_listing(folder, document, reading.form.record_ids))
    findings.gather("SHA256SUMS", check_sums(folder))
    if document:
        findings.gather(RELEASE, check_release_document(folder, document))
        findings.gather("records", check_records(folder, document, reading.visit, reading.form.record_ids))
    findings.gather("rules", reading.check_rules(folder))
    findings.checked |= {"files": len(files_in(folder)), **reading.counts}
    return document


def _check_public(
    folder: Path,
    document: Mapping[str, Json],
    reading: Reading,
    findings: Findings,
    *,
    quick: bool,
    readers: bool,
) -> None:
    form = reading.form
    findings.gather("tables", check_tables(folder, form))
    if quick:
        return
    exact = made_by_these_tools(document)

    def documents() -> Iterator[Issue]:
        again = recount(folder, document, reading, exact=exact)
        yield from check_documents(folder, document, again, exact=exact)
        yield from check_left_out(document, form.unit)

    findings.documents = "bytes" if exact else "facts"
    findings.gather("documents", documents())
    findings.gather("tables", check_table_bytes(folder, document, form))
    for name, issues in reading.check_beside(folder, document, exact=exact):
        findings.gather(name, issues)
    findings.gather(CHANGES, check_changes(folder, document, form.changes, exact=exact))
    if readers:
        findings.gather("read back", read_back(folder, form, findings))

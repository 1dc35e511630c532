"""Verifying a release: everything that can be wrong with it, in one pass."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import Json
from ..schemas.issue import Issue
from ..schemas.plain_files import read_json
from ..validators.dataset import IMPORTED
from .canary import check_canary
from .check_croissant import check_croissant
from .check_documents import check_documents, check_left_out, made_by_these_tools
from .check_files import check_listing, check_records, check_release_document, check_sums
from .check_tables import check_table_bytes, check_tables
from .diffing.check import check_changes
from .document_shape import misshapen
from .findings import Findings, VerifyReport, document_of, read_back
from .flat_kinds import flat_kind
from .hidden.check import check_commitments, check_hidden, check_hidden_folder, check_promises
from .hidden.commitments import read_salt, salt_beside
from .hidden.search import search_rows
from .layout import (
    CANARY,
    CHANGES,
    CROISSANT,
    RELEASE,
    SUBSETS,
    files_in,
    hidden_folder,
)
from .loading import kind_of
from .official import WHOLE
from .recount_facts import recount_stories
from .subsets.stories import check_subsets
from .suite_verification import verify_flat

__all__ = ["VerifyReport", "verify"]


def verify(
    path: str | Path,
    *,
    quick: bool = False,
    readers: bool = True,
    hidden: str | Path | None = None,
    salt: str | Path | None = None,
) -> VerifyReport:
    """Verify a release, public or hidden; finds every single-byte change in any of its files.

    Args:
        path: the folder of the release. A ``release.json`` by itself, of any version, is enough to prove that
            it committed to the stories of ``hidden``; then nothing else is checked.
        quick: check hashes, schemas, rules, tables and hidden stories only; its documents are left out.
        readers: read it with the libraries of its users too; without them only pyarrow reads its tables.
        hidden: the folder of its hidden-test stories; ``<path>-hidden`` is taken when it is there.
        salt: the salt of the commitments to them; ``<hidden>.salt`` is taken when it is there.

    Returns:
        All findings; nothing stops at the first.

    Raises:
        InputError: the folder does not exist, or the salt cannot be read.
        ConfigError: the salt or ``release.json`` is given without the hidden folder.
    """
    folder = Path(path)
    if folder.is_file():
        return _prove(folder, hidden, salt)
    if not folder.is_dir():
        raise InputError(
            [UserError(str(folder), what="there is no such folder", fix="give a release folder")]
        )
    flat = flat_kind(kind_of(folder))
    if flat is not None:
        return verify_flat(folder, flat, quick=quick, readers=readers)
    findings = Findings()
    document = _check_data(folder, findings)
    public = document.get("visibility") != "hidden"
    sibling = hidden_folder(folder.absolute()) if hidden is None else Path(hidden)
    beside = public and (hidden is not None or sibling.is_dir())
    secret = _salt(sibling, salt) if beside else None
    if salt is not None and not beside:
        raise _no_hidden(f"none is given, or lies beside {folder}")
    if public:
        findings.gather("hidden", _hidden_rows(folder, document))
        findings.gather(RELEASE, check_promises(document))
    findings.gather(CANARY, check_canary(folder, document))
    if beside:
        _check_sibling(folder, document, sibling, secret, findings)
    if not public:
        findings.gather("hidden", check_hidden_folder(folder, document))
    elif IMPORTED not in document:
        _check_public(folder, document, findings, quick=quick, readers=readers)
    elif not quick:
        findings.documents = "imported"
    findings.hush()
    return findings.report(folder, document, quick=quick)


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
        raise InputError(
            [
                UserError(
                    str(path),
                    what=f"this is not a release folder or a release.json: {found}",
                    fix="give one of the two",
                )
            ]
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


def _check_sibling(
    folder: Path, document: Mapping[str, Json], hidden: Path, secret: bytes | None, findings: Findings
) -> None:
    """Check the hidden folder beside a public release, and what the two say of each other."""
    found = Findings()
    found.gather("hidden", check_hidden_folder(hidden, _check_data(hidden, found)))
    findings.take(found, hidden.name, "hidden")
    findings.gather("hidden", check_hidden(folder, document, hidden, secret))
    if secret is not None:
        _gather_commitments(document, hidden, secret, findings)


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


def _check_data(folder: Path, findings: Findings) -> Mapping[str, Json]:
    """Check the bytes of all files and the rules of all records, in a public folder or a hidden one."""
    document, seen = document_of(folder, findings), Counter[str]()

    def visit(name: str, _: Json) -> None:
        seen[name] += 1

    findings.gather("files", check_listing(folder, document))
    findings.gather("SHA256SUMS", check_sums(folder))
    if document:
        findings.gather(RELEASE, check_release_document(folder, document))
        findings.gather("records", check_records(folder, document, visit))
    findings.checked |= {"files": len(files_in(folder)), **{name: seen[name] for name in sorted(seen)}}
    findings.gather("rules", _check_rules(folder, findings))
    return document


def _check_rules(folder: Path, findings: Findings) -> Iterator[Issue]:
    from ..validators import validate

    try:
        report = validate(folder)
    except UserError as error:
        for problem in error.problems if isinstance(error, InputError) else (error,):
            message = problem.what
            yield Issue(problem.where, "$", "unreadable", message, problem.fix)
        return
    findings.checked |= {f"{name} under rules": count for name, count in report.checked.items()}
    yield from report.issues


def _check_public(
    folder: Path, document: Mapping[str, Json], findings: Findings, *, quick: bool, readers: bool
) -> None:
    findings.gather("tables", check_tables(folder))
    if quick:
        return
    exact = made_by_these_tools(document)

    def documents() -> Iterator[Issue]:
        again = recount_stories(folder, document, exact=exact)
        yield from check_documents(folder, document, again, exact=exact)
        yield from check_left_out(document)

    findings.documents = "bytes" if exact else "facts"
    findings.gather("documents", documents())
    findings.gather("tables", check_table_bytes(folder, document))
    findings.gather(SUBSETS, check_subsets(folder))
    findings.gather(CHANGES, check_changes(folder, document, exact=exact))
    findings.gather(CROISSANT, _check_metadata(folder))
    if readers:
        findings.gather("read back", read_back(folder, findings))


def _check_metadata(folder: Path) -> Iterator[Issue]:
    yield from check_croissant(folder, read_json(folder / CROISSANT))

"""Verifying a release: everything that can be wrong with it, in one pass."""

import fnmatch
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, sha256_file
from ...schemas.layout import (
    CANARY,
    CHANGES,
    CROISSANT,
    DATA,
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
from ..hidden.search import search_rows
from ..loading import misshapen
from ..pack.front_matter import CONFORMS_TO, CONTEXT
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

# -- What mlcroissant does not check in Croissant metadata, checked by us on the document itself

# The properties of the RAI vocabulary, version 1.0.
RAI = frozenset(
    f"rai:{name}"
    for name in (
        "dataCollection", "dataCollectionType", "dataCollectionMissingData", "dataCollectionRawData",
        "dataCollectionTimeframe", "dataImputationProtocol", "dataPreprocessingProtocol",
        "dataManipulationProtocol", "dataAnnotationProtocol", "dataAnnotationPlatform",
        "dataAnnotationAnalysis", "dataReleaseMaintenancePlan", "personalSensitiveInformation",
        "dataSocialImpact", "dataBiases", "dataLimitations", "dataUseCases", "annotationsPerItem",
        "annotatorDemographics", "machineAnnotationTools",
    )
)  # fmt: skip
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REQUIRED = ("name", "description", "url", "license", "version", "citeAs", "datePublished")


def check_croissant(folder: Path, metadata: Mapping[str, Any], form: ReleaseForm) -> Iterator[Issue]:
    """Yield what is wrong with the Croissant metadata of a release; damaged parts may also raise lookups."""
    yield from _check_dataset(metadata)
    distribution = metadata.get("distribution", [])
    nodes = [node for node in distribution if node.get("@type") == "cr:FileObject"]
    yield from _check_files(folder, nodes, form)
    sets = {node["@id"]: node for node in distribution if node.get("@type") == "cr:FileSet"}
    files = files_in(folder)
    for name, node in sets.items():
        if not any(fnmatch.fnmatchcase(path, str(node.get("includes"))) for path in files):
            yield _issue(name, "croissant-file", f"{node.get('includes')!r} matches no file", "name it")
    yield from _check_record_sets(metadata.get("recordSet", []), set(sets), form)
    twice = [name for name, count in Counter(_ids(metadata)).items() if count > 1]
    if twice:
        yield _issue("$", "croissant-id", f"used twice: {', '.join(sorted(twice))}", "make ids unique")


def _check_dataset(metadata: Mapping[str, Any]) -> Iterator[Issue]:
    for name in _REQUIRED:
        if not isinstance(metadata.get(name), str) or not metadata[name].strip():
            yield _issue(f"$.{name}", "croissant-property", "missing or empty", "fill it")
    creators = metadata.get("creator")
    if not isinstance(creators, list) or not creators or not all(creator.get("name") for creator in creators):
        yield _issue("$.creator", "croissant-property", "no creator with a name", "name who made the data")
    if metadata.get("conformsTo") != list(CONFORMS_TO):
        yield _issue("$.conformsTo", "croissant-property", f"not {list(CONFORMS_TO)}", "state both")
    if metadata.get("@context") != CONTEXT:
        yield _issue("$.@context", "croissant-property", "not the inline context of Croissant 1.1", "use it")
    odd = sorted(name for name in metadata if name.startswith("rai:") and name not in RAI)
    if odd:
        yield _issue("$", "croissant-rai", f"not in the RAI vocabulary: {', '.join(odd)}", "use its names")
    if not RAI & set(metadata):
        yield _issue("$", "croissant-rai", "no responsible-AI field", "describe collection, limits and uses")


def _check_files(folder: Path, nodes: list[Mapping[str, Any]], form: ReleaseForm) -> Iterator[Issue]:
    described = set()
    for node in nodes:
        where, path, sha256 = str(node.get("@id")), str(node.get("contentUrl")), str(node.get("sha256"))
        described.add(path)
        target = folder / path
        if not target.resolve().is_relative_to(folder.resolve()) or not target.is_file():
            yield _issue(
                where, "croissant-file", f"{path!r} is not a file of the release", "correct contentUrl"
            )
        elif not _SHA256.fullmatch(sha256) or sha256 != sha256_file(target):
            yield _issue(where, "croissant-hash", f"{sha256!r} is not the hash of {path}", "correct it")
    wanted = {path for path in files_in(folder) if path in form.described or path.startswith(f"{DATA}/")}
    for path in sorted(wanted - described):
        yield _issue("$.distribution", "croissant-file", f"{path} is not described", "add a FileObject")


def _check_record_sets(
    record_sets: list[Mapping[str, Any]], file_sets: set[str], form: ReleaseForm
) -> Iterator[Issue]:
    columns = {table.name: {column.name for column in table.columns} for table in form.tables}
    fields = {field["@id"] for node in record_sets for field in node["field"]}
    for node in record_sets:
        name = node["@id"]
        own = {field["@id"] for field in node["field"]}
        if own != {f"{name}/{column}" for column in columns.get(name, ())}:
            yield _issue(name, "croissant-field", "not the columns of its table", "list them all")
        if not node.get("key") or not own.issuperset(key["@id"] for key in node["key"]):
            yield _issue(name, "croissant-key", "the key is missing or names no field", "name its fields")
        for field in node["field"]:
            yield from _check_field(field, file_sets, fields)


def _check_field(field: Mapping[str, Any], file_sets: set[str], fields: set[str]) -> Iterator[Issue]:
    where, source = field["@id"], field.get("source") or {}
    if not field.get("dataType"):
        yield _issue(where, "croissant-field", "no data type", "state it")
    column = source.get("extract", {}).get("column")
    if source.get("fileSet", {}).get("@id") not in file_sets or column != where.partition("/")[2]:
        yield _issue(where, "croissant-source", "no source, or not its own column", "correct it")
    if "references" in field and field["references"].get("field", {}).get("@id") not in fields:
        yield _issue(where, "croissant-reference", "refers to a field that is not there", "correct it")


def _ids(node: Json) -> Iterator[str]:
    """Yield the ids that nodes define; an object with nothing but an id is a reference."""
    if isinstance(node, list):
        for member in node:
            yield from _ids(member)
    elif isinstance(node, dict):
        if "@id" in node and "@type" in node and len(node) > 1 and isinstance(node["@id"], str):
            yield node["@id"]
        for key, value in node.items():
            if key != "@context":
                yield from _ids(value)


def _issue(where: str, code: str, message: str, cure: str) -> Issue:
    return Issue(CROISSANT, where if where.startswith("$") else f"$ {where}", code, message, cure)


# -- Verifying a release

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
        raise InputError(
            [UserError(str(folder), what="there is no such folder", fix="give a release folder")]
        )
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
    findings.gather(CROISSANT, _check_metadata(folder, form))
    if readers:
        findings.gather("read back", read_back(folder, form, findings))


def _check_metadata(folder: Path, form: ReleaseForm) -> Iterator[Issue]:
    yield from check_croissant(folder, read_json(folder / CROISSANT), form)

"""Verifying a release: everything that can be wrong with it, in one pass."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import Json
from ..schemas.issue import Issue
from ..validators.dataset import IMPORTED
from .canary import check_canary
from .check_card import check_card
from .check_changes import check_changes
from .check_croissant import check_croissant
from .check_documents import check_documents, check_left_out
from .check_files import check_listing, check_records, check_release_document, check_sums
from .check_hidden import check_commitments, check_hidden, check_promises
from .check_subsets import check_subsets
from .commitments import read_salt, salt_beside
from .composition import Composition
from .findings import DAMAGE, Findings, VerifyReport, document_of, read_back
from .flat_kinds import flat_kind
from .hidden_search import search_rows
from .layout import (
    ANNOTATIONS,
    CANARY,
    CARD,
    CHANGES,
    CROISSANT,
    PRODUCERS,
    RELEASE,
    SUBSETS,
    VARIANTS,
    files_in,
    hidden_folder,
)
from .loading import kind_of
from .official import WHOLE
from .suite_verification import verify_flat

__all__ = ["VerifyReport", "verify"]


def verify(
    path: str | Path,
    *,
    quick: bool = False,
    hidden: str | Path | None = None,
    salt: str | Path | None = None,
) -> VerifyReport:
    """Verify a release, public or hidden; finds every single-byte change in any of its files.

    Args:
        path: the folder of the release. A ``release.json`` by itself, of any version, is enough to prove that
            it committed to the stories of ``hidden``; then nothing else is checked.
        quick: check hashes, schemas, rules and hidden stories only; documents and readers are left out.
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
            [UserError(str(folder), expected="a release folder", found="no folder", fix="give its folder")]
        )
    flat = flat_kind(kind_of(folder))
    if flat is not None:
        return verify_flat(folder, flat, quick=quick)
    findings = Findings()
    document, composition = _check_data(folder, findings)
    public = document.get("visibility") != "hidden"
    sibling = hidden_folder(folder.absolute()) if hidden is None else Path(hidden)
    beside = public and (hidden is not None or sibling.is_dir())
    secret = _salt(sibling, salt) if beside else None
    if salt is not None and not beside:
        raise _no_hidden(f"none beside {folder}")
    if public:
        findings.gather("hidden", _hidden_rows(folder, document))
        findings.gather(RELEASE, check_promises(document))
    findings.gather(CANARY, check_canary(folder, document))
    if beside:
        found = Findings()
        _check_data(sibling, found)
        findings.take(found, sibling.name, "hidden")
        findings.gather("hidden", check_hidden(folder, document, sibling, secret))
        if secret is not None and (salt is not None or "commitments" in document):
            _gather_commitments(document, sibling, secret, findings)
    if not quick:
        findings.gather(RELEASE, check_left_out(document))
        if public and IMPORTED not in document:  # an import has the documents of its package, not ours
            _check_public(folder, document, composition, findings)
    findings.hush()
    return findings.report(folder, document, quick=quick)


def _prove(path: Path, hidden: str | Path | None, salt: str | Path | None) -> VerifyReport:
    """Check that a ``release.json`` committed to the stories of a hidden folder."""
    if hidden is None or not Path(hidden).is_dir():
        raise _no_hidden(f"none beside {path}" if hidden is None else f"no folder {hidden}")
    findings, folder = Findings(), Path(hidden)
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        document = None
        found = str(error)
    if not isinstance(document, dict) or "version" not in document:
        found = found if document is None else "something else"
        raise InputError(
            [
                UserError(
                    str(path), expected="a release folder, or its release.json", found=found, fix="give one"
                )
            ]
        )
    beside = _salt(folder, salt)
    if beside is None:
        raise ConfigError(
            "--salt",
            expected="the salt of the commitments",
            found=f"none, and no {salt_beside(folder)}",
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
        expected="the folder of the hidden-test stories",
        found=str(found),
        fix="name it with --hidden",
    )


def _hidden_rows(folder: Path, document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield files with rows of the hidden split; a package of others may have them where they are."""
    if not (document.get("visibility") == WHOLE and IMPORTED in document):
        yield from search_rows(folder)


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
            message = problem.what
            yield Issue(problem.where, "$", "unreadable", message, problem.fix)
        return
    findings.checked |= {f"{name} under rules": count for name, count in report.checked.items()}
    yield from report.issues


def _check_public(
    folder: Path, document: Mapping[str, Json], composition: Composition, findings: Findings
) -> None:
    findings.gather("documents", check_documents(folder, document, composition))
    findings.gather(CARD, check_card(folder))
    findings.gather(SUBSETS, check_subsets(folder))
    findings.gather(CHANGES, check_changes(folder, document))
    findings.gather(CROISSANT, _check_metadata(folder))
    findings.gather("read back", read_back(folder, findings))


def _check_metadata(folder: Path) -> Iterator[Issue]:
    yield from check_croissant(folder, json.loads((folder / CROISSANT).read_bytes()))

"""Verifying a release: everything that can be wrong with it, in one pass."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import ConfigError, HubUnavailable, InputError
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.paths import CANARY, CHANGES, IMPORTED, RELEASE, WHOLE, files_in, hidden_folder
from ...schemas.plain_files import parse_json, read_json, read_plain, reason_of
from ...schemas.values import Issue
from ...validators.report import by_line
from ..diff.since import check_changes
from ..form import Reading, ReleaseForm
from ..hidden.marks import (
    check_canary,
    check_commitments,
    check_promises,
    read_salt,
    salt_beside,
    search_rows,
)
from ..hub.client import looks_like_reference, open_hub, parse_reference
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
    :func:`compare_with_published`.

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


# -- Whether a release is the one that was published: its ``release.json`` by hash, address, or commit of a
# Hub
#
# ``release.json`` holds the hash of every other file, so that its own hash stands for the whole release.
# Whoever writes a whole release anew contradicts nothing in it; only what was published elsewhere tells.

_OPTION = "--against"
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_HUB = re.compile(r"hf://datasets/([^@]+@[^@/]+)(?:/release\.json)?")
_MOST, _SECONDS = 64 << 20, 60.0
"""Most bytes of a ``release.json``, and seconds to wait for an address."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Published:
    """What was published."""

    source: str  # where it was told, for people
    sha256: str  # of its ``release.json``
    # path -> size and hash of the files that it lists; None where only its hash is known
    files: Mapping[str, Json] | None = None


def published(text: str) -> Published:
    """Return what a hash, an address, a version on a Hub, or a file or folder says of a release."""
    if match := _HASH.fullmatch(text):
        return Published("the hash given", match[1].casefold())
    if text.startswith(("https://", "http://")):
        source, content = _from_web(text)
    elif (match := _HUB.fullmatch(text)) or (looks_like_reference(text) and not Path(text).exists()):
        source, content = _from_hub(match[1] if match else text)
    else:
        path = Path(text) / RELEASE if Path(text).is_dir() else Path(text)
        try:
            source, content = str(path), read_plain(path, _MOST, follow=True)
        except OSError as error:
            raise _unusable(str(path), f"it cannot be read: {reason_of(error)}") from None
    if not (files := _files(content)):
        raise _unusable(source, "this is no release.json")
    return Published(source, sha256_bytes(content), files)


def compare_with_published(report: VerifyReport, known: Published) -> VerifyReport:
    """Return a report that also says whether the release is the one that was published."""
    if report.path.is_file():
        raise ConfigError(
            _OPTION,
            what=f"{report.path} is a file: its other files cannot be checked",
            fix="give the release folder",
        )
    issues = (*report.issues, *_differences(report.path, known))
    return replace(report, issues=tuple(sorted(issues, key=by_line)), published=known.source)


def _differences(folder: Path, known: Published) -> Iterator[Issue]:
    """Yield that a release is not the one that was published, and which files are others."""
    cure = "do not use it for the published one: fetch that again; or give the hash of this version"
    try:
        content = read_plain(folder / RELEASE)
    except OSError as error:
        yield Issue(RELEASE, "$", "not-published", f"it cannot be read: {reason_of(error)}", cure)
        return
    if (own := sha256_bytes(content)) == known.sha256:
        return
    message = f"its SHA-256 is {own}; {known.source} has {known.sha256}"
    if known.files is not None:
        theirs, ours = known.files, _files(content)
        others = sorted(path for path in theirs.keys() | ours.keys() if theirs.get(path) != ours.get(path))
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        message += (
            f"; other files: {', '.join(others[:_SHOWN])}{more}" if others else "; no other file differs"
        )
    yield Issue(RELEASE, "$", "not-published", message, cure)


def _files(content: bytes) -> dict[str, Json]:
    """Return path -> size and hash of the files that a ``release.json`` lists; none where it is damaged."""
    try:
        document = parse_json(content)
    except ValueError:
        return {}
    files = document.get("files") if isinstance(document, dict) else None
    return files if isinstance(files, dict) else {}


def _from_hub(text: str) -> tuple[str, bytes]:
    reference = parse_reference(text, _OPTION)
    with open_hub(reference.repo) as hub:
        content = hub.read(reference.revision, RELEASE, 0, _MOST + 1)
    _require_bounded(content, str(reference))
    return str(reference), content


def _from_web(address: str) -> tuple[str, bytes]:
    """Return an address without what may be secret in it, and what it holds; no token is sent there."""
    import httpx2

    try:
        url = httpx2.URL(address)
        source = str(url.copy_with(userinfo=b"", query=None, fragment=None))
        with httpx2.stream("GET", url, timeout=_SECONDS, follow_redirects=True) as reply:
            if reply.status_code != httpx2.codes.OK:
                raise _unusable(source, f"it answers with status {reply.status_code}")
            content = bytearray()
            for piece in reply.iter_bytes():
                content += piece
                _require_bounded(content, source)
    except httpx2.InvalidURL as error:
        raise _unusable(address.partition("?")[0].rpartition("@")[2], f"no address: {error}") from None
    except httpx2.HTTPError as error:
        raise HubUnavailable(
            f"{_OPTION} {source}", what=f"it cannot be reached: {type(error).__name__}",
            fix="try again later, or give the hash or a copy of its release.json",
        ) from None  # fmt: skip
    return source, bytes(content)


def _require_bounded(content: bytes | bytearray, source: str) -> None:
    if len(content) > _MOST:
        raise _unusable(source, f"it has more than {_MOST:,} bytes")


def _unusable(source: str, what: str) -> ConfigError:
    return ConfigError(
        f"{_OPTION} {source}",
        what=what,
        fix="give a SHA-256 of 64 digits, a release.json, its address, or user/name@commit",
    )

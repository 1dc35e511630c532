"""Verifying a release: everything that can be wrong with it, in one pass."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.issue import Issue
from ..validators.report import CheckReport
from .check_croissant import check_croissant
from .check_documents import check_documents, check_left_out
from .check_files import check_listing, check_records, check_release_document, check_sums
from .check_hidden import check_hidden
from .composition import Composition
from .layout import ANNOTATIONS, CROISSANT, PRODUCERS, RELEASE, VARIANTS, files_in, hidden_folder
from .loading import read_release_document
from .read_back import OFFLINE

# What a check stumbles over in a damaged file. Anything else is our bug and keeps its traceback.
_DAMAGE = (UserError, OSError, ValueError, LookupError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class VerifyReport(CheckReport):
    """What was found in a release.

    Attributes:
        issues: the findings, sorted; those of the hidden folder begin with its name.
        checked: what was looked at -> how many.
        path: its folder.
        version: its version, if ``release.json`` could be read.
        quick: whether only hashes, schemas and rules were checked.
    """

    path: Path
    version: str | None
    quick: bool

    def about(self) -> dict[str, Json]:
        """Return which release was verified, and how."""
        return {"path": str(self.path), "version": self.version, "quick": self.quick}

    def summary(self) -> str:
        """Return what was checked and how many findings each code has, as lines for people."""
        lines = [f"{self.path}: version {self.version or 'unknown'}; checked {self.looked}"]
        counts = Counter(issue.code for issue in self.issues)
        lines += [f"  {count} {code}" for code, count in sorted(counts.items())]
        return "\n".join([*lines, "the release is sound" if self.ok else "the release is not sound"])


@dataclass(slots=True)
class _Findings:
    """Issues gathered from checks that may stumble over damage."""

    issues: list[Issue] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)

    def gather(self, name: str, found: Iterable[Issue]) -> None:
        """Take the issues of one check; what it cannot read is an issue too."""
        try:
            self.issues.extend(found)
        except _DAMAGE as error:
            message = f"this check could not go on: {type(error).__name__}: {error}"
            self.issues.append(Issue(name, "$", "unreadable", message, "repair the findings beside it first"))

    def take(self, found: "_Findings", folder: str, name: str) -> None:
        """Take the findings of another folder, and say that they are its."""
        self.issues.extend(replace(issue, where=f"{folder}/{issue.where}") for issue in found.issues)
        shown = ("files", "stories under rules")
        self.checked |= {f"{name} {what}": found.checked[what] for what in shown if what in found.checked}


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
    findings = _Findings()
    document, composition = _check_data(folder, findings)
    public = document.get("visibility") != "hidden"
    sibling = hidden_folder(folder.absolute()) if hidden is None else Path(hidden)
    beside = public and (hidden is not None or sibling.is_dir())
    if beside:
        found = _Findings()
        _check_data(sibling, found)
        findings.take(found, sibling.name, "hidden")
        findings.gather("hidden", check_hidden(folder, document, sibling))
    if not quick:
        findings.gather(RELEASE, check_left_out(document))
        if public:
            _check_public(folder, document, composition, findings)
    version = document.get("version")
    issues = tuple(sorted(set(findings.issues)))
    return VerifyReport(issues, findings.checked, folder, None if version is None else str(version), quick)


def _check_data(folder: Path, findings: _Findings) -> tuple[Mapping[str, Json], Composition]:
    """Check the bytes of all files and the rules of all records, in a public folder or a hidden one."""
    document = _document(folder, findings)
    composition = _check_bytes(folder, document, findings)
    findings.gather("rules", _check_rules(folder, findings))
    return document, composition


def _document(folder: Path, findings: _Findings) -> Mapping[str, Json]:
    try:
        return read_release_document(folder)
    except InputError as error:
        for problem in error.problems:
            message = f"expected {problem.expected}, found {problem.found}"
            findings.issues.append(Issue(RELEASE, "$", "release-document", message, problem.fix))
        return {}


def _check_bytes(folder: Path, document: Mapping[str, Json], findings: _Findings) -> Composition:
    composition, seen = Composition(), Counter[str]()
    splits: dict[str, str] = {}

    def visit(name: str, row: Json) -> None:
        seen[name] += 1
        try:
            _count(composition, splits, name, row)
        except _DAMAGE:
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


def _check_rules(folder: Path, findings: _Findings) -> Iterator[Issue]:
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
    folder: Path, document: Mapping[str, Json], composition: Composition, findings: _Findings
) -> None:
    findings.gather("documents", check_documents(folder, document, composition))
    findings.gather(CROISSANT, _check_metadata(folder))
    findings.gather("read back", _read_back(folder, findings))


def _check_metadata(folder: Path) -> Iterator[Issue]:
    yield from check_croissant(folder, json.loads((folder / CROISSANT).read_bytes()))


def _read_back(folder: Path, findings: _Findings) -> Iterator[Issue]:
    """Read the release with the libraries of its users, in a process of its own with its own settings."""
    child = subprocess.run(
        [sys.executable, "-P", "-m", f"{__package__}.read_back", str(folder.absolute())],
        env={**os.environ, **OFFLINE, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if child.returncode != 0:
        last = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        yield Issue(
            "read back", "$", "read-back", f"stopped: {last[:300]}", "repair the findings beside it first"
        )
        return
    reply = json.loads(child.stdout)
    findings.checked["rows read back twice"] = sum(reply["rows"].values())
    yield from (Issue(**issue) for issue in reply["issues"])

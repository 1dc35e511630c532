"""What verifying a release gathers, whatever its kind, and the checks that every kind shares."""

import json
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ...errors import InputError, UserError
from ...models import programs
from ...schemas.canonical import Json
from ...schemas.layout import RELEASE
from ...schemas.text import tallies
from ...schemas.values import Issue
from ...validators.report import CheckReport, by_line
from ..form import ReleaseForm
from ..loading import read_release_document
from .read_back import OFFLINE

_OTHERS = (
    "made by Fabula {}, or with other versions of libraries: what they state was compared with the data, but "
    "not byte by byte"
)
TELLING_IDS = frozenset(
    {
        "file-missing", "file-extra", "file-not-plain", "file-hash", "checksum", "checksums",
        "release-document", "record-form", "record-order", "record-hash", "record-added", "record-missing",
    }
)  # fmt: skip
"""Codes of findings that tell ids and names of files, and nothing that stands in a record."""
UNTOLD = "breaks this rule; the details are in a hidden story, so they are not printed here"
Documents = Literal["bytes", "facts", "imported"]
UNDER_RULES = " under rules"
"""How the counts end of what every rule was checked for."""
_BY_ITSELF = "to see the details, verify the hidden folder on its own, and keep what is printed secret"

_LEFT_OUT = (
    "card", "licence", "statistics", "list of sources", "Croissant metadata", "changes", "subsets",
    "whether other libraries read its tables",
)  # fmt: skip
"""What only a whole verification compares with the data."""

DAMAGE = (UserError, OSError, ValueError, LookupError, TypeError, AttributeError)
"""What a check stumbles over in a damaged file. Anything else is our bug and keeps its traceback."""


@dataclass(frozen=True, slots=True)
class VerifyReport(CheckReport):
    """What was found in a release.

    Attributes:
        issues: the findings, sorted; those of the hidden folder begin with its name.
        checked: what was looked at -> how many.
        path: its folder.
        version: its version, if ``release.json`` could be read.
        quick: whether only hashes, schemas, rules and tables were checked.
        documents: how its documents were compared with those that its data make: ``bytes``; ``facts`` where
            another version of Fabula or of its libraries made them; ``imported`` where they are those of an
            imported package and were not compared; None where nothing was asked of them.
        made_with: the version of Fabula that packed it, if it says so.
        published: where what was published was told, if it was compared with that.
    """

    path: Path
    version: str | None
    quick: bool
    documents: Documents | None = None
    made_with: str | None = None
    published: str | None = None

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """What a quick look leaves out, for people."""
        return _LEFT_OUT if self.quick and not self.path.is_file() else ()

    def about(self) -> dict[str, Json]:
        """Return which release was verified, and how."""
        return {
            "path": str(self.path),
            "version": self.version,
            "quick": self.quick,
            "documents": self.documents,
            "not_looked_at": list(self.not_looked_at),
            "published": self.published,
        }

    def summary(self) -> str:
        """Return what was checked and how many findings each code has, as lines for people."""
        lines = [f"{self.path}: version {self.version or 'unknown'}"]
        looked = {name: count for name, count in self.checked.items() if count}
        ruled = {name: looked.pop(name) for name in list(looked) if name.endswith(UNDER_RULES)}
        if looked:
            lines.append(f"  read: {tallies(looked)}")
        if ruled:
            parts = {name.removesuffix(UNDER_RULES): count for name, count in ruled.items()}
            lines.append(f"  checked against every rule: {tallies(parts)}")
        if self.documents == "bytes":
            lines.append("  documents: made again from the data, and compared byte for byte")
        elif self.documents == "facts":
            lines.append(f"  documents: {_OTHERS.format(self.made_with or 'unknown')}")
        elif self.documents == "imported":
            lines.append("  documents: those of an imported package; not compared with its data")
        counts = Counter(issue.code for issue in self.issues)
        lines += [f"  {count} {code}" for code, count in sorted(counts.items())]
        if self.not_looked_at:
            lines.append(f"  not looked at: {', '.join(self.not_looked_at)}")
        if self.published is not None:
            differs = any(issue.code == "not-published" for issue in self.issues)
            lines.append(f"  published: {'not ' if differs else ''}the release that {self.published} names")
        return "\n".join([*lines, self._verdict()])

    def _verdict(self) -> str:
        if self.path.is_file():  # a release.json by itself: only its commitments were looked at
            return "every commitment is proven" if self.ok else "the commitments are not proven"
        if not self.ok:
            return "the release is not sound"
        if self.quick:
            return "nothing wrong was found in what was looked at; without --quick all of it is"
        return "the release is sound"


@dataclass(slots=True)
class Findings:
    """Issues gathered from checks that may stumble over damage."""

    issues: list[Issue] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)
    documents: Documents | None = None

    def gather(self, name: str, issues: Iterable[Issue]) -> None:
        """Take the issues of one check; what it cannot read is an issue too."""
        try:
            self.issues.extend(issues)
        except DAMAGE as error:
            message = f"this check could not go on: {type(error).__name__}: {error}"
            self.issues.append(Issue(name, "$", "unreadable", message, "correct the other findings first"))

    def take(self, findings: "Findings", folder: str, name: str) -> None:
        """Take the findings of a hidden folder, and say that they are its; what they quote stays there."""
        for issue in findings.issues:
            sayable = issue if issue.code in TELLING_IDS else replace(issue, message=UNTOLD, cure=_BY_ITSELF)
            self.issues.append(replace(sayable, where=f"{folder}/{issue.where}"))
        shown = ("files", f"stories{UNDER_RULES}")
        self.checked |= {
            f"{name} {what}": findings.checked[what] for what in shown if what in findings.checked
        }

    def hush(self) -> None:
        """Keep what rules quote out of the findings about lines that hold a hidden story."""
        leaks = {issue.where for issue in self.issues if issue.code == "hidden-leak"}
        for number, issue in enumerate(self.issues):
            there = issue.where in leaks or issue.where.partition(" ")[0] in leaks
            if there and issue.code not in TELLING_IDS and not issue.code.startswith("hidden-"):
                self.issues[number] = replace(issue, message=UNTOLD)

    def report(self, folder: Path, document: Mapping[str, Json], *, quick: bool) -> VerifyReport:
        """Return what was found in a release."""
        version, tools = document.get("version"), document.get("tools")
        issues = tuple(sorted(set(self.issues), key=by_line))
        return VerifyReport(
            issues,
            self.checked,
            folder,
            None if version is None else str(version),
            quick,
            self.documents,
            str(tools.get("fabula")) if isinstance(tools, dict) else None,
        )


def document_of(folder: Path, form: ReleaseForm, findings: Findings) -> Mapping[str, Json]:
    """Return the content of ``release.json``; empty, with a finding, where it cannot be used."""
    try:
        return read_release_document(folder, form.kind)
    except InputError as error:
        for problem in error.problems:
            message = problem.what
            _, _, path = problem.where.rpartition(f"{RELEASE} ")
            path_in = path if path.startswith("$") else "$"
            findings.issues.append(Issue(RELEASE, path_in, "release-document", message, problem.fix))
        return {}


def read_back(folder: Path, form: ReleaseForm, findings: Findings) -> Iterator[Issue]:
    """Read the release with the libraries of its users, in a process of its own with its own settings."""
    child = programs.run_program(
        [sys.executable, "-P", "-m", f"{__package__}.read_back", str(folder.absolute())],
        {**os.environ, **OFFLINE, "PYTHONIOENCODING": "utf-8"},
        given=pickle.dumps((form.tables, form.rows)),
        output="kept",
    )
    if child.status != 0:
        last = child.last_line or f"exit code {child.status}"
        yield Issue(
            "read back", "$", "read-back", f"stopped: {last[:300]}", "correct the other findings first"
        )
        return
    reply = json.loads(child.output)
    findings.checked["rows read back twice"] = sum(reply["rows"].values())
    yield from (Issue(**issue) for issue in reply["issues"])

"""Whether a release is what was packed: files, checksums, hashes of records, every row of its tables."""

import json
import os
import pickle
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ...errors import InputError, UserError
from ...models import programs
from ...models.spec import made_up
from ...schemas.canonical import Json, canonical_bytes, pretty_bytes, sha256_bytes, sha256_file
from ...schemas.paths import DATA, RELEASE, STAND_INS, STATES, SUMS, files_in, parquet_path
from ...schemas.plain_files import open_plain, parse_json, read_plain
from ...schemas.text import counted, tallies
from ...schemas.values import UNREAD, Issue, states_told
from ...validators.report import CheckReport, by_line
from ..form import ReleaseForm
from ..loading import read_release_document
from ..pack.packing import checksums, tools
from ..parquet import Table, TableWriter, arrow_schema, as_stated, batches, open_table
from .read_back import OFFLINE, digest_of, expected_rows

Visit = Callable[[str, Json], None]
_SUM = re.compile(r"([0-9a-f]{64})  (.+)")
_RESTORE = "fetch or pack the release again; a published version is never changed"
AGAIN = "fetch or pack the release again; corrections are made in its run (`fabula edit`)"


def tampering(folder: Path, issues: Iterable[Issue], again: str = AGAIN) -> UserError | None:
    """Return which files are not those that were packed, as one error; None where all are."""
    found: dict[str, set[str]] = {
        code: set() for code in ("file-missing", "file-extra", "file-hash", "checksum")
    }
    for issue in issues:
        found.get(issue.code, set()).add(issue.where)
    gone, added = found["file-missing"], found["file-extra"]
    changed = (found["file-hash"] | found["checksum"]) - gone - added
    states = (("changed", changed), ("removed", gone), ("added", added))
    said = [_said(state, sorted(names)) for state, names in states if names]
    if not said:
        return None
    fix = again if gone or changed else "remove what was added"
    return UserError(str(folder), what="; ".join(said), fix=fix)


FOLLOWS = frozenset({
    "file-missing", "file-extra", "file-hash", "checksum", "checksums", "release-document", "document",
    "table", "read-back",
})  # fmt: skip
"""Codes of what is found wherever a file was changed after packing."""


def _said(state: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    were = "was" if len(names) == 1 else "were"
    return f"{counted(len(names), 'file')} {were} {state} after packing: {shown}"


_NAMED = 5
"""Files that an error names."""


def check_listing(
    folder: Path, document: Mapping[str, Json], record_ids: Mapping[str, str]
) -> Iterator[Issue]:
    """Yield files that are missing, that nobody listed, or that are no plain files."""
    files = files_in(folder)
    listed = set(_entries(document)) | {RELEASE, SUMS} | set(record_ids)
    for path in sorted(listed - set(files)):
        yield Issue(path, "$", "file-missing", "the file is listed, but missing", _RESTORE)
    for path in sorted(set(files) - listed):
        if _entries(document):
            yield Issue(path, "$", "file-extra", "the file is not listed", "remove it")
    for path in files:
        if (folder / path).is_symlink() or not (folder / path).is_file():
            yield Issue(path, "$", "file-not-plain", "a link or a special file", "put a plain file there")


def check_sums(folder: Path) -> Iterator[Issue]:
    """Yield every difference between ``SHA256SUMS`` and the files; its own bytes must be canonical."""
    try:
        stated = read_plain(folder / SUMS)
    except OSError as error:
        yield Issue(SUMS, "$", "checksums", f"cannot be read: {error.strerror}", _RESTORE)
        return
    actual = checksums(folder)
    if stated == actual:
        return
    lines, wanted = stated.decode("utf-8", "replace").splitlines(), actual.decode("utf-8").splitlines()
    before, after = _sums(lines), _sums(wanted)
    different = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    for path in sorted(different):
        what = "has another checksum" if path in before and path in after else "is only on one side"
        yield Issue(path, "$", "checksum", f"{what}, in {SUMS} and on disk", _RESTORE)
    if not different:
        yield Issue(SUMS, "$", "checksums", "not written as packing writes it", _RESTORE)


def check_release_document(
    folder: Path, document: Mapping[str, Json], *, hashes: bool = True
) -> Iterator[Issue]:
    """Yield every difference between ``release.json`` and the files that it describes."""
    if read_plain(folder / RELEASE) != pretty_bytes(document):
        yield Issue(RELEASE, "$", "release-document", "not written as packing writes it", _RESTORE)
    for path, entry in sorted(_entries(document).items()):
        target = folder / path
        if not target.is_file() or not target.resolve().is_relative_to(folder.resolve()):
            continue
        other = entry.get("bytes") != target.stat().st_size
        if other or (hashes and entry.get("sha256") != sha256_file(target)):
            yield Issue(path, "$", "file-hash", f"size or hash is not the one in {RELEASE}", _RESTORE)


def check_intact(folder: Path, *, hashes: bool = True) -> None:
    """Check the files of a release against what it states of them; without hashes, their sizes alone."""
    document = read_release_document(folder)
    stated = document.get("files")
    listed = sorted(stated) if isinstance(stated, dict) else []
    missing = (Issue(name, "$", "file-missing", "", "") for name in listed if not (folder / name).is_file())
    if cause := tampering(folder, [*missing, *check_release_document(folder, document, hashes=hashes)]):
        raise InputError([cause])


def check_records(
    folder: Path, document: Mapping[str, Json], visit: Visit, record_ids: Mapping[str, str]
) -> Iterator[Issue]:
    """Yield every line that is not canonical, not in order, or not the one whose hash was stated.

    ``record_ids``: its JSONL files -> the field that names a line.
    """
    stated = document.get("records")
    for name, key in record_ids.items():
        hashes = stated.get(name) if isinstance(stated, dict) else None
        yield from _check_lines(folder / name, key, hashes if isinstance(hashes, dict) else {}, visit)


def _check_lines(path: Path, key: str, hashes: Mapping[str, Json], visit: Visit) -> Iterator[Issue]:
    seen: set[str] = set()
    previous = ""
    if not path.is_file():
        return
    with open_plain(path) as lines:
        for number, line in enumerate(lines, 1):
            where = f"{path.name}:{number}"
            row = _parsed(line)
            record_id = row.get(key) if isinstance(row, dict) else None
            if not isinstance(record_id, str):
                yield Issue(
                    where, "$", "record-unreadable", "this line is not a JSON record with an id", _RESTORE
                )
                continue
            visit(path.name, row)
            if canonical_bytes(row) + b"\n" != line:
                yield Issue(where, "$", "record-form", "not in canonical JSON with LF at the end", _RESTORE)
            if seen and record_id <= previous:
                yield Issue(
                    where,
                    "$",
                    "record-order",
                    f"{record_id!r} stands after {previous!r}: records are not sorted",
                    _RESTORE,
                )
            yield from _check_hash(where, record_id, hashes, line)
            seen.add(record_id)
            previous = record_id
    for record_id in sorted(set(hashes) - seen):
        yield Issue(path.name, "$", "record-missing", f"{record_id!r} is missing", _RESTORE)


def _check_hash(where: str, record_id: str, hashes: Mapping[str, Json], line: bytes) -> Iterator[Issue]:
    if record_id not in hashes:
        yield Issue(where, "$", "record-added", f"{record_id!r} is not in {RELEASE}", _RESTORE)
    elif hashes[record_id] != sha256_bytes(line.removesuffix(b"\n")):
        yield Issue(where, "$", "record-hash", f"{record_id!r} is not the record that was packed", _RESTORE)


def _parsed(line: bytes) -> Json:
    try:
        row = parse_json(line)
        canonical_bytes(row)  # refuses NaN and lone surrogates, which JSON text cannot carry to everybody
    except ValueError:
        return None
    return row


def _sums(lines: list[str]) -> dict[str, str]:
    return {match[2]: match[1] for match in map(_SUM.fullmatch, lines) if match}


def _entries(document: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    entries = document.get("files")
    if not isinstance(entries, dict):
        return {}
    return {path: entry if isinstance(entry, dict) else {} for path, entry in entries.items()}


_WRITTEN = {b"ARROW:schema"}
"""What the writer says about a file, beside its rows."""
_CURE = "pack the run again"


def check_tables(folder: Path, form: ReleaseForm) -> Iterator[Issue]:
    """Yield every Parquet table of a release that is not what the JSONL files ask for; only pyarrow reads."""
    expected = expected_rows(folder, form.rows)
    wanted = {parquet_path(table, split): (table, split) for table, split in expected}
    there = {path for path in files_in(folder) if path.startswith(f"{DATA}/")}
    for path in sorted(there - wanted.keys()):
        yield _issue(path, "no record belongs into this file")
    for path in sorted(wanted.keys() - there):
        yield _issue(path, "the file is missing, and records belong into it")
    tables = {table.name: table for table in form.tables}
    for path, (name, split) in sorted(wanted.items()):
        if path in there:
            yield from _check_table(folder / path, path, tables[name], expected[name, split])


def check_table_bytes(folder: Path, document: Mapping[str, Any], form: ReleaseForm) -> Iterator[Issue]:
    """Yield the tables whose bytes are not those that packing writes, where the same pyarrow wrote them.

    Rows may be right and the file hold more: between its parts, or in what it says of them.
    """
    stated, ours = document.get("tools"), tools()
    if not isinstance(stated, dict) or any(stated.get(name) != ours[name] for name in ("fabula", "pyarrow")):
        return
    with tempfile.TemporaryDirectory(prefix="fabula-tables-") as name:
        draft = Path(name)
        with TableWriter(draft, folder) as writer:
            for split, table, row in form.rows(folder):
                writer.add(table, split, row)
        for path in sorted(writer.counts):
            if (folder / path).is_file() and sha256_file(folder / path) != sha256_file(draft / path):
                yield _issue(path, "the file differs from what packing writes for these rows")


def _check_table(file: Path, path: str, table: Table, wanted: list[bytes]) -> Iterator[Issue]:
    try:
        with open_table(file, plain=True) as opened:
            if _columns(opened.schema_arrow) != _columns(arrow_schema(table)):
                yield _issue(path, "the columns are not those that packing writes")
                return
            known = arrow_schema(table).metadata or {}
            if set(opened.metadata.metadata or {}) - _WRITTEN - known.keys() or _has_notes(
                opened.schema_arrow, known
            ):
                yield _issue(path, "it has metadata that packing does not write")
            if opened.metadata.num_rows != len(wanted):
                yield _issue(path, f"{opened.metadata.num_rows} rows; the JSONL files have {len(wanted)}")
                return
        yield from _check_rows(file, path, table, wanted)
    except (ValueError, OSError) as error:  # pyarrow's errors about damaged files are such
        yield _issue(path, f"pyarrow cannot read it: {' '.join(str(error).split())[:300]}")


def _check_rows(file: Path, path: str, table: Table, wanted: list[bytes]) -> Iterator[Issue]:
    with open_table(file) as opened:
        rows = (row for batch in batches(opened, file.stat().st_size) for row in batch.to_pylist())
        for number, (row, digest) in enumerate(zip(rows, wanted, strict=True)):
            if digest_of(as_stated(row, table)) != digest:
                yield _issue(path, f"row {number} ({_key(row, table)}) differs from the JSONL files")
                return


def _columns(schema: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - pyarrow has no types
    # Versions of pyarrow name the elements of a list "item" or "element".
    return [(field.name, str(field.type).replace("<element:", "<item:")) for field in schema]


def _has_notes(schema: Any, known: Mapping[bytes, bytes]) -> bool:  # noqa: ANN401 - pyarrow has no types
    return (schema.metadata or {}) != known or any(field.metadata for field in schema)


def _key(row: dict[str, Json], table: Table) -> str:
    return ", ".join(f"{name} {str(row.get(name))[:80]!r}" for name in table.key)


def _issue(path: str, message: str) -> Issue:
    return Issue(path, "$", "table", message, _CURE)


# -- What verifying a release gathers, whatever its kind, and the checks that every kind shares

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
    def cause(self) -> UserError | None:
        """Which files were changed after packing."""
        return tampering(self.path, self.issues)

    @property
    def beside_cause(self) -> tuple[Issue, ...]:
        """What is told one by one beside the cause, from which the rest follows."""
        own = (issue for issue in self.issues if issue.code not in FOLLOWS)
        return self.issues if self.cause is None else tuple(own)

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
        return "\n".join([*lines, *self._notes(), self._verdict()])

    def _verdict(self) -> str:
        if self.path.is_file():  # a release.json by itself: only its commitments were looked at
            return "every commitment is proven" if self.ok else "the commitments are not proven"
        if not self.ok:
            return "the release is not sound"
        if self.quick:
            return "nothing wrong was found in what was looked at; without --quick all of it is"
        return f"the release is sound{self._read()}"

    def _read(self) -> str:
        """Return how much of a sound release nobody has read, as half a sentence."""
        known = read_release_document(self.path).get(STATES) or {}
        unread = {state: known[state] for state in UNREAD if known.get(state)}
        whole = sum(count for state, count in known.items() if state != "withdrawn")
        told = f"; nobody has read {sum(unread.values())} of its {whole} records ({states_told(unread)})"
        return told if unread else ""

    def _notes(self) -> list[str]:
        """Return what a sound release is all the same: made by stand-ins for models."""
        document = read_release_document(self.path) if self.ok and self.path.is_dir() else {}
        made = made_up(document.get(STAND_INS) or ())
        return [f"  note: {made}"] if made else []


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

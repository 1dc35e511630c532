"""One side of a diff: what ``release.json`` says of its records, and the lines of those that differ."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, sha256_bytes, sha256_file
from ...schemas.layout import RELEASE, STATISTICS
from ...schemas.plain_files import open_plain, parse_json, read_json, reason_of
from ..loading import read_release_document

_NAMED = 5
_RESTORE = "fetch or pack it again; `fabula release verify` says what is amiss"


@dataclass(frozen=True)
class Side:
    """A release, or the draft of one, as a diff sees it."""

    folder: Path  # where its files are
    document: Mapping[str, Any]  # the content of its ``release.json``, finished or not
    # the content of ``statistics.json`` where the file is not written yet
    given_statistics: Mapping[str, Json] | None = None
    _places: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict, repr=False)

    @cached_property
    def records(self) -> dict[str, dict[str, str]]:
        """JSONL file -> record id -> SHA-256 of the record's canonical JSON."""
        return {str(name): dict(hashes) for name, hashes in self.document["records"].items()}

    @cached_property
    def statistics(self) -> Mapping[str, Json]:
        """The content of ``statistics.json``; empty where a release has none, as hidden ones."""
        if self.given_statistics is not None:
            return self.given_statistics
        if STATISTICS not in self.files:
            return {}
        with _reading(self.folder / STATISTICS, "statistics as packing wrote them") as path:
            statistics = read_json(path)
        if not isinstance(statistics, dict):
            raise InputError([_damaged(path, "a JSON object", type(statistics).__name__)])
        return statistics

    @property
    def files(self) -> Mapping[str, Mapping[str, Json]]:
        """Path -> size and hash of the files that ``release.json`` lists."""
        return self.document.get("files") or {}

    @cached_property
    def sha256(self) -> str | None:
        """SHA-256 of its ``release.json``; None for a draft."""
        path = self.folder / RELEASE
        return sha256_file(path) if path.is_file() else None

    def rows(self, name: str, ids: Collection[str]) -> dict[str, Json]:
        """Return id -> record of some records of one file; the other lines are not parsed."""
        rows: dict[str, Json] = {}
        if not ids:
            return rows
        with _reading(self.folder / name, "records as packing wrote them") as path:
            if name not in self._places:
                self.look(name)
            places, hashes = self._places[name], self.records[name]
            there = sorted((places[hashes[id_]], id_) for id_ in ids if hashes[id_] in places)
            with open_plain(path) as lines:
                for (start, length), record_id in there:
                    lines.seek(start)
                    line = lines.read(length)
                    if sha256_bytes(line) == hashes[record_id]:  # else it was changed since it was looked at
                        rows[record_id] = parse_json(line)
        if missing := sorted(set(ids) - rows.keys()):
            raise InputError([_other_records(path, missing, ())])
        return rows

    def look(self, name: str) -> tuple[list[str], list[str]]:
        """Hash the lines of a file, and remember where they begin and how long they are, in bytes.

        Returns:
            The ids of the records whose lines are not there, and the numbers of lines that are no record's.
        """
        stated = self.records[name]
        wanted, others, start = set(stated.values()), list[str](), 0
        places = self._places[name] = {}
        with open_plain(self.folder / name) as lines:
            for number, ended in enumerate(lines, 1):
                line = ended.removesuffix(b"\n")
                sha256 = sha256_bytes(line)
                if sha256 in wanted:
                    places[sha256] = (start, len(line))
                else:
                    others.append(str(number))
                start += len(ended)
        return sorted(id_ for id_, sha256 in stated.items() if sha256 not in places), others


def open_side(path: str | Path) -> Side:
    """Open a release for a diff, public or hidden."""
    folder = Path(path)
    try:
        side = Side(folder, read_release_document(folder))
    except RecursionError as error:
        raise InputError([_damaged(folder / RELEASE, "a release document", str(error))]) from error
    where, records = f"{folder / RELEASE} $.records", side.document.get("records")
    if not records:
        raise InputError([_damaged(where, "the hashes of the records by file", repr(records))])
    for name in records:
        if Path(name).name != name:
            raise InputError([_damaged(where, "a file of the release and its hashes", repr(name)[:80])])
    for problems_of in (_cut, _stale):
        if problems := [problem for name in side.records for problem in problems_of(side, name)]:
            raise InputError(problems)
    return side


def _cut(side: Side, name: str) -> Iterator[UserError]:
    """Yield a problem where a file of records is missing or has another size than is stated."""
    path = side.folder / name
    try:
        size = path.stat().st_size
    except OSError as error:
        yield _damaged(path, "a file of records", reason_of(error))
        return
    stated = side.files.get(name, {}).get("bytes")
    if stated is not None and stated != size:
        yield _damaged(path, f"{stated} bytes, as {RELEASE} states", str(size))


def _stale(side: Side, name: str) -> Iterator[UserError]:
    """Yield a problem where lines are not those whose hashes are stated: one was changed after packing."""
    path = side.folder / name
    try:
        missing, others = side.look(name)
    except OSError as error:
        yield _damaged(path, "a file of records", reason_of(error))
        return
    if missing or others:
        yield _other_records(path, missing, others)


@contextmanager
def _reading(path: Path, expected: str) -> Iterator[Path]:
    """Give a path to read; what it cannot be read by is named."""
    try:
        yield path
    except (OSError, ValueError, RecursionError) as error:
        raise InputError([_damaged(path, expected, reason_of(error))]) from error


def _other_records(path: Path, missing: Sequence[str], others: Sequence[str]) -> UserError:
    parts = [f"{len(missing)} with another hash: {_named(missing)}"] if missing else []
    parts += [f"other lines: {_named(others)}"] if others else []
    return _damaged(path, f"the records whose hashes {RELEASE} states", "; ".join(parts))


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _damaged(where: Path | str, expected: str, found: str) -> UserError:
    return UserError(str(where), expected=expected, found=found, fix=_RESTORE)

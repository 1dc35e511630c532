"""One side of a diff: what ``release.json`` says of its records, and the lines of those that differ."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import InputError, UserError
from ..schemas.canonical import Json, sha256_bytes, sha256_file
from ..schemas.plain_files import open_plain, parse_json, read_json, reason_of
from .layout import RELEASE, STATISTICS
from .loading import read_release_document

_NAMED = 5
_RESTORE = "fetch or pack it again; `fabula release verify` says what is amiss"


_Place = tuple[int, int]
"""Where a line begins in its file, and its length, in bytes."""


@dataclass(frozen=True)
class Side:
    """A release, or the draft of one, as a diff sees it.

    Attributes:
        folder: where its files are.
        document: the content of its ``release.json``, finished or not.
        given_statistics: the content of ``statistics.json`` where the file is not written yet.
    """

    folder: Path
    document: Mapping[str, Any]
    given_statistics: Mapping[str, Json] | None = None
    _places: dict[str, dict[str, _Place]] = field(default_factory=dict, repr=False)

    @cached_property
    def records(self) -> dict[str, dict[str, str]]:
        """JSONL file -> record id -> SHA-256 of the record's canonical JSON."""
        return {str(name): dict(hashes) for name, hashes in self.document["records"].items()}

    @cached_property
    def statistics(self) -> Mapping[str, Json]:
        """The content of ``statistics.json``; empty where a release has none, as hidden ones.

        Raises:
            InputError: it cannot be read.
        """
        if self.given_statistics is not None:
            return self.given_statistics
        path = self.folder / STATISTICS
        if STATISTICS not in self.files:
            return {}
        try:
            found = read_json(path)
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                [_damaged(str(path), "statistics as packing wrote them", reason_of(error))]
            ) from error
        if not isinstance(found, dict):
            raise InputError([_damaged(str(path), "a JSON object", type(found).__name__)])
        return found

    @property
    def files(self) -> Mapping[str, Mapping[str, Json]]:
        """Path -> size and hash of the files that ``release.json`` lists."""
        files = self.document.get("files")
        return files if isinstance(files, dict) else {}

    @cached_property
    def sha256(self) -> str | None:
        """SHA-256 of its ``release.json``; None for a draft."""
        path = self.folder / RELEASE
        return sha256_file(path) if path.is_file() else None

    def rows(self, name: str, ids: Collection[str]) -> dict[str, Json]:
        """Return id -> record of some records of one file; the other lines are not parsed.

        Raises:
            InputError: the file cannot be read, or some of the records are not there as they were packed.
        """
        wanted = {self.records[name][record_id]: record_id for record_id in ids}
        found: dict[str, Json] = {}
        if not wanted:
            return found
        path = self.folder / name
        try:
            for line in self._candidates(name, wanted):
                record_id = wanted.get(sha256_bytes(line))
                if record_id is not None:
                    found[record_id] = parse_json(line)
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                [_damaged(str(path), "records as packing wrote them", reason_of(error))]
            ) from error
        missing = sorted(set(ids) - found.keys())
        if missing:
            expected, shown = f"the records whose hashes {RELEASE} states", _named(missing)
            raise InputError([_damaged(str(path), expected, f"{len(missing)} with another hash: {shown}")])
        return found

    def look(self, name: str) -> tuple[list[str], list[str]]:
        """Hash the lines of a file, and remember where they are.

        Returns:
            The ids of the records whose lines are not there, and the numbers of lines that are no record's.

        Raises:
            OSError: the file cannot be read.
        """
        stated = self.records[name]
        wanted, others, start = set(stated.values()), list[str](), 0
        places = self._places.setdefault(name, {})
        for number, line in enumerate(_lines(self.folder / name), 1):
            sha256 = sha256_bytes(line)
            if sha256 in wanted:
                places[sha256] = (start, len(line))
            else:
                others.append(str(number))
            start += len(line) + 1
        return sorted(one for one, sha256 in stated.items() if sha256 not in places), others

    def _candidates(self, name: str, hashes: Collection[str]) -> Iterator[bytes]:
        """Yield the lines that had some hashes when they were looked at; all lines where none were."""
        places = self._places.get(name)
        if places is None:
            yield from _lines(self.folder / name)
            return
        with open_plain(self.folder / name) as lines:
            for start, length in sorted(places[sha256] for sha256 in hashes if sha256 in places):
                lines.seek(start)
                yield lines.read(length)


def open_side(path: str | Path) -> Side:
    """Open a release for a diff, public or hidden.

    Raises:
        InputError: the folder is no release, a newer version made it, its ``release.json`` is damaged, or a
            line of its records is not one whose hash is stated there.
    """
    folder = Path(path)
    try:
        document = read_release_document(folder)
    except RecursionError as error:
        raise InputError([_damaged(str(folder / RELEASE), "a release document", str(error))]) from error
    where, records = f"{folder / RELEASE} $.records", document.get("records")
    if not isinstance(records, dict) or not records:
        raise InputError([_damaged(where, "the hashes of the records by file", _shown(records))])
    for name, hashes in records.items():
        inside = isinstance(name, str) and Path(name).name == name
        if not inside or not isinstance(hashes, dict):
            raise InputError([_damaged(where, "a file of the release and its hashes", _shown(name))])
        if not all(isinstance(one, str) for one in hashes.values()):
            raise InputError([_damaged(f"{where}.{name}", "hashes as text", "other values")])
    side = Side(folder, document)
    problems = [problem for name in side.records for problem in _cut(side, name)]
    problems = problems or [problem for name in side.records for problem in _stale(side, name)]
    if problems:
        raise InputError(problems)
    return side


def _cut(side: Side, name: str) -> Iterator[UserError]:
    """Yield a problem where a file of records is missing or has another size than is stated."""
    path = side.folder / name
    try:
        size = path.stat().st_size
    except OSError as error:
        yield _damaged(str(path), "a file of records", error.strerror or str(error))
        return
    entry = side.files.get(name)
    stated = entry.get("bytes") if isinstance(entry, dict) else None
    if stated is not None and stated != size:
        yield _damaged(str(path), f"{stated} bytes, as {RELEASE} states", str(size))


def _stale(side: Side, name: str) -> Iterator[UserError]:
    """Yield a problem where lines are not those whose hashes are stated: one was changed after packing."""
    path = str(side.folder / name)
    try:
        missing, others = side.look(name)
    except OSError as error:
        yield _damaged(path, "a file of records", error.strerror or str(error))
        return
    told = [f"{len(missing)} with another hash: {_named(missing)}"] if missing else []
    told += [f"other lines: {_named(others)}"] if others else []
    if told:
        yield _damaged(path, f"the records whose hashes {RELEASE} states", "; ".join(told))


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _lines(path: Path) -> Iterator[bytes]:
    with open_plain(path) as lines:
        for line in lines:
            yield line.removesuffix(b"\n")


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _damaged(where: str, expected: str, found: str) -> UserError:
    return UserError(where, expected=expected, found=found, fix=_RESTORE)

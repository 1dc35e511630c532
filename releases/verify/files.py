"""Whether a release is what was packed: files, checksums, and the hash of every record."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ...schemas.canonical import Json, canonical_bytes, pretty_bytes, sha256_bytes, sha256_file
from ...schemas.issue import Issue
from ...schemas.plain_files import open_plain, parse_json, read_plain
from ..layout import RELEASE, SUMS, files_in
from ..pack.documents import checksums

Visit = Callable[[str, Json], None]
_SUM = re.compile(r"([0-9a-f]{64})  (.+)")
_RESTORE = "fetch or pack the release again; a published version is never changed"


def check_listing(
    folder: Path, document: Mapping[str, Json], record_ids: Mapping[str, str]
) -> Iterator[Issue]:
    """Yield files that are missing, that nobody listed, or that are no plain files."""
    found = files_in(folder)
    listed = set(_entries(document)) | {RELEASE, SUMS} | set(record_ids)
    for path in sorted(listed - set(found)):
        yield Issue(path, "$", "file-missing", "the file is listed, but missing", _RESTORE)
    for path in sorted(set(found) - listed):
        if _entries(document):
            yield Issue(path, "$", "file-extra", "the file is not listed", "remove it")
    for path in found:
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


def check_release_document(folder: Path, document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield every difference between ``release.json`` and the files that it describes."""
    if read_plain(folder / RELEASE) != pretty_bytes(document):
        yield Issue(RELEASE, "$", "release-document", "not written as packing writes it", _RESTORE)
    for path, entry in sorted(_entries(document).items()):
        target = folder / path
        if not target.is_file() or not target.resolve().is_relative_to(folder.resolve()):
            continue
        if entry.get("bytes") != target.stat().st_size or entry.get("sha256") != sha256_file(target):
            yield Issue(path, "$", "file-hash", f"size or hash is not the one in {RELEASE}", _RESTORE)


def check_records(
    folder: Path, document: Mapping[str, Json], visit: Visit, record_ids: Mapping[str, str]
) -> Iterator[Issue]:
    """Yield every line that is not canonical, not in order, or not the one whose hash was stated.

    Args:
        folder: the release.
        document: its ``release.json``.
        visit: is called with the file's name and each record that could be read.
        record_ids: its JSONL files -> the field that names a line.
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

"""Looking for hidden-test stories in every file of a public release, Parquet tables too."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..schemas.canonical import Json
from ..schemas.issue import Issue
from .hidden_marks import SHORTEST, Marks
from .layout import HIDDEN_SPLIT, files_in

CURE = "do not publish this release; pack the run again"
_SPLIT_ROW = re.compile(rb'"(?:split|subset)"\s*:\s*"' + HIDDEN_SPLIT.encode() + rb'"')
_SPLIT_COLUMNS = ("split", "subset")
_ARCHIVES = {
    b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"7z\xbc\xaf": "7z",
    b"\x28\xb5\x2f\xfd": "zstandard", b"SQLite format 3\x00": "SQLite",
    b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16",
}  # fmt: skip
_BLOCK = 1 << 20


def search_rows(public: Path) -> Iterator[Issue]:
    """Yield the files of a public release that hold rows of the hidden split, whosever they are."""
    for path in files_in(public):
        if path.endswith(".parquet"):
            found = _has_split(public / path)
        elif path.endswith((".jsonl", ".json", ".csv")):
            with (public / path).open("rb") as lines:
                found = any(_SPLIT_ROW.search(line) for line in lines)
        else:
            continue
        if found:
            yield Issue(path, "$", "hidden-leak", "holds a row of the hidden test split", CURE)


def search(public: Path, marks: Marks, salt: bytes | None) -> Iterator[Issue]:
    """Yield every place where a public file names, quotes or resembles a hidden-test story.

    Args:
        public: the public release.
        marks: what to look for.
        salt: the secret salt of the commitments, which no public file may hold either.
    """
    for path in files_in(public):
        file = public / path
        with file.open("rb") as start:
            head = start.read(32)
        kind = next((name for magic, name in _ARCHIVES.items() if head.startswith(magic)), None)
        if kind is not None:
            message = f"a {kind} file, which cannot be searched for hidden stories"
            yield Issue(path, "$", "hidden-unsearched", message, "take it out, or unpack it into the release")
        elif path.endswith(".parquet"):
            try:
                yield from _search_table(file, path, marks)
            except ValueError as error:  # pyarrow's errors about damaged files are such
                message = f"cannot be searched for hidden stories: {str(error)[:100]}"
                yield Issue(path, "$", "hidden-unsearched", message, "pack the run again")
        else:
            yield from _search_file(file, path, marks, binary=b"\0" in head)
        if salt is not None and _holds(file, (salt, salt.hex().encode("ascii"))):
            yield Issue(path, "$", "hidden-leak", "holds the salt of the commitments", CURE)


def _has_split(file: Path) -> bool:
    """Return whether a table holds rows of the hidden split; one that cannot be read is told elsewhere."""
    with suppress(ValueError):
        return any(HIDDEN_SPLIT in values for _, values in _columns(file, _SPLIT_COLUMNS))
    return False


def _search_file(file: Path, path: str, marks: Marks, *, binary: bool) -> Iterator[Issue]:
    by_line = path.endswith((".jsonl", ".csv"))
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield from _named(line, f"{path}:{number}", marks)
            if by_line:
                yield from _told(_strings(_parsed(line)), f"{path}:{number}", marks)
    if not by_line and not binary:
        content = file.read_bytes()
        texts = _strings(_parsed(content)) if path.endswith(".json") else [content.decode("utf-8", "replace")]
        yield from _told(texts, path, marks)


def _search_table(file: Path, path: str, marks: Marks) -> Iterator[Issue]:
    for name, values in _columns(file):
        yield from _named("\n".join(values).encode("utf-8", "replace"), f"{path} {name}", marks)
        yield from _told(values, f"{path} {name}", marks)


def _named(content: bytes, where: str, marks: Marks) -> Iterator[Issue]:
    named = next((match[0] for match in marks.ids.finditer(content) if _stands_alone(match)), None)
    if named is not None:
        message = f"holds {named.decode('utf-8', 'replace')!r} of a hidden story"
        yield Issue(where, "$", "hidden-leak", message, CURE)


def _told(texts: Iterable[str], where: str, marks: Marks) -> Iterator[Issue]:
    for text in texts:
        for message in marks.findings(text) if len(text) >= SHORTEST else ():
            yield Issue(where, "$", "hidden-leak", message, CURE)


def _stands_alone(match: re.Match[bytes]) -> bool:
    start, end = match.span()
    return not match.string[max(start - 1, 0) : start].isalnum() and not match.string[end : end + 1].isalnum()


def _parsed(content: bytes) -> Json:
    """Return the JSON that a content is; else its text, as it would read in JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        text = content.decode("utf-8", "replace")
        return text.replace("\\n", " ").replace('\\"', '"') if "\\" in text else text


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _columns(file: Path, only: tuple[str, ...] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts of each column of a Parquet file, a batch at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as table:
        names = [name for name in table.schema_arrow.names if only is None or name in only]
        for batch in table.iter_batches(columns=names) if names else ():
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                yield from ((name, texts) for texts in _texts(pa, column))


def _texts(pa: Any, column: Any) -> Iterator[list[str]]:  # noqa: ANN401 - pyarrow is imported late
    """Yield the texts of an Arrow array, however deep they lie."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield [text for text in column.to_pylist() if text is not None]
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        yield [data.decode("utf-8", "replace") for data in column.to_pylist() if data is not None]
    elif pa.types.is_dictionary(kind):
        yield from _texts(pa, column.dictionary_decode())
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _texts(pa, column.flatten())
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            yield from _texts(pa, part)


def _holds(file: Path, secrets: tuple[bytes, ...]) -> bool:
    overlap = max(map(len, secrets)) - 1
    with file.open("rb") as content:
        block = b""
        while more := content.read(_BLOCK):
            block = block[-overlap:] + more
            if any(secret in block for secret in secrets):
                return True
    return False

"""Looking for hidden-test stories in every file of a public release: tables too, and what a clone adds."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...schemas.canonical import Json
from ...schemas.layout import HIDDEN_SPLIT, files_in
from ...schemas.plain_files import open_plain, parse_json, read_plain
from ...schemas.values import Issue
from ..parquet import batches, open_table
from .commitments import CURE, RETELL
from .marks import Marks, plain

_SPLIT_ROW = re.compile(rb'"(?:split|subset)"\s*:\s*"' + HIDDEN_SPLIT.encode() + rb'"')
_SPLIT_COLUMNS = ("split", "subset")
_ARCHIVES = {
    b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"7z\xbc\xaf": "7z",
    b"\x28\xb5\x2f\xfd": "zstandard", b"SQLite format 3\x00": "SQLite", b"PACK\x00": "git pack",
}  # fmt: skip
_GIT_OBJECTS = ".git/objects"
_TABLE = b"PAR1"
_BLOCK = 1 << 20


def search_rows(public: Path) -> Iterator[Issue]:
    """Yield the files of a public release that hold rows of the hidden split, whosever they are."""
    listed = set(files_in(public))
    for path in _searched(public):
        has_split = False
        if _is_table(public / path, path):
            has_split = _has_split(public / path)
        elif path.endswith((".jsonl", ".json", ".csv")) or path not in listed:
            with open_plain(public / path) as lines:
                has_split = any(map(_SPLIT_ROW.search, lines))
        if has_split:
            yield Issue(path, "$", "hidden-leak", "holds a row of the hidden test split", CURE)


def search(public: Path, marks: Marks, salt: bytes | None) -> Iterator[Issue]:
    """Yield every place where a public file names, quotes or resembles a hidden-test story."""
    if (public / _GIT_OBJECTS).is_dir():
        message = "what git packed cannot be searched for hidden stories"
        cure = "verify a copy without .git, and search what was ever committed by hand"
        yield Issue(_GIT_OBJECTS, "$", "hidden-unsearched", message, cure)
    for path in _searched(public):
        file = public / path
        head = _head(file)
        kind = next((name for magic, name in _ARCHIVES.items() if head.startswith(magic)), None)
        if kind is not None:
            message = f"a {kind} file, which cannot be searched for hidden stories"
            cure = "take it out, or unpack it into the release"
            yield Issue(path, "$", "hidden-unsearched", message, cure)
        else:
            try:
                contents = _table(file, path) if _is_table(file, path) else _file(file, path)
                for where, content in contents:
                    yield from _search_content(content, where, marks)
            except ValueError as error:  # pyarrow's errors about damaged files are such
                message = f"cannot be searched for hidden stories: {str(error)[:100]}"
                yield Issue(path, "$", "hidden-unsearched", message, "take it out, or pack the run again")
        if salt is not None and _holds(file, (salt, salt.hex().encode("ascii"))):
            yield Issue(path, "$", "hidden-leak", "holds the salt of the commitments", CURE)


def _searched(public: Path) -> list[str]:
    """Return every plain file: of the release, and of what a clone or a cache has beside it unpacked."""
    files = files_in(public, clone=True)
    packed = f"{_GIT_OBJECTS}/"
    return [path for path in files if not path.startswith(packed) and not (public / path).is_symlink()]


def _head(file: Path) -> bytes:
    with open_plain(file) as start:
        return start.read(32)


def _is_table(file: Path, path: str) -> bool:
    return path.endswith(".parquet") or _head(file).startswith(_TABLE)  # Git LFS names files by their hash


def _has_split(file: Path) -> bool:
    """Return whether a table holds rows of the hidden split; one that cannot be read is told elsewhere."""
    with suppress(ValueError):
        return any(HIDDEN_SPLIT in values for _, values in _columns(file, _SPLIT_COLUMNS))
    return False


def _file(file: Path, path: str) -> Iterator[tuple[str, bytes | str]]:
    """Yield what is searched of a file, with its place: its lines, the whole, the strings of JSON."""
    if path.endswith(".jsonl"):
        with open_plain(file) as lines:
            for number, line in enumerate(lines, 1):
                yield f"{path}:{number}", line
                yield from ((f"{path}:{number}", text) for text in _strings(_parsed(line)))
        return
    content = read_plain(file)
    for number, line in enumerate(content.splitlines(), 1):
        yield f"{path}:{number}", line
    yield path, content
    if path.endswith(".json"):
        yield from ((path, text) for text in _strings(_parsed(content)))


def _table(file: Path, path: str) -> Iterator[tuple[str, bytes | str]]:
    """Yield the texts of a Parquet file, of each column and of what stands beside the rows."""
    yield from ((f"{path} metadata", note) for note in _notes(file))
    for name, values in _columns(file):
        yield from ((f"{path} {name}", value) for value in values)


def _search_content(content: bytes | str, where: str, marks: Marks) -> Iterator[Issue]:
    text = plain(content if isinstance(content, str) else content.decode("utf-8", "replace"))
    if (key := (len(text), hash(text))) in marks.clean:
        return
    named = marks.named(text)
    messages = [*([] if named is None else [f"holds {named!r} of a hidden story"]), *marks.findings(text)]
    yield from (Issue(where, "$", "hidden-leak", message, RETELL) for message in messages)
    if not messages:
        marks.clean.add(key)


def _parsed(content: bytes) -> Json:
    """Return the JSON that a content is; nothing where it is none."""
    try:
        return parse_json(content)
    except (ValueError, RecursionError):
        return None


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


def _notes(file: Path) -> Iterator[str]:
    """Yield what a Parquet file says beside its rows: of itself, of its schema, of each column."""
    with open_table(file, plain=True) as table:
        yield str(table.metadata.created_by)
        waiting: list[Any] = [table.metadata, table.schema_arrow, *table.schema_arrow]
        while waiting:
            node = waiting.pop()
            for key, value in (node.metadata or {}).items():
                yield from (key.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
            kind: Any = getattr(node, "type", None)
            waiting += [kind.field(number) for number in range(getattr(kind, "num_fields", 0))]
        yield "\n".join(_names(table.schema_arrow))


def _names(fields: Iterable[Any]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _names(field.type.field(number) for number in range(field.type.num_fields))


def _columns(file: Path, only: tuple[str, ...] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts of each column of a Parquet file, a batch at a time."""
    import pyarrow as pa

    with open_table(file) as table:
        names = [name for name in table.schema_arrow.names if only is None or name in only]
        for batch in batches(table, file.stat().st_size, names) if names else ():
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
    with open_plain(file) as content:
        block = b""
        while more := content.read(_BLOCK):
            block = block[-overlap:] + more
            if any(secret in block for secret in secrets):
                return True
    return False

"""The flat tables of a release: columns, which record types give, and their Parquet files.

Bytes depend on the rows and the pyarrow version only: fixed row groups, codec and level, no build time. A
table without rows in a split gets no file: ``datasets`` cannot load an empty one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from ..schemas.canonical import Json
from ..schemas.layout import parquet_path
from ..schemas.plain_files import open_plain, parse_json
from ..schemas.values import Own

Kind = Literal["text", "integer", "number", "boolean", "texts", "integers"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: its name, that of the record's field.
        kind: what a cell holds; any cell may be null where the record's field may.
        path: where the value lies, from the story record or from the part that makes the row.
        description: the record type's own description.
        length: for a list of fixed length, that length.
    """

    name: str
    kind: Kind
    path: tuple[str, ...]
    description: str
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One flat table.

    Attributes:
        name: its name, which is also the configuration that ``datasets`` sees.
        description: what a row is.
        columns: its columns, in order.
        key: the columns that identify a row.
        references: column -> ``(table, column)`` whose value it repeats.
        optional: whether most releases have no such table, so that only those tell of it that have one.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    references: Mapping[str, tuple[str, str]]
    optional: bool = False


PlacedRow = tuple[str, Table, dict[str, Json]]
"""Name of the split's Parquet files, table, and row."""


def row_of(table: Table, part: Json) -> dict[str, Json]:
    """Return one row from the part of a record that makes it.

    A field that a damaged record lacks gives null, so that a comparison can still report it.
    """
    return {column.name: _value_at(part, column.path) for column in table.columns}


def _value_at(value: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def columns_of(own: type[Own], prefix: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Return a column for every field of a record type that holds no record, described as the type does.

    A field that is left out where it is absent (``exclude_if``) came after the first releases: it stands in
    the JSONL files alone, so that the tables of all releases have the same columns.
    """
    lasting = {name: info for name, info in own.model_fields.items() if info.exclude_if is None}
    kinds = {name: _kind_of(info.annotation) for name, info in lasting.items()}
    return tuple(
        Column(name, kind, (*prefix, name), own.model_fields[name].description or "", length)
        for name, (kind, length) in kinds.items()
        if kind is not None
    )


def table_of(
    name: str, row: type, key: tuple[str, ...], references: Mapping[str, tuple[str, str]] | None = None
) -> Table:
    """Return the table whose rows are of a ``TypedDict``: its docstring says what a row is.

    Each annotation, ``Annotated[type, description]``, is a column whose value lies under its own name.
    """
    columns = []
    for field, hint in get_type_hints(row, include_extras=True).items():
        plain, description = get_args(hint)
        kind, length = _kind_of(plain)
        if kind is None:
            raise TypeError(f"{row.__name__}.{field}: a cell holds no {plain}")
        columns.append(Column(field, kind, (field,), description, length))
    return Table(name, row.__doc__ or "", tuple(columns), key, references or {})


def read_lines(path: Path) -> Iterator[dict[str, Json]]:
    """Yield the records of a JSONL file."""
    with open_plain(path) as lines:
        for line in lines:
            yield parse_json(line)


def _kind_of(annotation: Any) -> tuple[Kind | None, int | None]:  # noqa: ANN401 - annotations are any object
    """Return the kind of a field and its fixed length; nested types have a table of their own and no kind."""
    plain: dict[object, Kind] = {str: "text", int: "integer", bool: "boolean"}
    many: dict[object, Kind] = {str: "texts", int: "integers"}
    inner = [arg for arg in get_args(annotation) if arg is not type(None)]
    if annotation in plain:
        return plain[annotation], None
    if get_origin(annotation) in (tuple, list):
        length = None if get_origin(annotation) is list or inner[-1] is Ellipsis else len(inner)
        return many.get(inner[0]), length
    return _kind_of(inner[0]) if len(inner) == 1 else (None, None)


ROW_GROUP = 2000
BATCH = 64
"""Rows that are in memory at a time."""
_LEAST_BOUND = 256 << 20
_MOST_TIMES = 1000
"""What a table may decode to: 256 MiB, or so many times its file. Our own stay below forty times."""
_LARGEST_BATCH = 1 << 30
_LARGEST_TEXT = 64 << 20
_CODEC = {"compression": "zstd", "compression_level": 3, "version": "2.6", "data_page_version": "1.0"}


def arrow_schema(table: Table) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the explicit Arrow schema of a table."""
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "integers": pa.list_(pa.int64()),
    }
    return pa.schema([(column.name, kinds[column.kind]) for column in table.columns])


class TableWriter:
    """Writes the flat tables of a release while its records stream by, in id order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[tuple[str, str], tuple[Table, list[dict[str, Json]]]] = {}
        self._writers: dict[tuple[str, str], Any] = {}
        self.counts: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for table, split_file in [(table, key[1]) for key, (table, _) in self._rows.items()]:
                    self._flush(table, split_file)
        finally:
            for writer in self._writers.values():
                writer.close()

    def add(self, table: Table, split_file: str, row: dict[str, Json]) -> None:
        """Add one row to the file of a table and split."""
        _, rows = self._rows.setdefault((table.name, split_file), (table, []))
        rows.append(row)
        if len(rows) == ROW_GROUP:
            self._flush(table, split_file)

    def _flush(self, table: Table, split_file: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        _, rows = self._rows[table.name, split_file]
        if not rows:
            return
        schema = arrow_schema(table)
        path = parquet_path(table.name, split_file)
        writer = self._writers.get((table.name, split_file))
        if writer is None:
            target = self._folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writers[table.name, split_file] = pq.ParquetWriter(target, schema, **_CODEC)
        group = pa.Table.from_pylist(rows, schema=schema).combine_chunks()
        writer.write_table(group, row_group_size=ROW_GROUP)
        self.counts[path] = self.counts.get(path, 0) + len(rows)
        rows.clear()


class TooLarge(ValueError):
    """A table decodes to more than one of its size does."""


@contextmanager
def open_table(path: Path, *, plain: bool = False) -> Iterator[Any]:
    """Open a Parquet file that others may have made, as a ``pyarrow.parquet.ParquetFile``.

    Args:
        path: the file.
        plain: to see what the file says of itself, with its own types. To read rows, leave it out: then texts
            stay as the file has them, each once, until :func:`batches` has asked how long all are.

    Raises:
        OSError: it is no regular file.
        ValueError: it is no Parquet file. TooLarge: it says that it decodes to more than a table of its size.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    limits = {"thrift_string_size_limit": _LARGEST_TEXT, "thrift_container_size_limit": 1_000_000}
    try:
        with open_plain(path) as file:
            with pq.ParquetFile(file, buffer_size=1 << 16, **limits) as table:
                columns = [table.schema.column(number) for number in range(len(table.schema))]
                texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
                if not 0 <= _stated(table) <= _bound(path.stat().st_size):
                    raise TooLarge(f"it decodes to {_stated(table):,} bytes, too many for its size")
                if plain:
                    yield table
                    return
            with pq.ParquetFile(file, read_dictionary=texts, **limits) as table:
                yield table
    except (
        pa.ArrowException
    ) as error:  # a few are no ValueError: a damaged file may ask for what does not exist
        raise ValueError(str(error)) from error


def batches(table: Any, size: int, columns: Sequence[str] | None = None) -> Iterator[Any]:  # noqa: ANN401 - pyarrow has no types
    """Yield the rows of an open table in small batches, in which a text that is repeated stands once.

    Args:
        table: from :func:`open_table`.
        size: bytes of its file.
        columns: those that are read; all by default.

    Raises:
        ValueError: it is damaged. TooLarge: it decodes to more than a table of its size does.
    """
    decoded = 0
    for batch in table.iter_batches(batch_size=BATCH, columns=columns):
        now = sum(map(_decoded, batch.columns))
        decoded += now
        if decoded > _bound(size) or now > _LARGEST_BATCH:
            raise TooLarge(f"it decodes to {decoded:,} bytes and more, too many for its size")
        yield batch


def _decoded(column: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    """Return how many bytes an Arrow array has once its dictionaries are decoded."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(column.type):
        values = column.dictionary
        lengths = pc.binary_length(values) if not types.is_primitive(values.type) else None
        return column.nbytes if lengths is None else int(pc.sum(lengths.take(column.indices)).as_py() or 0)
    if types.is_list(column.type) or types.is_large_list(column.type):
        return _decoded(column.flatten())
    if types.is_struct(column.type):
        return sum(map(_decoded, column.flatten()))
    return int(column.nbytes)


def _stated(table: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    """Return how many bytes a table says that its columns have, before they are decoded; -1 for nonsense.

    Where the footer is damaged, asking pyarrow's metadata for a column can end the process. A reader of no
    rows, which looks at all columns of a group, raises ``OSError`` before.
    """
    groups, wide = range(table.metadata.num_row_groups), range(table.metadata.num_columns)
    for number in groups:
        list(table.reader.iter_batches(0, row_groups=[number], column_indices=wide))
    columns = [table.metadata.row_group(number).column(column) for number in groups for column in wide]
    sizes = [(column.total_uncompressed_size, 8 * column.num_values) for column in columns]
    return -1 if any(min(pair) < 0 for pair in sizes) else sum(map(max, sizes))


def _bound(size: int) -> int:
    return max(_LEAST_BOUND, _MOST_TIMES * size)

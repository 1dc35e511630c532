"""The Parquet files of a release's tables: written, measured, and read though others may have made them.

Bytes depend on the rows, the pictures that they name, and the pyarrow version only: fixed row groups, codec
and level, no build time. A table without rows in a split gets no file: ``datasets`` cannot load an empty one.
"""

import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, get_args, get_origin

import yaml

from ..errors import InputError
from ..schemas.canonical import Json, sha256_bytes
from ..schemas.paths import DATA, README, RELEASE, parquet_path
from ..schemas.plain_files import MISSHAPEN, explaining, open_plain, parse_json, read_plain, read_text
from ..schemas.values import Own

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import DatasetDict


# -- The flat tables of a release: columns, which record types give, and rows. :mod:`.parquet` has the files

Kind = Literal["text", "integer", "number", "boolean", "texts", "integers", "picture"]


class PictureCell(TypedDict):
    """A picture of a row: its file in the release, which Parquet holds with its bytes, and their SHA-256."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Column:
    name: str  # its name, that of the record's field
    kind: Kind  # what a cell holds; any cell may be null where the record's field may
    path: tuple[str, ...]  # where the value lies, from the story record or from the part that makes the row
    description: str  # the record type's own description
    length: int | None = None  # for a list of fixed length, that length


@dataclass(frozen=True, slots=True)
class Table:
    name: str  # its name, which is also the configuration that ``datasets`` sees
    description: str  # what a row is
    columns: tuple[Column, ...]  # its columns, in order
    key: tuple[str, ...]  # the columns that identify a row
    references: Mapping[str, tuple[str, str]]  # column -> ``(table, column)`` whose value it repeats
    # whether most releases have no such table, so that only those tell of it that have one
    optional: bool = False

    @property
    def pictures(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.kind == "picture")


PlacedRow = tuple[str, Table, dict[str, Json]]
"""Name of the split's Parquet files, table, and row."""


def row_of(table: Table, part: Json) -> dict[str, Json]:
    """Return one row from the part of a record that makes it, as JSON or with records in it.

    A field that a damaged record lacks gives null, so that a comparison can still report it.
    """
    return {column.name: _value_at(part, column.path) for column in table.columns}


def _value_at(value: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        else:
            value = None if isinstance(value, _PLAIN) else getattr(value, step, None)
    return list(value) if isinstance(value, tuple) else value


_PLAIN = (str, int, float, list, tuple)
"""What has no fields."""


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


Declared = tuple[str, Kind, str] | tuple[str, Kind, str, str]
"""A column: name, what a cell holds, description, and the dotted path to its value where that is another."""


def table(
    name: str, what: str, key: str, *columns: Declared,
    references: Mapping[str, tuple[str, str]] | None = None, optional: bool = False,
) -> Table:  # fmt: skip
    """Return the table whose columns are declared; ``key`` names those that identify a row, with spaces."""
    made = [
        Column(column, kind, tuple(path[0].split(".")) if path else (column,), description)
        for column, kind, description, *path in columns
    ]
    return Table(name, what, tuple(made), tuple(key.split()), references or {}, optional)


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


# --

ROW_GROUP = 2000
PICTURE_ROWS = 100
"""Most rows of a row group: of a table of pictures as many as a page of the Hub's viewer shows."""
GROUP_BYTES = 32 << 20
"""Most bytes of a row group's values, unless one row has more: its viewer reads whole groups."""
VIEWER_BYTES = 300_000_000
"""Most bytes of the row groups of one page that the Hub's viewer reads (its setting for rows in memory)."""
BATCH = 64
"""Rows that are in memory at a time."""
_LEAST_BOUND = 256 << 20
_MOST_TIMES = 1000
"""What a table may decode to: 256 MiB, or so many times its file. Our own stay below forty times."""
_LARGEST_BATCH = 1 << 30
_LARGEST_TEXT = 64 << 20
_CODEC = {"compression": "zstd", "compression_level": 3, "version": "2.6", "data_page_version": "1.0"}


def arrow_schema(table: Table) -> Any:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "integers": pa.list_(pa.int64()),
        "picture": pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    }
    return pa.schema(
        [(column.name, kinds[column.kind]) for column in table.columns],
        {_FEATURES: json.dumps({"info": {"features": features_of(table)}})} if table.pictures else None,
    )


_FEATURES = "huggingface"
"""Key of the schema's metadata where ``datasets`` and the Hub look for what columns are."""
_DTYPES = {
    "text": "string", "texts": "string", "integer": "int64", "integers": "int64", "number": "float64",
    "boolean": "bool",
}  # fmt: skip


def features_of(table: Table) -> dict[str, Json]:
    """Return column -> its feature in the words of ``datasets``, in the order of the schema.

    In another order, ``datasets`` takes a column of pictures for a plain struct.
    """
    features: dict[str, Json] = {}
    for column in table.columns:
        value: Json = {"dtype": _DTYPES.get(column.kind), "_type": "Value"}
        if column.kind in ("texts", "integers"):
            value = {"feature": value, "_type": "Sequence"}  # what versions before 4 call a list, too
        features[column.name] = {"_type": "Image"} if column.kind == "picture" else value
    return features


def width_of(row: Mapping[str, Json], table: Table, folder: Path) -> int:
    """Return how many bytes a row's values have: texts in UTF-8, numbers eight, pictures their files'."""
    pictures = table.pictures
    return sum(
        _file_of(value, folder).stat().st_size + _bytes_of(value["path"])
        if name in pictures and value is not None
        else _bytes_of(value)
        for name, value in row.items()
    )


def _file_of(cell: Json, folder: Path) -> Path:
    path = PurePosixPath(str(cell["path"]))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"a picture outside the release: {str(path)[:200]!r}")
    return folder / path


def _bytes_of(value: Json) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return sum(map(_bytes_of, value))
    return 0 if value is None else 1 if isinstance(value, bool) else 8


def as_stated(row: dict[str, Any], table: Table) -> dict[str, Json]:
    """Return a row that was read as the files of the release state it: of a picture its path and hash."""
    for name in table.pictures:
        cell = row.get(name)
        if isinstance(cell, Mapping):
            data = cell.get("bytes")
            row[name] = {
                "path": cell.get("path"),
                "sha256": sha256_bytes(data) if isinstance(data, bytes) else None,
            }
    return row


@dataclass(slots=True)
class _Group:
    """The rows that wait to be written, and the bytes of their values."""

    table: Table
    rows: list[dict[str, Json]]
    bytes: int = 0


class TableWriter:
    """Writes the flat tables of a release while its records stream by, in id order.

    ``folder``: the release that is being made. ``source``: where pictures lie under their paths [folder].

    Attributes:
        counts: Parquet path -> number of rows.
        bytes: Parquet path -> bytes of their values; see :func:`width_of`.
    """

    def __init__(self, folder: Path, source: Path | None = None) -> None:
        self._folder = folder
        self._source = folder if source is None else source
        self._groups: dict[tuple[str, str], _Group] = {}
        self._writers: dict[tuple[str, str], Any] = {}
        self.counts: dict[str, int] = {}
        self.bytes: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for name, split_file in list(self._groups):
                    self._flush(name, split_file)
        finally:
            for writer in self._writers.values():
                writer.close()

    def add(self, table: Table, split_file: str, row: dict[str, Json]) -> None:
        group = self._groups.setdefault((table.name, split_file), _Group(table, []))
        width = width_of(row, table, self._source)
        if group.bytes + width > GROUP_BYTES:
            self._flush(table.name, split_file)
        group.rows.append(row)
        group.bytes += width
        if len(group.rows) == (PICTURE_ROWS if table.pictures else ROW_GROUP):
            self._flush(table.name, split_file)

    def _flush(self, name: str, split_file: str) -> None:
        import pyarrow as pa

        group = self._groups[name, split_file]
        if not group.rows:
            return
        table, path = group.table, parquet_path(name, split_file)
        writer = self._writers.get((name, split_file))
        if writer is None:
            writer = self._writers[name, split_file] = self._opened(table, self._folder / path)
        rows = [self._with_bytes(row, table) for row in group.rows] if table.pictures else group.rows
        made = pa.Table.from_pylist(rows, schema=arrow_schema(table)).combine_chunks()
        writer.write_table(made, row_group_size=ROW_GROUP)
        self.counts[path] = self.counts.get(path, 0) + len(rows)
        self.bytes[path] = self.bytes.get(path, 0) + group.bytes
        group.rows.clear()
        group.bytes = 0

    def _opened(self, table: Table, target: Path) -> Any:  # noqa: ANN401 - pyarrow has no types
        import pyarrow.parquet as pq

        target.parent.mkdir(parents=True, exist_ok=True)
        own: dict[str, Any] = {}
        if table.pictures:  # no two pictures are the same, and a page of rows is found by the index
            plain = [column.name for column in table.columns if column.kind != "picture"]
            own = {"use_dictionary": plain, "write_page_index": True}
        return pq.ParquetWriter(target, arrow_schema(table), **_CODEC, **own)

    def _with_bytes(self, row: Mapping[str, Json], table: Table) -> dict[str, Any]:
        """Return a row with the bytes of its pictures."""
        cells = {name: row[name] for name in table.pictures if row[name] is not None}
        return {**row} | {
            name: {"bytes": read_plain(_file_of(cell, self._source)), "path": cell["path"]}
            for name, cell in cells.items()
        }


def measured(folder: Path, rows: Iterable[PlacedRow]) -> tuple[dict[str, int], dict[str, int]]:
    """Return what a :class:`TableWriter` counts over the same rows: rows and bytes of each Parquet file."""
    counts: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for split_file, table, row in rows:
        path = parquet_path(table.name, split_file)
        counts[path] = counts.get(path, 0) + 1
        sizes[path] = sizes.get(path, 0) + width_of(row, table, folder)
    return counts, sizes


def has_pictures(folder: Path, table: Table, split_file: str) -> bool:
    """Return whether a folder has a table of pictures, or is about to get it.

    Releases that were packed before there were such tables have none, and none is asked of them.
    """
    return not (folder / RELEASE).exists() or (folder / parquet_path(table.name, split_file)).exists()


def first_page(path: Path) -> int:
    """Return how many bytes the Hub's viewer decodes for the first page of a table, in whole row groups."""
    with open_table(path, plain=True) as table:
        rows = total = group = 0
        while rows < PICTURE_ROWS and group < table.metadata.num_row_groups:
            part = table.metadata.row_group(group)
            rows, total, group = rows + part.num_rows, total + part.total_byte_size, group + 1
        return int(total)


class TooLarge(ValueError):
    """A table decodes to more than one of its size does."""


@contextmanager
def open_table(path: Path, *, plain: bool = False) -> Iterator[Any]:
    """Open a Parquet file that others may have made, as a ``pyarrow.parquet.ParquetFile``."""
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

    ``size``: bytes of its file.
    """
    decoded = 0
    for group in range(table.metadata.num_row_groups):  # a batch of pictures is no larger than their group
        for batch in table.iter_batches(batch_size=BATCH, row_groups=[group], columns=columns):
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


# -- The flat tables of a release for those who work with its data: as Arrow, and as ``datasets`` loads them

_BLOCK = re.compile(r"---\n(.*?)^---$", re.DOTALL | re.MULTILINE)


def parse_front_matter(card: str) -> dict[str, Any]:
    block = _BLOCK.match(card)
    if block is None:
        raise ValueError("the card does not begin with front matter between two lines of ---")
    try:
        values = deepcopy(_loaded(block[1]))
    except yaml.YAMLError as error:
        raise ValueError(f"the front matter is not YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError("the front matter is not a mapping")
    return values


@lru_cache(maxsize=8)  # a release has one card, which several checks read
def _loaded(text: str) -> Any:  # noqa: ANN401 - what a YAML document holds
    return yaml.safe_load(text)


def table_names(folder: Path) -> list[str]:
    """Return the names of a release's flat tables, the default one first."""
    with _readable(folder / README):
        return [
            str(config["config_name"]) for config in parse_front_matter(read_text(folder / README))["configs"]
        ]


def arrow_table(folder: Path, name: str | None = None) -> "pa.Table":
    """Return a flat table of a release, its splits one after the other."""
    import pyarrow as pa

    parts = []
    for path in _files(folder, name):
        with _readable(path), open_table(path) as table:
            part = pa.Table.from_batches(batches(table, path.stat().st_size))
            plain = [(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
                     for field in part.schema]  # fmt: skip
            part = part.cast(pa.schema(plain))
            parts.append(part if "split" in part.column_names else part.add_column(
                0, "split", pa.array([path.stem.partition("-")[0]] * len(part), pa.string())))  # fmt: skip
    return pa.concat_tables(parts)


def dataset_dict(folder: Path, name: str | None = None) -> "DatasetDict":
    """Return a flat table of a release as ``datasets`` loads it from its folder; as :func:`arrow_table`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # no bar is shown
        import datasets

    quiet = datasets.utils.are_progress_bars_disabled()
    datasets.utils.disable_progress_bars()  # it is a folder of this machine, and takes a moment
    try:
        with _readable(folder):
            for path in _files(folder, name):
                open_plain(path).close()  # what is in place of a file is told by its name
            return datasets.load_dataset(str(folder), _chosen(folder, name))
    finally:
        if not quiet:
            datasets.utils.enable_progress_bars()


def _chosen(folder: Path, name: str | None) -> str:
    names = table_names(folder)
    if name is not None and name not in names:
        what, fix = f"the release has no table {name}", f"use one of: {', '.join(names)}"
        raise InputError.one(str(folder), what=what, fix=fix)
    return names[0] if name is None else name


def _files(folder: Path, name: str | None) -> list[Path]:
    return sorted((folder / DATA / _chosen(folder, name)).glob("*.parquet"))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    with explaining(
        path, "fetch or pack the release again, or run `fabula release verify` on it", of=MISSHAPEN
    ):
        yield

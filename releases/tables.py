"""The flat tables of a release: columns, which record types give, and rows. :mod:`.parquet` has the files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args, get_origin

from ..schemas.canonical import Json
from ..schemas.plain_files import open_plain, parse_json
from ..schemas.values import Own

Kind = Literal["text", "integer", "number", "boolean", "texts", "integers", "picture"]


class PictureCell(TypedDict):
    """A picture of a row: its file in the release, which Parquet holds with its bytes, and their SHA-256."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str  # its name, that of the record's field
    kind: Kind  # what a cell holds; any cell may be null where the record's field may
    path: tuple[str, ...]  # where the value lies, from the story record or from the part that makes the row
    description: str  # the record type's own description
    length: int | None = None  # for a list of fixed length, that length


@dataclass(frozen=True, slots=True)
class Table:
    """One flat table."""

    name: str  # its name, which is also the configuration that ``datasets`` sees
    description: str  # what a row is
    columns: tuple[Column, ...]  # its columns, in order
    key: tuple[str, ...]  # the columns that identify a row
    references: Mapping[str, tuple[str, str]]  # column -> ``(table, column)`` whose value it repeats
    # whether most releases have no such table, so that only those tell of it that have one
    optional: bool = False

    @property
    def pictures(self) -> tuple[str, ...]:
        """The names of its columns of pictures."""
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

"""The flat tables of a release, derived from the record types: columns, keys, references and rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from ..schemas.base import Own
from ..schemas.canonical import Json
from ..schemas.katha import EvidenceStatus, Provenance, Question, Scene, StoryRecord, Transition, Variant

Kind = Literal["text", "integer", "boolean", "texts", "integers"]


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
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    references: Mapping[str, tuple[str, str]]


_STORY = {"story_id": ("stories", "story_id")}


@cache
def tables() -> tuple[Table, ...]:
    """Return the flat tables, the default configuration first."""
    return (
        Table("stories", "One row per story.", _story_columns(), ("story_id",), {}),
        _table("scenes", "One row per scene.", Scene, ("story_id", "scene_index"), _STORY),
        _table(
            "transitions",
            "One row per transition between adjacent scenes.",
            Transition,
            ("story_id", "from_scene", "to_scene"),
            _STORY,
        ),
        _table("questions", "One row per recoverability question.", Question, ("question_id",), _STORY),
        _table(
            "variants",
            "One row per contrastive variant.",
            Variant,
            ("variant_id",),
            {"base_story_id": ("stories", "story_id")},
        ),
    )


def record_rows(record: Json) -> Iterator[tuple[Table, dict[str, Json]]]:
    """Yield the rows that a story record adds to the tables, with their table, in record order."""
    stories, *nested, _ = tables()
    yield stories, row_of(stories, record)
    for table in nested:
        for part in record.get(table.name) or ():
            yield table, row_of(table, part)


def variant_row(variant: Json) -> tuple[Table, dict[str, Json]]:
    """Return the row of a variant, with its table."""
    return tables()[-1], row_of(tables()[-1], variant)


def row_of(table: Table, part: Json) -> dict[str, Json]:
    """Return one row from the part of a record that makes it.

    A field that a damaged record lacks gives null, so that a comparison can still report it.
    """
    return {column.name: _value_at(part, column.path) for column in table.columns}


def _value_at(value: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _table(
    name: str, description: str, own: type[Own], key: tuple[str, ...], refs: Mapping[str, tuple[str, str]]
) -> Table:
    return Table(name, description, tuple(_columns(own, ())), key, refs)


def _story_columns() -> tuple[Column, ...]:
    return (
        *_columns(StoryRecord, ()),
        *_columns(EvidenceStatus, ("evidence_status",)),
        *_columns(Provenance, ("provenance",)),
    )


def _columns(own: type[Own], prefix: tuple[str, ...]) -> Iterator[Column]:
    for name, info in own.model_fields.items():
        kind, length = _kind_of(info.annotation)
        if kind is not None:
            yield Column(name, kind, (*prefix, name), info.description or "", length)


def _kind_of(annotation: Any) -> tuple[Kind | None, int | None]:  # noqa: ANN401 - annotations are any object
    """Return the kind of a field and its fixed length; nested types have a table of their own and no kind."""
    plain: dict[object, Kind] = {str: "text", int: "integer", bool: "boolean"}
    many: dict[object, Kind] = {str: "texts", int: "integers"}
    inner = [arg for arg in get_args(annotation) if arg is not type(None)]
    if annotation in plain:
        return plain[annotation], None
    if get_origin(annotation) is tuple:
        length = None if inner[-1] is Ellipsis else len(inner)
        return many.get(inner[0]), length
    return _kind_of(inner[0]) if len(inner) == 1 else (None, None)

"""Bulk validation against the published JSON Schemas, all errors at once, with JSON paths."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json
from ..schemas.export import json_schema
from ..schemas.paths import format_path
from ..schemas.values import Issue
from .codes import issue, show

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator


@dataclass(frozen=True, slots=True)
class SchemaFinding:
    """One schema error: the issue, and the field of the instance that can no longer be relied on, if any."""

    issue: Issue
    broken: str | None


def check_schema(name: str, instance: Json, where: str) -> Iterator[SchemaFinding]:
    """Yield every way in which an instance departs from a published schema.

    Formats are asserted. Fields that the schema does not define are kept, so they are warnings.
    """
    validator = _validator(name)
    if validator.is_valid(instance):
        return
    for error in validator.iter_errors(instance):
        yield from _findings(error, where)


def _findings(error: Any, where: str) -> Iterator[SchemaFinding]:  # noqa: ANN401 - no types exported
    steps: list[str | int] = list(error.instance_path)
    kind = error.kind.name
    if kind == "additionalProperties":
        for extra in error.kind.unexpected:
            finding = issue(
                "unknown-field", where, _path([*steps, extra]), f"{show(extra)} is not in the schema"
            )
            yield SchemaFinding(finding, None)
        return
    if kind == "required":
        name = error.kind.property
        finding = issue("schema", where, _path(steps), f"expected a field {show(name)}, found none")
        yield SchemaFinding(finding, _broken([*steps, name]))
        return
    code = "timestamp" if kind == "format" else "schema"
    yield SchemaFinding(issue(code, where, _path(steps), _message(error)), _broken(steps))


def _message(error: Any) -> str:  # noqa: ANN401 - no types exported
    kind, found = error.kind, show(error.instance)
    if kind.name == "type":
        return f"expected {' or '.join(kind.types)}, found {found}"
    if kind.name == "format":
        return f"expected a {kind.format}, found {found}"
    if kind.name == "anyOf":
        types = [
            name
            for branch in kind.context
            for inner in branch
            if inner.kind.name == "type"
            for name in inner.kind.types
        ]
        return f"expected {' or '.join(dict.fromkeys(types)) or 'another form'}, found {found}"
    if kind.name == "minimum":
        return f"expected at least {kind.limit}, found {found}"
    return f"{kind.name}: found {found}"


def _path(steps: list[str | int]) -> str:
    path = format_path(steps)
    # A key from a hostile file may hold anything; the path must stay on one line.
    return path if path.isprintable() and len(path) < 200 else ascii(path)[1:200]


def _broken(steps: list[str | int]) -> str:
    """Return the field concerned, as ``scenes`` or ``provenance.created_at``; ``*`` for the whole."""
    if not steps:
        return "*"
    return f"{steps[0]}.{steps[1]}" if len(steps) > 1 and isinstance(steps[1], str) else str(steps[0])


@cache
def _validator(name: str) -> "Draft202012Validator":
    from jsonschema_rs import Draft202012Validator

    schema = _shell() if name == "katha_bundle_shell" else json_schema(name)
    # The generated schemas refer to themselves only; `offline` keeps it so whatever they say.
    return Draft202012Validator(schema, validate_formats=True, offline=True)


def _shell() -> dict[str, Json]:
    """Return the bundle's schema with record and variants left open: they are checked on their own."""
    schema = json_schema("katha_bundle")
    objects = {"type": "array", "items": {"type": "object"}}
    return {
        **schema,
        "properties": {**schema["properties"], "record": {"type": "object"}, "variants": objects},
    }

"""Reading JSONL files that may be broken: every bad line becomes an issue, every good one an object."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import InputError
from ..schemas.canonical import Json
from ..schemas.export import json_schema
from ..schemas.paths import format_path
from ..schemas.plain_files import LARGEST_DOCUMENT, is_deep, json_reason, open_plain, reason_of
from ..schemas.values import Issue
from .report import issue, show

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MAX_LINE = 64 * 1024 * 1024
BOM = b"\xef\xbb\xbf"

Report = Callable[[Issue], None]


@dataclass(frozen=True, slots=True)
class Line:
    """One object of a JSONL file."""

    number: int  # its line, from 1
    offset: int  # its first byte in the file
    data: dict[str, Json]  # the object


@dataclass(frozen=True, slots=True)
class RawLine:
    """One line as bytes; ``text`` has neither BOM nor line end."""

    number: int
    offset: int
    text: bytes
    ended: bool


def ignore(_issue: Issue) -> None:
    """Drop an issue: for a second reading of a file, whose issues are known."""


def raw_lines(path: Path, name: str, report: Report) -> Iterator[RawLine]:
    """Yield the lines of a file that are not blank, as bytes."""
    try:
        with open_plain(path, follow=True) as handle:
            yield from _raw_lines(handle, name, report)
    except OSError as error:
        raise _unreadable(path, error) from error


def is_blank(path: Path) -> bool:
    """Return whether a file holds nothing but white space."""
    try:
        with open_plain(path, follow=True) as handle:
            return not any(chunk.strip() for chunk in iter(lambda: handle.read(65536), b""))
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InputError:
    found, fix = reason_of(error), "check the path and its permissions"
    return InputError.one(str(path), what=f"cannot be read: {found}", fix=fix)


def _raw_lines(handle: BinaryIO, name: str, report: Report) -> Iterator[RawLine]:
    offset = number = 0
    while raw := handle.readline(MAX_LINE):
        number += 1
        start, offset = offset, offset + len(raw)
        if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
            report(issue("line-length", f"{name}:{number}", "$", "the line is longer than 64 MiB"))
            while (rest := handle.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                offset += len(rest)
                if offset - start > LARGEST_DOCUMENT:
                    return  # a file without line ends, and perhaps without an end
            offset += len(rest)
            continue
        text = raw.strip()
        if number == 1 and text.startswith(BOM):
            report(issue("byte-order-mark", f"{name}:1", "$", "the file starts with a byte order mark"))
            text = text[len(BOM) :].strip()
        if text:
            yield RawLine(number, start, text, raw.endswith(b"\n"))


def read_objects(path: Path, name: str, report: Report) -> Iterator[Line]:
    """Yield the objects of a JSONL file; whatever else it holds is reported with its line."""
    for raw in raw_lines(path, name, report):
        data = parse_object(raw, f"{name}:{raw.number}", report)
        if data is not None:
            yield Line(raw.number, raw.offset, data)


def parse_object(raw: RawLine, where: str, report: Report) -> dict[str, Json] | None:
    """Return the object on a line, or ``None`` after reporting why there is none."""
    try:
        value = _decode(raw.text, where, report)
    except UnicodeDecodeError as error:
        message = f"byte {error.start + 1} of the line ({raw.text[error.start]:#04x}) is not UTF-8"
        report(issue("encoding", where, "$", message))
    except RecursionError:
        report(issue("json", where, "$", "the JSON is nested too deeply"))
    except ValueError as error:
        code = "json" if raw.ended else "truncated"
        report(issue(code, where, "$", _what_is_wrong(error, raw.text)))
    else:
        if is_deep(value, raw.text):
            report(issue("json", where, "$", "the JSON is nested too deeply"))
            return None
        if isinstance(value, dict):
            return value
        report(issue("json-object", where, "$", f"expected an object, found {show(value)}"))
    return None


def _decode(text: bytes, where: str, report: Report) -> Json:
    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        made = dict(pairs)
        if len(made) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            report(
                issue("repeated-key", where, "$", f"the key {show(twice)} occurs twice; the last one counts")
            )
        return made

    decoded = text.decode("utf-8")
    value = json.loads(decoded, object_pairs_hook=unique, parse_constant=_no_constant)
    if "\\ud" in decoded or "\\uD" in decoded:
        # An escaped lone surrogate parses, but has no UTF-8 form.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")


def _what_is_wrong(error: ValueError, text: bytes) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "an escape such as \\ud800 stands for half a character"
    if b"\x00" in text:
        at = text.index(b"\x00") + 1
        return f"NUL byte at byte {at} of the line"
    if isinstance(error, json.JSONDecodeError):
        return json_reason(error)
    return str(error)


def read_document(path: Path, name: str, report: Report) -> Json:
    """Return the JSON document in a file, or ``None`` after reporting why there is none."""
    try:
        with open_plain(path, follow=True) as file:
            content = file.read(LARGEST_DOCUMENT + 1)
    except FileNotFoundError:
        report(issue("missing-file", name, "$", "the file is missing"))
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(content) > LARGEST_DOCUMENT:
        report(issue("line-length", name, "$", "the document is larger than 256 MiB"))
        return None
    return parse_object(RawLine(1, 0, content.removeprefix(BOM), True), name, report)


# -- Bulk validation against the published JSON Schemas, all errors at once, with JSON paths


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

"""How a request says what shape its reply must have, where the service does not enforce it."""

import json
from functools import lru_cache
from typing import Any

from ..schemas.canonical import canonical_text
from .chat import ChatRequest, Message, ReplySchema


def messages_to_send(request: ChatRequest) -> tuple[Message, ...]:
    """Return a request's messages; unless the service enforces the schema, it stands in the last one."""
    if request.schema is None or request.structured == "schema":
        return request.messages
    *before, last = request.messages
    text = (
        "\n\nAnswer with one JSON object and nothing else. It must satisfy this JSON Schema:\n"
        f"{canonical_text(request.schema.schema)}"
    )
    return (*before, Message(last.role, (*last.parts, text)))


def titled(schema: ReplySchema) -> dict[str, Any]:
    """Return a reply schema that carries its name as title, for services that take no name beside it."""
    return {"title": schema.name, **schema.schema}


_COUNTS = (
    "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "maxItems", "uniqueItems", "minProperties", "maxProperties",
)  # fmt: skip


def without_counts(schema: ReplySchema) -> dict[str, Any]:
    """Return a reply schema without limits on lengths and numbers, which then stand in descriptions.

    For services whose grammar knows no such limits; replies are checked against the whole schema.
    """
    cleaned: dict[str, Any] = json.loads(_without_counts(canonical_text(titled(schema))))
    return cleaned


@lru_cache(maxsize=256)
def _without_counts(text: str) -> str:
    return canonical_text(_relaxed(json.loads(text)))


def _relaxed(schema: Any) -> Any:  # noqa: ANN401 - a schema or a part of one
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    dropped: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _COUNTS or (key == "minItems" and value > 1):
            dropped[key] = value
        elif key in ("properties", "$defs"):
            kept[key] = {name: _relaxed(inner) for name, inner in value.items()}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            kept[key] = [_relaxed(inner) for inner in value]
        else:
            kept[key] = _relaxed(value) if key == "items" else value
    if dropped:
        limits = ", ".join(f"{key}: {value}" for key, value in sorted(dropped.items()))
        kept["description"] = f"{kept.get('description', '')} ({limits})".strip()
    return kept

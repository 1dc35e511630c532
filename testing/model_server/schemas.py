"""The smallest reply that satisfies a JSON Schema."""

from collections.abc import Mapping
from typing import Any

from ...schemas.canonical import Json

DEEPEST = 40


def from_schema(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0) -> Json:
    """Return a small value that satisfies a schema.

    It knows types, ``enum``, ``const``, alternatives, local references, required properties and lower bounds;
    patterns and formats it does not.

    Raises:
        ValueError: the schema nests without end.
    """
    root = schema if root is None else root
    if depth > DEEPEST:
        raise ValueError("the schema nests too deeply for a smallest reply")
    if "$ref" in schema:
        return from_schema(_referred(root, schema["$ref"]), root, depth + 1)
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            merged = {**schema[word][0]}
            if word == "allOf":
                for entry in schema[word][1:]:
                    merged |= entry
            rest = {name: value for name, value in schema.items() if name != word}
            return from_schema({**rest, **merged}, root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Json:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        members = schema.get("properties", {})
        return {
            name: from_schema(members.get(name, {}), root, depth + 1) for name in schema.get("required", ())
        }
    if kind == "array":
        items = schema.get("items", {})
        return [from_schema(items, root, depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return "text".ljust(schema.get("minLength", 0), "t")[: schema.get("maxLength", 1_000_000)]
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    return False if kind == "boolean" else None


def _referred(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    found: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        if name:
            found = found[name.replace("~1", "/").replace("~0", "~")]
    return dict(found)

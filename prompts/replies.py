"""The reply schema in a prompt's front matter: vocabularies filled in, strict form checked.

Services enforce only part of JSON Schema, and each another part. What is allowed here is what all of them
take: closed objects with every property required, arrays, scalars, enumerations and ``anyOf``. What else a
reply must satisfy is checked by whoever reads it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..models.chat import ReplySchema
from ..schemas.canonical import Json
from ..schemas.vocabulary import vocabulary

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_STRUCTURE = {
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "anyOf",
}
_LIMITS = {"minItems", "maxItems", "minimum", "maximum"}
_REFERENCE = frozenset(("vocabulary", "nullable", "description"))
_KNOWN_LATER = _LIMITS | {"enum"}


def reply_schema(
    prompt_id: str, declared: Mapping[str, Json], value_of: Callable[[str], Json] | None = None
) -> ReplySchema:
    """Return the schema that replies to a prompt must satisfy."""
    filled = _settled(_filled(declared), value_of)
    problems = list(_problems(filled, "$"))
    if not isinstance(filled, dict) or filled.get("type") != "object":
        problems.insert(0, "$: the reply must be an object")
    if problems:
        raise ValueError(f"prompt {prompt_id}: reply schema: " + "; ".join(problems))
    return ReplySchema(prompt_id.replace("/", "_"), filled)


def depends_on_inputs(declared: Mapping[str, Json]) -> bool:
    """Return whether a limit or an enumeration of a declared schema is an expression over inputs."""
    return any(_expressions(declared))


def _expressions(node: Json) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in _KNOWN_LATER and isinstance(value, str):
                yield value
            else:
                yield from _expressions(value)
    elif isinstance(node, list):
        for entry in node:
            yield from _expressions(entry)


def _settled(node: Json, value_of: Callable[[str], Json] | None) -> Json:
    """Return a schema in which each expression has its value, or is left out where that is not known."""
    if isinstance(node, list):
        return [_settled(entry, value_of) for entry in node]
    if not isinstance(node, Mapping):
        return node
    settled: dict[str, Json] = {}
    for key, value in node.items():
        if key not in _KNOWN_LATER or not isinstance(value, str):
            settled[key] = _settled(value, value_of)
        elif value_of is not None and (known := value_of(value)) not in (None, []):
            settled[key] = known
    return settled


def _filled(node: Json) -> Json:
    if isinstance(node, list):
        return [_filled(entry) for entry in node]
    if not isinstance(node, Mapping):
        return node
    if not isinstance(node.get("vocabulary"), str):
        return {key: _filled(value) for key, value in node.items()}
    if unknown := node.keys() - _REFERENCE:
        raise ValueError(f"beside vocabulary: unknown keys {sorted(unknown)}")
    try:
        values = vocabulary(node["vocabulary"]).values
    except KeyError as error:
        raise ValueError(str(error.args[0])) from error
    one_of: dict[str, Any] = {"type": "string", "enum": list(values)}
    # The form with anyOf is the only one for "or null" that every service takes.
    schema = {"anyOf": [one_of, {"type": "null"}]} if node.get("nullable") else one_of
    return schema | ({"description": node["description"]} if "description" in node else {})


def _problems(node: Json, path: str) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{path}: not a schema"
        return
    if unknown := node.keys() - _STRUCTURE - _LIMITS:
        yield f"{path}: keywords that not every service takes: {', '.join(sorted(unknown))}"
    if "anyOf" in node:
        for number, choice in enumerate(node["anyOf"]):
            yield from _problems(choice, f"{path}.anyOf[{number}]")
        return
    kinds = node.get("type")
    names = [str(name) for name in (kinds if isinstance(kinds, list) else [kinds])]
    if not names or any(name not in _TYPES for name in names):
        yield f"{path}: type must be one of {', '.join(_TYPES)}"
        return
    if "object" in names:
        yield from _object_problems(node, path)
    if "array" in names:
        yield from _problems(node.get("items"), f"{path}.items")
    allowed = tuple(kind for name in names for kind in _TYPES[name])
    for value in node.get("enum", ()):
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            yield f"{path}.enum: {value!r} is no {' or '.join(names)}; quote it"


def _object_problems(node: dict[str, Any], path: str) -> Iterator[str]:
    properties = node.get("properties")
    if not isinstance(properties, dict) or not properties:
        yield f"{path}: an object must list its properties"
        return
    if node.get("additionalProperties") is not False:
        yield f"{path}: an object must say additionalProperties: false"
    required = node.get("required")
    if not isinstance(required, list) or sorted(required) != sorted(properties):
        yield f"{path}: required must list every property: {', '.join(properties)}"
    for name, schema in properties.items():
        yield from _problems(schema, f"{path}.{name}")

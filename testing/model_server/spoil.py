"""How the text of an answer is spoiled."""

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ...schemas.canonical import Json
from .answers import json_text

LATIN = "abcdefghijklmnopqrstuvwxyz"
CYRILLIC = "абкдефгхижклмнопярстуввхйз"
SCRIPT = str.maketrans(LATIN + LATIN.upper(), CYRILLIC + CYRILLIC.upper())


def malformed(text: str, kind: str) -> str:
    """Return JSON with a mistake of a kind; see ``MalformedJson``."""
    if kind == "commas":
        return re.sub(r"([}\]])\s*$", r",\1", text)
    if kind == "unclosed":
        return text.rstrip()[:-1]
    if kind == "wrong_type":
        return json_text([text])
    return text.replace('"', "'")


def other_script(text: str, schema: Mapping[str, Any]) -> str:
    """Return JSON, or a text, with its free strings in Cyrillic letters (other scripts: a fixed phrase)."""
    return _with_strings(text, schema, _cyrillic)


def huge(text: str, schema: Mapping[str, Any], size: int) -> str:
    """Return JSON, or a text, with its first free string so long that all has at least so many bytes."""
    more = " and so on" * (1 + max(0, size - len(text)) // 10)
    grown = _first_string(text, schema, lambda value: value + more)
    return grown + " " * max(0, size - len(grown))


def prefixed(text: str, schema: Mapping[str, Any], words: str) -> str:
    """Return JSON, or a text, with words before its first free string."""
    return _first_string(text, schema, lambda value: f"{words} {value}")


def corrupt(data: bytes, how: str, at: float) -> bytes:
    """Return a file with a fault of a kind; see ``CorruptPicture``."""
    if how == "cut":
        return data[: int(len(data) * at)]
    if how == "words":
        return b"the picture could not be stored"
    return b"".join(hashlib.sha256(data[:64] + bytes([n])).digest() for n in range(16))


COUNTS: Mapping[str, tuple[str, ...]] = {
    "input": ("prompt_tokens", "promptTokenCount", "prompt_token_count", "input_tokens"),
    "output": ("completion_tokens", "candidatesTokenCount", "candidates_token_count", "output_tokens"),
    "cached": (
        "cached_tokens", "cachedContentTokenCount", "cached_content_token_count", "cache_read_input_tokens",
    ),
    "cache_write": ("cache_write_tokens", "cache_creation_input_tokens"),
    "thinking": ("reasoning_tokens", "thoughtsTokenCount", "thoughts_token_count", "thinking_tokens"),
}  # fmt: skip
"""Counts of tokens, and what the services call them."""

USAGES = ("usage", "usageMetadata", "usage_metadata")


def odd_usage(body: bytes, count: str | None, value: Json, *, missing: bool) -> bytes:
    """Return the JSON of a response with another value for a count of tokens, or without it."""
    document = json.loads(body)
    for usage in USAGES:
        places = [document] if count is None else [document.get(usage)]
        names = (usage,) if count is None else COUNTS[count]
        places += [entry for place in places if isinstance(place, dict) for entry in place.values()]
        for place in (entry for entry in places if isinstance(entry, dict)):
            for name in (name for name in names if name in place):
                place[name] = value
                if missing:
                    del place[name]
    return json.dumps(document, ensure_ascii=False).encode()


def snake_name(name: str) -> str:
    """Return the name of a class as files spell it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _cyrillic(text: str) -> str:
    changed = text.translate(SCRIPT)
    return changed if changed != text or not text.strip() else "совсем другие слова"


def _first_string(text: str, schema: Mapping[str, Any], change: Callable[[str], str]) -> str:
    turns = itertools.count()
    return _with_strings(text, schema, lambda value: change(value) if next(turns) == 0 else value)


def _with_strings(text: str, schema: Mapping[str, Any], change: Callable[[str], str]) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return change(text)
    return json_text(_walk(value, schema, change))


def _walk(value: Json, schema: Json, change: Callable[[str], str]) -> Json:
    about = _branch(value, schema if isinstance(schema, Mapping) else {})
    if isinstance(value, dict):
        members = about.get("properties", {})
        return {name: _walk(entry, members.get(name), change) for name, entry in value.items()}
    if isinstance(value, list):
        return [_walk(entry, about.get("items"), change) for entry in value]
    free = isinstance(value, str) and "enum" not in about and "const" not in about
    return change(value) if free else value


def _branch(value: Json, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the alternative of a schema that is meant for a value, as far as its type tells."""
    names: dict[type, str] = {str: "string", dict: "object", list: "array"}
    for entry in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        kinds = entry.get("type")
        if value in entry.get("enum", ()) or names.get(type(value)) in (
            kinds if isinstance(kinds, list) else [kinds]
        ):
            found: Mapping[str, Any] = entry
            return found
    return schema

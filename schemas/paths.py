"""Places in JSON documents: simple paths, paths with names in quotes, and JSON pointers.

``$.scenes[2].action`` is a simple path. In a quoted one any name may stand, as in
``$.Shots[0]['Setting Description'].en``; every simple path is one of these, too.
A pointer (RFC 6901), such as ``/scenes/2/any key``, reaches keys of every form.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from .canonical import Json

Steps = tuple[str | int, ...]
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")


@lru_cache(maxsize=4096)
def parse_path(path: str) -> Steps:
    """Return the steps of a path."""
    return parsed(path, _STEP, lambda match: match[1] if match[1] is not None else int(match[2]))


def parsed(path: str, pattern: re.Pattern[str], step_of: Callable[[re.Match[str]], str | int]) -> Steps:
    """Return the steps of a path, each of which matches a pattern."""
    if not path.startswith("$"):
        raise ValueError(f"a JSON path starts with $, not {path[:20]!r}")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        match = pattern.match(path, position)
        if match is None:
            raise ValueError(f"cannot read the JSON path {path!r} from {path[position:]!r} on")
        steps.append(step_of(match))
        position = match.end()
    return tuple(steps)


def format_path(steps: Sequence[str | int]) -> str:
    """Return the path that :func:`parse_path` reads as these steps."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def get_at(document: Json, path: str) -> Json:
    """Return the value at a path."""
    return value_at(document, parse_path(path))


def value_at(document: Json, steps: Sequence[str | int]) -> Json:
    """Return the value at a place."""
    value = document
    for number, step in enumerate(steps):
        fits = isinstance(value, list if isinstance(step, int) else dict)
        if not fits or (step >= len(value) if isinstance(step, int) else step not in value):
            places = quoted_path(steps[: number + 1]), quoted_path(steps[:number])
            raise LookupError(f"nothing at {places[0]}; {places[1]} has {_inside(value)}")
        value = value[step]
    return value


def _inside(value: Json) -> str:
    """Return what can be named within a value."""
    if isinstance(value, list):
        return f"[0] to [{len(value) - 1}]" if value else "nothing in its list"
    return ", ".join(map(str, value)) if isinstance(value, dict) else "no parts"


def replace_at(document: Json, path: str, value: Json) -> Json:
    """Return a copy of the document with the value at an existing path replaced; the rest is shared."""
    get_at(document, path)
    return _replaced(document, parse_path(path), value)


def with_value(document: Json, steps: Sequence[str | int], value: Json) -> Json:
    """Return a copy of a document with the value at an existing place replaced; the rest is shared."""
    value_at(document, steps)
    return _replaced(document, tuple(steps), value)


def _replaced(node: Json, steps: Steps, value: Json) -> Json:
    if not steps:
        return value
    head, rest = steps[0], steps[1:]
    if isinstance(node, list):
        return [_replaced(child, rest, value) if i == head else child for i, child in enumerate(node)]
    return {key: _replaced(child, rest, value) if key == head else child for key, child in node.items()}


def pointer(steps: Sequence[str | int]) -> str:
    """Return the pointer made of these steps; of none it is empty, and stands for the whole."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


_QUOTED_STEP = re.compile(
    r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]|\['([^'\\]*)'\]|\[(\"(?:[^\"\\]|\\.)*\")\]", re.DOTALL
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_quoted(path: str) -> Steps:
    """Return the steps of a path."""
    return parsed(path, _QUOTED_STEP, _quoted_step)


def _quoted_step(match: re.Match[str]) -> str | int:
    plain, index, single, double = match.groups()
    if index is not None:
        return int(index)
    if double is None:
        return str(plain if plain is not None else single)
    try:
        return str(json.loads(double))
    except ValueError as error:
        raise ValueError(f"cannot read the name {double[:40]} in the JSON path {match.string!r}") from error


def quoted_path(steps: Sequence[str | int]) -> str:
    """Return the path that :func:`parse_quoted` reads as these steps, whatever names are among them."""
    return "$" + "".join(map(_written, steps))


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN.fullmatch(step):
        return f".{step}"
    return f"['{step}']" if "'" not in step and "\\" not in step else f"[{json.dumps(step)}]"

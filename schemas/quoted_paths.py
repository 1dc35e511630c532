"""JSON paths in which any name may stand, in brackets and quotes: ``$.Shots[0]['Setting Description'].en``.

Names that are plain words are written as in :mod:`.paths`, so every path of that kind is one of this.
"""

import json
import re
from collections.abc import Sequence

from .canonical import Json

Steps = tuple[str | int, ...]

_STEP = re.compile(
    r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]|\['([^'\\]*)'\]|\[(\"(?:[^\"\\]|\\.)*\")\]", re.DOTALL
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_quoted(path: str) -> Steps:
    """Return the steps of a path.

    Raises:
        ValueError: the text is not a path of this kind.
    """
    if not path.startswith("$"):
        raise ValueError(f"a JSON path starts with $, not {path[:20]!r}")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        match = _STEP.match(path, position)
        step = None if match is None else _step(match)
        if match is None or step is None:
            raise ValueError(f"cannot read the JSON path {path!r} from {path[position:]!r} on")
        steps.append(step)
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> str | int | None:
    """Return one step; None where its quotes hold no JSON string."""
    plain, index, single, double = match.groups()
    if index is not None:
        return int(index)
    if double is None:
        return str(plain if plain is not None else single)
    try:
        return str(json.loads(double))
    except ValueError:
        return None


def quoted_path(steps: Sequence[str | int]) -> str:
    """Return the path that :func:`parse_quoted` reads as these steps, whatever names are among them."""
    return "$" + "".join(map(_written, steps))


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN.fullmatch(step):
        return f".{step}"
    return f"['{step}']" if "'" not in step and "\\" not in step else f"[{json.dumps(step)}]"


def value_at(document: Json, steps: Sequence[str | int]) -> Json:
    """Return the value at a place.

    Raises:
        LookupError: nothing is there.
    """
    value = document
    for step in steps:
        fits = isinstance(value, list if isinstance(step, int) else dict)
        if not fits or (step >= len(value) if isinstance(step, int) else step not in value):
            raise LookupError(f"nothing at {quoted_path(steps)}")
        value = value[step]
    return value


def with_value(document: Json, steps: Sequence[str | int], value: Json) -> Json:
    """Return a copy of a document with the value at an existing place replaced; the rest is shared.

    Raises:
        LookupError: nothing is there.
    """
    value_at(document, steps)
    return _replaced(document, tuple(steps), value)


def _replaced(node: Json, steps: Steps, value: Json) -> Json:
    if not steps:
        return value
    head, rest = steps[0], steps[1:]
    if isinstance(node, list):
        return [_replaced(child, rest, value) if i == head else child for i, child in enumerate(node)]
    return {key: _replaced(child, rest, value) if key == head else child for key, child in node.items()}

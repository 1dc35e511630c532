"""JSON paths in which any name may stand, in brackets and quotes: ``$.Shots[0]['Setting Description'].en``.

Names that are plain words are written as in :mod:`.paths`, so every path of that kind is one of this.
"""

import json
import re
from collections.abc import Sequence

from .paths import Steps, parsed

_STEP = re.compile(
    r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]|\['([^'\\]*)'\]|\[(\"(?:[^\"\\]|\\.)*\")\]", re.DOTALL
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_quoted(path: str) -> Steps:
    """Return the steps of a path.

    Raises:
        ValueError: the text is not a path of this kind.
    """
    return parsed(path, _STEP, _step)


def _step(match: re.Match[str]) -> str | int:
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

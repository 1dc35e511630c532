"""What prompt templates may apply to their inputs, so that data stays data."""

import json
from collections.abc import Sequence

from ..schemas.canonical import Json, sha256_bytes

MARK_LENGTH = 12


def fenced(text: str) -> str:
    """Return a text between marks that it cannot hold itself: the first digits of its own SHA-256.

    Whoever wrote the text would have to know its hash to write the closing mark into it. Twelve digits are
    enough against chance; should a text hold its own mark all the same, the mark is made longer.
    """
    sha256, length = sha256_bytes(text.encode("utf-8")), MARK_LENGTH
    while sha256[:length] in text and length < len(sha256):
        length += 4
    mark = sha256[:length]
    return f"<<<{mark}\n{text}\n{mark}>>>"


def numbered(texts: Sequence[str]) -> str:
    """Return texts one a line, each after its number from 1, as in ``[1] Once there was a fox``.

    Line breaks inside a text become spaces, so that no text can begin a line with a number of its own.
    """
    return "\n".join(f"[{number}] {' '.join(text.split())}" for number, text in enumerate(texts, start=1))


def as_json(value: Json) -> str:
    """Return a value as indented JSON with sorted keys, every script as it is."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)


FILTERS = {"fenced": fenced, "numbered": numbered, "as_json": as_json}
"""Filter name in templates -> function."""

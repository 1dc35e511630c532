"""Reading official files in JSON strictly: what they hold must come out again the same."""

import json
import math
from collections import Counter
from typing import Any


def load_strictly(content: bytes, twice: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON in bytes; names that occur twice in an object are added to the list.

    Raises:
        ValueError, RecursionError: it is no JSON, or could not be written again as it is (NaN, numbers that
            are too large, halves of characters). :func:`what_is_wrong` says which.
    """

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice.extend(sorted(name for name, count in counts.items() if count > 1))
        return made

    text = content.decode("utf-8-sig")
    document = json.loads(text, object_pairs_hook=distinct, parse_constant=_no_number, parse_float=_finite)
    if b"\\u" in content:  # an escaped half of a character parses, but has no UTF-8 form
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    return document


def what_is_wrong(error: ValueError | RecursionError, content: bytes) -> tuple[str, str]:
    """Return code and message of what keeps bytes from being read."""
    if isinstance(error, UnicodeEncodeError):
        return "encoding", "an escape such as \\ud800 stands for half a character"
    if isinstance(error, UnicodeDecodeError):
        return "encoding", f"expected UTF-8, found {error.reason} at byte {error.start}"
    if isinstance(error, RecursionError):
        return "json", "expected a JSON object, found one that is nested too deeply"
    return "json", f"expected a JSON object, found {error if content.strip() else 'nothing'}"


def _no_number(name: str) -> None:
    raise ValueError(f"{name}, which is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]}, which is too large")
    return value

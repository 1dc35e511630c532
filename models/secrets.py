"""Secrets that were loaded, and their removal from every text that leaves an adapter."""

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MARK = "[secret removed]"
SHORTEST = 6
"""A shorter secret is not searched for: it would be found everywhere."""

_PREFIX = 16
"""A text cut off inside a secret of at least twice this length still shows so many of its characters."""


class Redactor:
    """Knows the secrets that were loaded, and takes them out of texts.

    Each one is found as it is, URL-encoded, inside JSON, in base64 (alone or as what basic authentication
    makes of it), and cut off.

    Args:
        values: secrets known already.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._forms: tuple[str, ...] = ()
        self._prefixes: tuple[str, ...] = ()
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Remember a secret."""
        if len(value) < SHORTEST or value in self._values:
            return
        self._values.add(value)
        forms = {form for value in self._values for form in _forms(value)}
        # Longest first, so that a secret inside a longer one leaves nothing of the longer one.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
        self._prefixes = tuple(sorted(form[:_PREFIX] for form in self._values if len(form) >= 2 * _PREFIX))

    def redact(self, text: str) -> str:
        """Return the text with every known secret replaced by :data:`MARK`."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        for prefix in self._prefixes:
            if prefix in text:
                text = _without_started(text, prefix)
        return text

    def redact_optional(self, text: str | None) -> str | None:
        """Return :meth:`redact` of a text, None for None."""
        return None if text is None else self.redact(text)


def _forms(value: str) -> Iterable[str]:
    yield value
    yield quote(value, safe="")
    yield quote_plus(value, safe="")
    yield json.dumps(value)[1:-1]
    raw = value.encode("utf-8")
    for text in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        yield text.decode("ascii")
        yield text.decode("ascii").rstrip("=")
    for form in _inside_base64(raw):
        if len(form) >= SHORTEST + 2:
            yield form


def _inside_base64(raw: bytes) -> Iterable[str]:
    """Yield the middle part of a secret's base64 form at each of the three offsets it can have in a text."""
    for offset in range(3):
        coded = base64.b64encode(bytes(offset) + raw).decode("ascii").rstrip("=")
        # The first characters mix with what stands before, the last one with what stands after.
        first = (offset * 8 + 5) // 6
        yield coded[first:-1]


def _without_started(text: str, prefix: str) -> str:
    pieces = text.split(prefix)
    kept = [pieces[0]]
    for piece in pieces[1:]:
        end = 0
        while end < len(piece) and (piece[end].isalnum() or piece[end] in "-_.*"):
            end += 1
        kept.append(MARK + piece[end:])
    return "".join(kept)

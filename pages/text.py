"""Text of others in pages: nothing in it is invisible that changes how the rest is read."""

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

LONGEST_TEXT = 600
"""Most characters of a reply or text that a page shows; the JSON and CSV files have all of it."""
# Embeddings, overrides and isolates: they can make text read in an order that is not its own.
_BIDI = frozenset((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_KEPT = "\n\t"


def readable(text: str, longest: int | None = LONGEST_TEXT) -> str:
    """Return text in which nothing is invisible that changes how the rest is read.

    Control characters, bidirectional controls and lone surrogates are replaced by their code point in
    brackets, such as ``[U+202E]``; long text is cut, and says so.
    """
    if longest is not None and len(text) > longest:
        return f"{readable(text[:longest], None)}\N{HORIZONTAL ELLIPSIS} ({len(text):,} characters in all)"
    return "".join(f"[U+{ord(letter):04X}]" if _misleads(letter) else letter for letter in text)


def isolated(text: str, longest: int | None = LONGEST_TEXT) -> "Markup":
    """Return text as a part of a page: escaped, readable, and with a direction of its own."""
    from markupsafe import Markup

    return Markup('<bdi dir="auto">{}</bdi>').format(readable(text, longest))


def broken(text: str) -> "Markup":
    """Return a name as a part of a page, escaped, that may go on in the next line behind its signs."""
    from markupsafe import Markup, escape

    shown = str(escape(readable(text)))
    for sign in "_:/":
        shown = shown.replace(sign, f"{sign}<wbr>")
    if text.startswith("$"):  # a path in JSON
        shown = shown.replace(".", "<wbr>.").replace("[", "<wbr>[")
    return Markup(shown)


def named(text: str) -> "Markup":
    """Return a name as :func:`broken` does, with a direction of its own."""
    from markupsafe import Markup

    return Markup('<bdi dir="auto">{}</bdi>').format(broken(text))


def _misleads(character: str) -> bool:
    if character in _KEPT:
        return False
    return ord(character) in _BIDI or unicodedata.category(character) in ("Cc", "Cs")

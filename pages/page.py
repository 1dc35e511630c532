"""What pages share that load nothing from anywhere: their template, their style, what a browser may load."""

import base64
import hashlib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TargetError
from ..schemas.canonical import write_atomic

if TYPE_CHECKING:
    from markupsafe import Markup


# -- Text of others in pages: nothing in it is invisible that changes how the rest is read

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


# -- What pages share that load nothing from anywhere

Part = tuple[str, str]
"""The name of a template or style sheet, and the package that it lies in."""


def base_style() -> str:
    """Return colours by day and night, text, tables and print: what forms of another design share."""
    return _shared("base.css")


@cache
def _shared(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


@cache
def style_of(name: str = "", folder: str = __package__, *parts: Part) -> str:
    """Return the style that all pages share (base, parts), that of parts from elsewhere, and a page's own."""
    own = (*parts, (name, folder)) if name else parts
    return base_style() + _shared("parts.css") + "".join(map(_read, own))


def _read(part: Part) -> str:
    name, folder = part
    return (files(folder) / name).read_text("utf-8")


def policy_of(style: str, script: str = "") -> str:
    """Return the content security policy of a page: its own style, script and pictures, nothing else."""
    scripts = f" script-src {_hash(script)};" if script else ""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)};{scripts} base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


@cache
def template_of(name: str, folder: str = __package__, *parts: Part) -> Any:  # noqa: ANN401 - jinja2 is imported late
    """Return a page template of a package, this one if no other is named; what it is given is escaped."""
    return environment({part[0]: _read(part) for part in parts}).from_string(_read((name, folder)))


def environment(parts: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - jinja2 is imported late
    """Return what renders pages: with the parts that all import, and others.

    ``parts``: name of a template -> its text.
    """
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.DictLoader({"pages.j2": _shared("pages.j2"), **(parts or {})}),
        undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "readable": readable, "story": isolated, "broken": broken, "named": named,
        "bdi": lambda text: isolated(text, None),
        "numbers": lambda names: [(name, "number") for name in names],
    }  # fmt: skip
    return made


def save_page(path: Path, text: str) -> None:
    """Write a page, with the folders on its way; a file that is there is replaced."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [text.encode("utf-8")])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error.strerror or error}",
            fix="choose another place for --html, or free the disk",
        ) from error  # fmt: skip

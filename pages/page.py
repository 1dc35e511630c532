"""What pages share that load nothing from anywhere: their template, their style, what a browser may load."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..schemas.canonical import write_atomic
from .text import broken, isolated, named, readable

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

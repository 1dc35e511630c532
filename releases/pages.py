"""What pages share that load nothing from anywhere: their template, their style, what a browser may load."""

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..schemas.canonical import write_atomic


@cache
def style_of(name: str = "", folder: str = __package__) -> str:
    """Return the style that all pages share (colours by day and night, text, tables), and a page's own.

    Args:
        name: the page's own style sheet, if it has one.
        folder: the package that it lies in.
    """
    shared = (files(__package__) / "pages.css").read_text("utf-8")
    return shared + ((files(folder) / name).read_text("utf-8") if name else "")


def policy_of(style: str, *, pictures: bool = False) -> str:
    """Return the content security policy of a page with this style, pictures of its own, nothing else.

    Args:
        style: the content of its style element.
        pictures: whether it holds pictures, as data.
    """
    allowed = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    shown = " img-src data:;" if pictures else ""
    return f"default-src 'none'; style-src 'sha256-{allowed}';{shown} base-uri 'none'; form-action 'none'"


@cache
def template_of(name: str, folder: str = __package__) -> Any:  # noqa: ANN401 - jinja2 is imported late
    """Return a page template of a package, this one if no other is named; what it is given is escaped."""
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["bdi"] = isolated
    return environment.from_string((files(folder) / name).read_text("utf-8"))


def isolated(text: str) -> Any:  # noqa: ANN401 - markupsafe is imported late
    """Return a text that keeps its own direction to itself, escaped."""
    from markupsafe import Markup

    return Markup(f"<bdi>{html.escape(text)}</bdi>")


def save_page(path: Path, text: str) -> None:
    """Write a page, with the folders on its way; a file that is there is replaced.

    Raises:
        TargetError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [text.encode("utf-8")])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error.strerror or error}",
            fix="choose another place for --html, or free the disk",
        ) from error  # fmt: skip

"""The documents of a release from their templates: what comes from data stays text in them.

A card is Markdown: every value is escaped there, unless a template says that its own words are markup.
A licence notice is plain text. The responsible-AI properties are YAML that is read before anything is filled
in, so that no value passes through a second writer's escapes.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Any

from ..schemas.canonical import Json

_MARKUP = re.compile(
    r"[\\`*\[\]<>|~$#]"  # what begins or ends markup anywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; an underscore inside a word is none
    r"|&(?=#?\w+;)|:(?=//)|(?<=www)\."  # entities, and what would become a link
    r"|(?:^|(?<=^ ))(?:[-+=](?=[\s=+-]|$)|\d+(?=[.)](?:\s|$)))"  # lists and rules
)


_SPACE = re.compile(r"\s+")


class Markup(str):
    """A text that is Markdown already."""

    __slots__ = ()


def markdown(value: object) -> str:
    """Return a value as one line of Markdown that shows it as it is, in text, headings, lists and tables."""
    if isinstance(value, Markup):
        return value
    return _MARKUP.sub(_escaped, one_line(value))


def one_line(value: object) -> str:
    """Return a value as text in one line, with single spaces."""
    return _SPACE.sub(" ", str(value))


def render(name: str, **values: object) -> str:
    """Return a document of a release from its template; every value is escaped for Markdown."""
    return str(_template(_source(name), escaped=True).render(**values))


def render_plain(name: str, **values: object) -> str:
    """Return a document in plain text from its template; arguments as for :func:`render`."""
    return str(_template(_source(name), escaped=False).render(**values))


def render_properties(name: str, **values: object) -> dict[str, Json]:
    """Return a YAML template as the object that it is, its texts filled in after it was read."""

    def filled(value: Json) -> Json:
        if isinstance(value, list):
            return [filled(part) for part in value]
        return _template(value, escaped=False).render(**values) if isinstance(value, str) else value

    return {key: filled(value) for key, value in _properties(name).items()}


@cache
def _source(name: str) -> str:
    package, _, file = name.rpartition(":")
    return (files(package or __package__) / file).read_text("utf-8")


@cache
def _properties(name: str) -> dict[str, Json]:
    import yaml

    return dict(yaml.safe_load(_source(name)))


@cache
def _template(source: str, *, escaped: bool) -> Any:  # noqa: ANN401 - jinja2 is imported late
    return _environment(escaped=escaped).from_string(source)


@cache
def _environment(*, escaped: bool) -> Any:  # noqa: ANN401 - jinja2 is imported late
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=markdown if escaped else None,
    )
    environment.filters.update(n=_number, line=one_line, markup=Markup, cell=_cell, code=_code)
    return environment


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return f"{character}\\" if character.isdigit() else f"\\{character}"


def _number(value: int) -> str:
    return f"{value:,}"


def _cell(text: str) -> Markup:
    """Return words of ours, with their markup, for a table."""
    return Markup(one_line(text).replace("|", "\\|").replace("<", "&lt;"))


def _code(value: object) -> Markup:
    """Return a value as code in a line or a table."""
    text = one_line(value).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return Markup(f"{ticks}{space}{text}{space}{ticks}")

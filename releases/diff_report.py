"""A diff of releases as one page that loads nothing from anywhere."""

import base64
import hashlib
import html
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..schemas.canonical import write_atomic
from .changes import Change
from .diffing import ReleaseDiff
from .diffing_text import about_side, hidden_lines, sections, shortened

MOST_ROWS = 2000
"""Most rows of a table on the page; JSON has them all."""
_LONGEST = 2000

Table = Sequence[Sequence[str]]
"""Rows of cells, the first row being the head."""


def write_page(path: Path, diff: ReleaseDiff, evaluation: Table = ()) -> None:
    """Write the page of a diff.

    Args:
        path: where; a file that is there is replaced.
        diff: what changed.
        evaluation: what stays valid of an evaluation, as a table; none where none was asked about.

    Raises:
        TargetError: the file cannot be written.
    """
    try:
        write_atomic(path, [render_page(diff, evaluation).encode("utf-8")])
    except OSError as error:
        raise TargetError(
            str(path), expected="a file that can be written", found=error.strerror or str(error),
            fix="choose another place for --html, or free the disk",
        ) from error  # fmt: skip


def render_page(diff: ReleaseDiff, evaluation: Table = ()) -> str:
    """Return the page of a diff. All values of records are escaped and isolated in their direction."""
    changes = [(record.id, change) for record in diff.changed for change in record.changes]
    told = [section for section in sections(diff) if not section.title.startswith("changes of ")]
    page: str = _template().render(
        style=_style(),
        policy=_policy(),
        old=about_side(diff.old),
        new=about_side(diff.new),
        diff=diff,
        changes=[(name, one.path, one.kind, *_values(one)) for name, one in changes[:MOST_ROWS]],
        more=max(0, len(changes) - MOST_ROWS),
        sections=[(one.title, list(one.lines(MOST_ROWS)), max(0, len(one.rows) - MOST_ROWS)) for one in told],
        hidden=list(hidden_lines(diff)),
        evaluation=[[str(cell) for cell in row] for row in evaluation],
    )
    return page


def _values(change: Change) -> tuple[str, str]:
    old, new = (shortened(value, _LONGEST) for value in (change.old, change.new))
    return "" if change.kind == "added" else old, "" if change.kind == "removed" else new


@cache
def _style() -> str:
    return (files(__package__) / "diff_report.css").read_text("utf-8")


def _policy() -> str:
    allowed = base64.b64encode(hashlib.sha256(_style().encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"


@cache
def _template() -> Any:  # noqa: ANN401 - jinja2 is imported late
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["bdi"] = _isolated
    return environment.from_string((files(__package__) / "diff_report.j2").read_text("utf-8"))


def _isolated(text: str) -> Any:  # noqa: ANN401 - markupsafe is imported late
    """Return a text that keeps its own direction to itself, escaped."""
    from markupsafe import Markup

    return Markup(f"<bdi>{html.escape(text)}</bdi>")

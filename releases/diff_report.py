"""A diff of releases as one page that loads nothing from anywhere."""

from collections.abc import Sequence
from pathlib import Path

from .changes import Change
from .diff_pictures import picture_rows
from .diffing import ReleaseDiff
from .diffing_text import IMAGES, about_side, hidden_lines, sections, shortened
from .pages import policy_of, save_page, style_of, template_of

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
    save_page(path, render_page(diff, evaluation))


def render_page(diff: ReleaseDiff, evaluation: Table = ()) -> str:
    """Return the page of a diff. All values of records are escaped and isolated in their direction."""
    changes = [(record.id, change) for record in diff.changed for change in record.changes]
    told = [one for one in sections(diff) if one.title != IMAGES and not one.title.startswith("changes of ")]
    pictures = picture_rows(diff.images, diff.old.folder, diff.new.folder)
    style = style_of("diff_report.css")
    page: str = template_of("diff_report.j2").render(
        style=style,
        policy=policy_of(style, pictures=bool(pictures)),
        old=about_side(diff.old),
        new=about_side(diff.new),
        diff=diff,
        changes=[(name, one.path, one.kind, *_values(one)) for name, one in changes[:MOST_ROWS]],
        more=max(0, len(changes) - MOST_ROWS),
        sections=[(one.title, list(one.lines(MOST_ROWS)), max(0, len(one.rows) - MOST_ROWS)) for one in told],
        pictures=pictures,
        more_pictures=len(diff.images) - len(pictures),
        hidden=list(hidden_lines(diff)),
        evaluation=[[str(cell) for cell in row] for row in evaluation],
    )
    return page


def _values(change: Change) -> tuple[str, str]:
    old, new = (shortened(value, _LONGEST) for value in (change.old, change.new))
    return "" if change.kind == "added" else old, "" if change.kind == "removed" else new

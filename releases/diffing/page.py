"""A diff of releases as one page that loads nothing from anywhere."""

from collections.abc import Sequence
from pathlib import Path

from ..pages import policy_of, save_page, style_of, template_of
from .changes import Change
from .compare import ReleaseDiff
from .images import picture_rows
from .sections import IMAGES, shortened
from .text import about_side, listings

MOST_ROWS = 2000
"""Most rows of a table on the page; JSON has them all."""
_LONGEST = 2000

Table = Sequence[Sequence[str]]
"""Rows of cells, the first row being the head."""


def write_page(path: Path, compared: ReleaseDiff, evaluation: Table = ()) -> None:
    """Write the page of a diff.

    Args:
        path: where; a file that is there is replaced.
        compared: what changed.
        evaluation: what stays valid of an evaluation, as a table; none where none was asked about.

    Raises:
        TargetError: the file cannot be written.
    """
    save_page(path, render_page(compared, evaluation))


def render_page(compared: ReleaseDiff, evaluation: Table = ()) -> str:
    """Return the page of a diff. All values of records are escaped and isolated in their direction."""
    changes = [(record.id, change) for record in compared.changed for change in record.changes]
    lists = [part for part in listings(compared) if part.name not in (IMAGES, "changed")]
    images = compared.sections[IMAGES]
    pictures = picture_rows(images, compared.old.folder, compared.new.folder)
    style = style_of("page.css", __package__)
    page: str = template_of("page.j2", __package__).render(
        style=style,
        policy=policy_of(style, pictures=bool(pictures)),
        old=about_side(compared.old),
        new=about_side(compared.new),
        diff=compared,
        changes=[(name, change.path, change.kind, *_values(change)) for name, change in changes[:MOST_ROWS]],
        more=max(0, len(changes) - MOST_ROWS),
        sections=[
            (part.title, list(part.lines(MOST_ROWS)), max(0, len(part.rows) - MOST_ROWS)) for part in lists
        ],
        pictures=pictures,
        more_pictures=len(images) - len(pictures),
        hidden=list(compared.hidden.lines()),
        evaluation=[[str(cell) for cell in row] for row in evaluation],
    )
    return page


def _values(change: Change) -> tuple[str, str]:
    old, new = (shortened(value, _LONGEST) for value in (change.old, change.new))
    return "" if change.kind == "added" else old, "" if change.kind == "removed" else new

"""A plain table, and its forms: HTML for notebooks, LaTeX for papers, Arrow for frames."""

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..schemas.text import printable
from .latex import latex_text

if TYPE_CHECKING:
    import pyarrow as pa

Cell: TypeAlias = str | int | float | bool | None

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
SHOWN = 20
"""Most rows of a table that a notebook shows."""
_LINE = "1px solid rgba(128, 128, 128, 0.4)"
_CELL = f"padding: 2px 10px; border-bottom: {_LINE}; vertical-align: top"


@dataclass(frozen=True, slots=True)
class Grid:
    """A plain table."""

    name: str  # its name in code
    title: str  # its caption
    columns: tuple[str, ...]  # the heads of its columns, the first of which names the rows
    rows: tuple[tuple[Cell, ...], ...]  # its rows, each with a cell for every column
    note: str = ""  # what a reader must know
    # the columns, by number, that hold text and are set flush left; the first always is
    words: tuple[int, ...] = ()


def cell_text(cell: Cell) -> str:
    """Return a cell as people read it: a dash for nothing, four digits of a fraction."""
    if cell is None:
        return DASH
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return printable(str(cell).replace("\N{NO-BREAK SPACE}", " "))


def text_of(grids: Iterable[Grid]) -> Iterator[str]:
    """Yield tables as lines for a terminal: columns in line, numbers flush right, an empty line between."""
    from rich.cells import cell_len

    for number, grid in enumerate(grids):
        if number:
            yield ""
        yield grid.title
        cells = [list(grid.columns), *([cell_text(cell) for cell in row] for row in grid.rows)]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = [
                (cell + space if not column or column in grid.words else space + cell)
                for column, cell in enumerate(row)
                for space in (" " * (widths[column] - cell_len(cell)),)
            ]
            yield f"  {'  '.join(padded)}".rstrip()
        if grid.note:
            yield f"  {grid.note}"


def html_of(grids: Iterable[Grid]) -> str:
    """Return tables as HTML that takes its colours from the page around it, light or dark."""
    return "".join(_html(grid) for grid in grids)


def _html(grid: Grid) -> str:
    head = "".join(_cell("th", number, name, grid) for number, name in enumerate(grid.columns))
    body = "".join(
        f"<tr>{''.join(_cell('td', number, cell, grid) for number, cell in enumerate(row))}</tr>"
        for row in grid.rows[:SHOWN]
    )
    hidden = len(grid.rows) - SHOWN
    notes = [grid.note, f"... and {hidden} more rows" if hidden > 0 else ""]
    said = "".join(f"<div>{html.escape(note)}</div>" for note in notes if note)
    return (
        '<div style="max-width: 100%; overflow-x: auto; margin-bottom: 1em">'
        '<table style="border-collapse: collapse; font-variant-numeric: tabular-nums">'
        '<caption style="caption-side: top; text-align: left; font-weight: bold; padding: 4px 10px">'
        f"{html.escape(grid.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<div style="padding: 2px 10px; opacity: 0.8">{said}</div></div>'
    )


def _cell(tag: str, number: int, cell: Cell, grid: Grid) -> str:
    side = "left" if number == 0 or number in grid.words else "right"
    return f'<{tag} style="{_CELL}; text-align: {side}">{html.escape(cell_text(cell))}</{tag}>'


def latex_of(grids: Iterable[Grid]) -> str:
    """Return tables as LaTeX in the style of the package booktabs, the only one that it needs.

    All of it is ASCII; texts are escaped.
    """
    return "\n".join([r"% Needs \usepackage{booktabs}.", *map(_latex, grids)])


def _latex(grid: Grid) -> str:
    head, *rows = ([_latex_cell(cell) for cell in row] for row in (grid.columns, *grid.rows))
    title, note = latex_text(grid.title), latex_text(grid.note)
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in grid.name)
    sides = "".join("l" if number in grid.words else "r" for number in range(1, len(head)))
    return "\n".join([
        r"\begin{table}", r"\centering", rf"\caption{{{title}. {note}}}".replace(". }", "}"),
        rf"\label{{tab:{name}}}", rf"\begin{{tabular}}{{l{sides}}}", r"\toprule",
        _latex_row(head), r"\midrule", *map(_latex_row, rows),
        r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


def _latex_cell(cell: Cell) -> str:
    return latex_text(cell if isinstance(cell, str) else cell_text(cell))


def _latex_row(cells: Sequence[str]) -> str:
    row = rf"{' & '.join(cells)} \\"
    # A bracket or star behind a rule or an end of line would be read as an option of it.
    return f"{{}}{row}" if row.startswith(("[", "*")) else row


def arrow_of(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> "pa.Table":
    """Return rows as an Arrow table; a column that holds texts and numbers is one of texts."""
    import pyarrow as pa

    cells = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    arrays = [pa.array([cell_text(c) if c is not None else c for c in column])
              if len({isinstance(c, str) for c in column if c is not None}) > 1 else pa.array(column)
              for column in cells]  # fmt: skip
    return pa.table(dict(zip(columns, arrays, strict=True)))

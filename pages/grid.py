"""A plain table, and its forms: HTML for notebooks, LaTeX for papers, Arrow for frames."""

import html
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..errors import ConfigError, MissingRequirement, needing
from ..schemas.text import printable
from ..schemas.values import Score

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# -- Text for LaTeX: ASCII that pdflatex sets without a package, whatever the text holds

_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    '"': "''", "`": r"\textasciigrave{}", "\n": " ", "\t": " ",
    "\N{NO-BREAK SPACE}": "~", "\N{NARROW NO-BREAK SPACE}": r"\,", "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--", "\N{EM DASH}": "---", "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
    "\N{LEFT SINGLE QUOTATION MARK}": "`", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": "``", "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
    "\N{CHECK MARK}": r"$\surd$", "\N{BALLOT X}": r"$\times$", "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MIDDLE DOT}": r"$\cdot$", "\N{BULLET}": r"$\bullet$", "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$", "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{ALMOST EQUAL TO}": r"$\approx$", "\N{DEGREE SIGN}": r"$^\circ$",
    "\N{DAGGER}": r"$^\dagger$", "\N{SUPERSCRIPT TWO}": "$^2$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$", "\N{LEFTWARDS ARROW}": r"$\leftarrow$",
    "\N{UPWARDS ARROW}": r"$\uparrow$", "\N{DOWNWARDS ARROW}": r"$\downarrow$",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$", "\N{GREEK SMALL LETTER KAPPA}": r"$\kappa$",
    "\N{GREEK SMALL LETTER RHO}": r"$\rho$", "\N{GREEK SMALL LETTER TAU}": r"$\tau$",
    "\N{GREEK CAPITAL LETTER DELTA}": r"$\Delta$", "\N{LATIN SMALL LETTER SHARP S}": r"\ss{}",
    "\N{LATIN SMALL LETTER AE}": r"\ae{}", "\N{LATIN CAPITAL LETTER AE}": r"\AE{}",
    "\N{LATIN SMALL LIGATURE OE}": r"\oe{}", "\N{LATIN CAPITAL LIGATURE OE}": r"\OE{}",
    "\N{LATIN SMALL LETTER O WITH STROKE}": r"\o{}", "\N{LATIN CAPITAL LETTER O WITH STROKE}": r"\O{}",
    "\N{LATIN SMALL LETTER L WITH STROKE}": r"\l{}", "\N{LATIN CAPITAL LETTER L WITH STROKE}": r"\L{}",
}  # fmt: skip
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": "`", "\N{COMBINING ACUTE ACCENT}": "'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "^", "\N{COMBINING TILDE}": "~", "\N{COMBINING MACRON}": "=",
    "\N{COMBINING BREVE}": "u", "\N{COMBINING DOT ABOVE}": ".", "\N{COMBINING DIAERESIS}": '"',
    "\N{COMBINING RING ABOVE}": "r", "\N{COMBINING DOUBLE ACUTE ACCENT}": "H", "\N{COMBINING CARON}": "v",
    "\N{COMBINING CEDILLA}": "c", "\N{COMBINING DOT BELOW}": "d",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Return a text as LaTeX of ASCII that needs no package.

    Accented Latin letters are written with their accents; a character that the fonts of plain LaTeX lack
    stands as its code point in brackets, such as ``[U+6587]``.
    """
    return "".join(map(_sign, unicodedata.normalize("NFC", text)))


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character.isascii() and character.isprintable():
        return character
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[1] in _ACCENTS and parts[0].isascii():
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"[U+{ord(character):04X}]"


# -- A plain table, and its forms

Cell: TypeAlias = str | int | float | bool | None

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
SHOWN = 20
"""Most rows of a table that a notebook shows."""
_LINE = "1px solid rgba(128, 128, 128, 0.4)"
_CELL = f"padding: 2px 10px; border-bottom: {_LINE}; vertical-align: top"


@dataclass(frozen=True, slots=True)
class Grid:
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


def latex_of(grids: Iterable[Grid], remarks: Iterable[str] = ()) -> str:
    """Return tables as LaTeX in the style of the package booktabs, the only one that it needs.

    All of it is ASCII; texts are escaped. ``remarks`` stand before them as comments.
    """
    lines = (printable(" ".join(remark.split())) for remark in remarks)
    notes = (f"% {line.encode('ascii', 'backslashreplace').decode()}" for line in lines)
    return "\n".join([r"% Needs \usepackage{booktabs}.", *notes, *map(_latex, grids)])


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


# -- Numbers and names as tables and figures print them: values with their unit, intervals, p-values

Unit: TypeAlias = Literal["percent", "points", "number", "plain", "count", "usd", "p"]
"""How a value is printed: percent and points as 100 times the value, the others as it is."""


UNITS = {"percent": "%", "points": "percentage points", "usd": "USD", "count": "count"}
"""Unit -> how the title of an axis names it; that of plain numbers goes without saying."""


def axis_title(axis: str, unit: Unit) -> str:
    """Return what the values of an axis are, with their unit; ``axis`` may be empty."""
    return ", ".join(part for part in (axis, UNITS.get(unit, "" if axis else "value")) if part)


def value_text(value: float | None, unit: Unit) -> str:
    """Return a value in its unit: 43.2 for a percentage, +12.3 for points, 0.431, 3.25, 1,234, $0.12."""
    if value is None:
        return DASH
    if unit == "p":
        return p_text(value)
    if unit == "count":
        return f"{value:,.0f}".replace("-", MINUS)
    if unit == "usd":
        return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:,.4f}"
    if unit == "number":
        text = f"{value:.3f}"
    elif unit == "plain":
        text = f"{value:.2f}"
    elif unit == "points":
        text = f"{100 * value:+.1f}"
    else:
        text = f"{100 * value:.1f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def interval_text(score: Score, unit: Unit) -> str:
    """Return the 95 % interval of a score, such as [41.0, 45.4]; empty where there is none."""
    if score.low is None or score.high is None:
        return ""
    return f"[{value_text(score.low, unit)}, {value_text(score.high, unit)}]"


def if_intervals(text: str, scores: Iterable[Score]) -> str:
    """Return what is said of intervals where some score has one; empty where none has."""
    return text if any(score.low is not None for score in scores) else ""


def count_text(value: float | str | None) -> str:
    """Return a count or plain value: thousands apart, at most four decimals, a dash where unknown."""
    if value is None:
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value.is_integer():
        return f"{value:,.0f}".replace("-", MINUS)
    return f"{value:,.4g}".replace("-", MINUS)


def p_text(p: float | None) -> str:
    """Return a p value: three decimals, or that it is smaller."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def effect_text(value: float | None) -> str:
    """Return an effect size with two decimals."""
    return DASH if value is None else f"{value:.2f}".replace("-", MINUS)


def label_text(name: str) -> str:
    """Return a name of the data as words: ``cause_effect`` as Cause effect."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


# -- What results have in common: they are tables, for a notebook, a frame, a paper


class Tabular:
    """A result that is one or more tables; each class says which, the main one first."""

    __slots__ = ()

    def grids(self) -> Iterable[Grid]:
        """Return its tables."""
        raise NotImplementedError

    def remarks(self) -> Sequence[str]:
        """Return what must stand beside the tables wherever they are pasted."""
        return ()

    def _repr_html_(self) -> str:
        return html_of(self.grids())

    def to_arrow(self, name: str | None = None) -> "pa.Table":
        """Return one of its tables as an Arrow table."""
        grid = self._grid(name)
        return arrow_of(grid.columns, grid.rows)

    def to_pandas(self, name: str | None = None) -> "pd.DataFrame":
        """Return one of its tables as a pandas frame; as :meth:`to_arrow`."""
        _library("pandas")
        frame: pd.DataFrame = self.to_arrow(name).to_pandas(split_blocks=True, self_destruct=True)
        return frame

    def to_polars(self, name: str | None = None) -> "pl.DataFrame":
        """Return one of its tables as a polars frame; as :meth:`to_arrow`."""
        frame: pl.DataFrame = _library("polars").from_arrow(self.to_arrow(name))
        return frame

    def to_latex(self) -> str:
        """Return all its tables as LaTeX; the document needs the package booktabs."""
        return latex_of(self.grids(), self.remarks())

    def _grid(self, name: str | None) -> Grid:
        grids = list(self.grids())
        for grid in grids:
            if name in (None, grid.name):
                return grid
        names = ", ".join(dict.fromkeys(grid.name for grid in grids))
        raise ConfigError(f"table {name}", what="there is no such table", fix=f"use one of: {names}")


def _library(name: str) -> Any:  # noqa: ANN401 - a module
    with needing(MissingRequirement(name, what="the library is not installed", fix=f"pip install {name}")):
        return import_module(name)

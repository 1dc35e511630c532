"""Tables as CSV that a spreadsheet opens as what they are: text is never computed."""

import csv
import io
from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a cell begins with that spreadsheets compute."""


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV with LF; text that a spreadsheet would compute gets an apostrophe before it.

    Args:
        header: names of the columns, which may come from data, too.
        rows: cells in their order; numbers stay numbers, None is an empty cell.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name) for name in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def without_guard(cell: str) -> str:
    """Return the text of a cell without the apostrophe that :func:`csv_text` put before it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        clean = value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
        clean = clean.replace("\r\n", "\n").replace("\r", "\n")  # a bare one would end the row for readers
        return f"'{clean}" if clean.startswith(_FORMULA) else clean
    return value

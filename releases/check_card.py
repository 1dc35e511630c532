"""Whether the numbers of the dataset card are those of the public records, and of nothing else."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..schemas.issue import Issue
from .card import COMPOSITIONS, at_path
from .layout import CARD, STATISTICS
from .templates import markdown

_ROW = re.compile(r"\| (.+) \| ([\d,]+) \| ([\d.]+) % \|")


def check_card(folder: Path) -> Iterator[Issue]:
    """Yield the distributions of a card that are not those of ``statistics.json``.

    Statistics are recomputed from the public records, so what differs here would tell more than that about
    hidden stories, or be wrong.
    """
    statistics = json.loads((folder / STATISTICS).read_bytes())
    stated = _tables((folder / CARD).read_text("utf-8"))
    for title, path in COMPOSITIONS:
        if stated.get(title, {}) != _counts(at_path(statistics, path)):
            message = f"the table {title} does not have the counts of {STATISTICS}"
            yield Issue(CARD, "$", "card-statistics", message, "pack the run again")


def _counts(rows: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    return {
        markdown(value): (int(row["count"]), f"{100 * row['share']:.1f}")
        for value, row in rows.items()
        if row["count"]
    }


def _tables(card: str) -> dict[str, dict[str, tuple[int, str]]]:
    """Return title -> value -> count and share, of the tables under bold titles."""
    found: dict[str, dict[str, tuple[int, str]]] = {}
    rows: dict[str, tuple[int, str]] = {}
    for line in card.splitlines():
        title = re.fullmatch(r"\*\*(.+)\*\*", line)
        if title is not None:
            rows = found.setdefault(title[1], {})
        elif (row := _ROW.fullmatch(line)) is not None:
            rows[row[1]] = (int(row[2].replace(",", "")), row[3])
    return found

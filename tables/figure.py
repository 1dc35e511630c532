"""A figure as SVG that needs nothing else, for notebooks and files."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..schemas.canonical import write_atomic

COLOURS = ("#3b8fc4", "#d96b2b", "#3d9a5f", "#9b6bd6", "#b08a1e", "#cf5b8b", "#2f9a94", "#8a8a8a")
"""Colours of series; each can be read on white and on black."""
_STYLE = (
    ".fabula-figure svg{overflow:visible;font:13px system-ui,sans-serif;max-width:760px;display:block}"
    ".fabula-figure text{fill:currentColor}.fabula-figure .band{font-weight:600}"
    ".fabula-figure .tick{opacity:.7;font-size:11.5px}.fabula-figure .grid{stroke:currentColor;opacity:.2}"
    ".fabula-figure .zero{stroke:currentColor;opacity:.6;stroke-width:1.5}"
    ".fabula-figure .bar{stroke-width:2}.fabula-figure .joint{stroke:currentColor;opacity:.4;stroke-width:4}"
    ".fabula-figure .area{opacity:.2;stroke:none!important}.fabula-figure .course{fill:none!important}"
    + "".join(
        f".fabula-figure .c{number}{{fill:{colour};stroke:{colour}}}" for number, colour in enumerate(COLOURS)
    )
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Drawings, one below the other; a notebook shows them.

    Attributes:
        drawings: title -> its SVG element.
        legends: title -> the names of its series, in the order of their colours.
    """

    drawings: dict[str, str]
    legends: dict[str, Sequence[str]] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        parts = [
            f"<figcaption><b>{html.escape(title)}</b></figcaption>{self._legend(title)}{drawing}"
            for title, drawing in self.drawings.items()
        ]
        return f'<figure class="fabula-figure"><style>{_STYLE}</style>{"".join(parts)}</figure>'

    def _legend(self, title: str) -> str:
        series = self.legends.get(title, ())
        if len(series) < 2:
            return ""
        return "".join(
            f'<span style="margin-right: 1em"><span style="color: {COLOURS[number % len(COLOURS)]}">'
            f"\N{BLACK SQUARE}</span> {html.escape(name)}</span>"
            for number, name in enumerate(series)
        )

    def save(self, path: Path | str) -> Path:
        """Write it as an HTML page that needs nothing else, and return its path.

        Raises:
            OSError: it cannot be written.
        """
        page = f'<!doctype html><meta charset="utf-8"><title>Figure</title>{self._repr_html_()}\n'
        write_atomic(Path(path), [page.encode()])
        return Path(path)


def bars(title: str, labels: Sequence[str], values: Sequence[float]) -> Figure:
    """Return values as horizontal bars, a label above each; lengths are shares of the longest."""
    most = max([*(abs(value) for value in values), 1e-12])
    parts = [
        f'<text class="band" x="0" y="{40 * n + 14}">{html.escape(label)}</text>'
        f'<rect class="c0" x="0" y="{40 * n + 20}" width="{80 * abs(value) / most:.2f}%" height="12"/>'
        f'<text x="100%" y="{40 * n + 31}" text-anchor="end">{value:g}</text>'
        for n, (label, value) in enumerate(zip(labels, values, strict=True))
    ]
    svg = f'<svg width="100%" height="{40 * len(labels) + 4}" role="img"><title>{html.escape(title)}</title>'
    return Figure({title: f"{svg}{''.join(parts)}</svg>"})

"""Figures of a release as SVG files that need nothing else: text, boxes and lines in fixed colours."""

import html
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..schemas.canonical import write_atomic
from .target import require_free, staged

COLOURS = ("#0b6aa2", "#c2410c", "#15803d", "#8b2fd6", "#8a6100", "#be185d", "#0f766e", "#525252")
INK, SOFT, LINE = "#1d1c1a", "#5b5852", "#c9c3b8"
_FACE = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
_LETTER = 0.63
"""Width of a usual letter, as a share of the size of the type; wide letters take one whole."""


def document(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """Return a figure on white ground.

    Args:
        width: in pixels.
        height: in pixels.
        title: what it shows, for those who do not see it.
        parts: its elements.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" role="img" font-family="{_FACE}" font-size="13">'
        f'<title>{html.escape(title)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
        + "".join(parts)
        + "</svg>\n"
    )


def label(x: float, y: float, text: str, more: str = "") -> str:
    """Return a text that begins at a place, with more attributes as they are."""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{INK}" {more}>{html.escape(text)}</text>'


def box(place: tuple[float, float], size: tuple[float, float], colour: str, more: str = "") -> str:
    """Return a filled box by its upper left corner, width and height."""
    (x, y), (width, height) = place, size
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" {more}/>'


def width_of(text: str, size: float = 13) -> float:
    """Return about how wide a text is, in pixels, at a size of the type."""
    return size * sum(_share(letter) for letter in text)


def _share(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.95 if letter in "mwMW" else 0.38 if letter in "ijlt.,' " else _LETTER


def wrapped(text: str, width: float, size: float = 13) -> Iterator[str]:
    """Yield the lines of a text that fit a width; a longer word stands alone."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and width_of(longer, size) > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def write_figures(folder: Path, figures: Mapping[str, str]) -> list[Path]:
    """Write figures into a new folder; return their paths.

    Args:
        folder: the new folder.
        figures: file name -> SVG.

    Raises:
        TargetError: the folder is there already, or cannot be written.
    """
    require_free(folder)
    with staged(folder.absolute()) as (draft,):
        for name, figure in figures.items():
            write_atomic(draft / name, [figure.encode()])
    return [folder / name for name in figures]

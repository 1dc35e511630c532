"""What pages share that load nothing from anywhere: their template, their style, what a browser may load."""

import base64
import hashlib
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..schemas.canonical import write_atomic


@cache
def style_of(name: str = "", folder: str = __package__) -> str:
    """Return the style that all pages share (colours by day and night, text, tables), and a page's own.

    Args:
        name: the page's own style sheet, if it has one.
        folder: the package that it lies in.
    """
    shared = (files(__package__) / "pages.css").read_text("utf-8")
    return shared + ((files(folder) / name).read_text("utf-8") if name else "")


def policy_of(style: str, *, pictures: bool = False) -> str:
    """Return the content security policy of a page with this style, pictures of its own, nothing else.

    Args:
        style: the content of its style element.
        pictures: whether it holds pictures, as data.
    """
    allowed = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    shown = " img-src data:;" if pictures else ""
    return f"default-src 'none'; style-src 'sha256-{allowed}';{shown} base-uri 'none'; form-action 'none'"


@cache
def template_of(name: str, folder: str = __package__) -> Any:  # noqa: ANN401 - jinja2 is imported late
    """Return a page template of a package, this one if no other is named; what it is given is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(part_of), undefined=jinja2.StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"bdi": isolated, "numbers": lambda names: [(name, "number") for name in names]}
    return environment.from_string((files(folder) / name).read_text("utf-8"))


def part_of(name: str) -> str | None:
    """Return the template of the parts that all pages import, by its name; None for any other."""
    return (files(__package__) / name).read_text("utf-8") if name == "pages.j2" else None


def isolated(text: str) -> Any:  # noqa: ANN401 - markupsafe is imported late
    """Return a text that keeps its own direction to itself, escaped."""
    from markupsafe import Markup

    return Markup(f"<bdi>{html.escape(text)}</bdi>")


def save_page(path: Path, text: str) -> None:
    """Write a page, with the folders on its way; a file that is there is replaced.

    Raises:
        TargetError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [text.encode("utf-8")])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error.strerror or error}",
            fix="choose another place for --html, or free the disk",
        ) from error  # fmt: skip


WIDTH, HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 120, 16, 44
_MOST_TICKS = 12

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot.

    Attributes:
        title: what it shows.
        across: what is plotted from left to right; ``up`` from the bottom.
        series: name -> points, ascending from left to right.
        bars: whether points are bars; else lines that go on as steps.
        log: whether heights are logarithms; only values of 1 and more are drawn then.
    """

    title: str
    across: str
    up: str
    series: Mapping[str, Points]
    bars: bool = False
    log: bool = False

    def svg(self, number: int) -> str:
        """Return the plot as SVG; the number makes its ids its own."""
        points = [point for some in self.series.values() for point in some]
        right = max((x for x, _ in points), default=1.0) or 1.0
        left = min((x for x, _ in points), default=0.0)
        top = max((y for _, y in points), default=1.0) or 1.0
        scale = _Scale(left, right, top, self.log, self.bars)
        drawn = "".join(
            _bars(some, scale, index) if self.bars else _line(some, scale, index)
            for index, some in enumerate(self.series.values())
        )
        return (
            f'<svg class="plot" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-labelledby="plot{number}">'
            f'<title id="plot{number}">{html.escape(self.title)}</title>'
            f"{scale.axes(self.across, self.up)}{drawn}{_legend(list(self.series))}</svg>"
        )


@dataclass(frozen=True, slots=True)
class _Scale:
    left: float
    right: float
    top: float
    log: bool
    bars: bool

    def x(self, value: float) -> float:
        margin = 0.5 if self.bars else 0.0
        span = (self.right - self.left + 2 * margin) or 1.0
        return _LEFT + (value - self.left + margin) / span * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = math.log10(max(value, 0.5) * 2) / math.log10(self.top * 2) if self.log else value / self.top
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    def axes(self, across: str, up: str) -> str:
        floor = HEIGHT - _BOTTOM
        parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{floor}H{WIDTH - _RIGHT}"/>']
        for value in _ticks(self.left, self.right):
            x = _n(self.x(value))
            parts.append(f'<text class="tick" x="{x}" y="{floor + 16}" text-anchor="middle">{value:g}</text>')
        for value in _powers(self.top) if self.log else _ticks(0, self.top):
            y = _n(self.y(value))
            parts.append(f'<path class="grid" d="M{_LEFT} {y}H{WIDTH - _RIGHT}"/>')
            parts.append(
                f'<text class="tick" x="{_LEFT - 6}" y="{y}" dy="4" text-anchor="end">{value:g}</text>'
            )
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(across)}</text>')
        parts.append(
            f'<text transform="translate(14 {(_TOP + floor) / 2}) rotate(-90)" text-anchor="middle">'
            f"{html.escape(up)}</text>"
        )
        return "".join(parts)


def _line(points: Points, scale: _Scale, index: int) -> str:
    if not points:
        return ""
    path = f"M{_n(scale.x(points[0][0]))} {_n(scale.y(points[0][1]))}"
    path += "".join(f"H{_n(scale.x(x))}V{_n(scale.y(y))}" for x, y in points[1:])
    return f'<path class="line s{index}" d="{path}"/>'


def _bars(points: Points, scale: _Scale, index: int) -> str:
    floor = HEIGHT - _BOTTOM
    wide = max(1.0, 0.8 * (scale.x(scale.left + 1) - scale.x(scale.left)))
    path = "".join(
        f"M{_n(scale.x(x) - wide / 2)} {floor}V{_n(scale.y(y))}h{_n(wide)}V{floor}z"
        for x, y in points
        if y > 0
    )
    return f'<path class="bar s{index}" d="{path}"/>'


def _legend(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    parts = []
    for index, name in enumerate(names):
        y = _TOP + 10 + 20 * index
        x = WIDTH - _RIGHT + 8
        parts.append(f'<path class="line s{index}" d="M{x} {y}h28"/>')
        parts.append(f'<text x="{x + 34}" y="{y + 4}">{html.escape(name)}</text>')
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    span = high - low
    if span <= 0:
        return [high]
    step = 10 ** math.floor(math.log10(span / 4))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if span / (step * factor) <= _MOST_TICKS / 2)
    first = math.ceil(low / step)
    return [round(step * tick, 10) for tick in range(first, math.floor(high / step + 1e-9) + 1)]


def _powers(top: float) -> list[float]:
    return [10.0**power for power in range(int(math.log10(max(top, 1))) + 1)]


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

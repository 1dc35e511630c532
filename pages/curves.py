"""Curves and bars of counts as inline SVG.

Positions across are in percent, heights in pixels: text keeps its size on a phone.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HEIGHT = 260
"""Of a plot, in pixels."""
_LEFT, _WIDTH = 11.0, 85.0
"""Where the field begins and how wide it is, in percent."""
_TOP, _BOTTOM = 28, 44
_MOST_TICKS = 10

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
        whole = all(x == int(x) for x, _ in points)
        scale = _Scale(left, right, top, self.log, self.bars, whole)
        drawn = "".join(
            _bars(some, scale, index) if self.bars else _line(some, scale, index)
            for index, some in enumerate(self.series.values())
        )
        field = HEIGHT - _TOP - _BOTTOM
        return (
            f'<svg class="plot" role="img" width="100%" height="{HEIGHT}" aria-labelledby="plot{number}">'
            f'<title id="plot{number}">{html.escape(self.title)}</title>{scale.axes(self.across, self.up)}'
            f'<svg x="{_LEFT}%" y="{_TOP}" width="{_WIDTH}%" height="{field}" viewBox="0 0 100 {field}" '
            f'preserveAspectRatio="none" overflow="visible">{drawn}</svg></svg>'
        )

    def legend(self) -> str:
        """Return its series as entries of a legend, as HTML; empty where there is one."""
        if len(self.series) < 2:
            return ""
        line = '<svg width="28" height="12" aria-hidden="true"><path class="line s{}" d="M0 6h28"/></svg>'
        return "".join(
            f"<li>{line.format(index)} {html.escape(name)}</li>" for index, name in enumerate(self.series)
        )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Places in the field, which is 100 wide and as high as its pixels."""

    left: float
    right: float
    top: float
    log: bool
    bars: bool
    whole: bool

    def x(self, value: float) -> float:
        margin = 0.5 if self.bars else 0.0
        span = (self.right - self.left + 2 * margin) or 1.0
        return (value - self.left + margin) / span * 100

    def y(self, value: float) -> float:
        share = math.log10(max(value, 0.5) * 2) / math.log10(self.top * 2) if self.log else value / self.top
        return (1 - share) * (HEIGHT - _TOP - _BOTTOM)

    def axes(self, across: str, up: str) -> str:
        floor, right = HEIGHT - _BOTTOM, _LEFT + _WIDTH
        parts = [f'<line class="zero" x1="{_LEFT}%" x2="{_LEFT}%" y1="{_TOP}" y2="{floor}"/>']
        tick = '<text class="tick" x="{}%" y="{}" text-anchor="{}">{:g}</text>'
        for value in _ticks(self.left, self.right, 1 if self.whole else 0):
            parts.append(tick.format(_n(_LEFT + _WIDTH * self.x(value) / 100), floor + 16, "middle", value))
        for value in _powers(self.top) if self.log else _ticks(0, self.top):
            y = _TOP + self.y(value)
            kind = "grid" if value or self.log else "zero"
            parts.append(f'<line class="{kind}" x1="{_LEFT}%" x2="{right}%" y1="{_n(y)}" y2="{_n(y)}"/>')
            parts.append(tick.format(_LEFT - 1.5, _n(y + 4), "end", value))
        parts.append(f'<text x="0" y="14">{html.escape(up)}</text>')
        parts.append(f'<text x="{right}%" y="{HEIGHT - 6}" text-anchor="end">{html.escape(across)}</text>')
        return "".join(parts)


def _line(points: Points, scale: _Scale, index: int) -> str:
    if not points:
        return ""
    path = f"M{_n(scale.x(points[0][0]))} {_n(scale.y(points[0][1]))}"
    path += "".join(f"H{_n(scale.x(x))}V{_n(scale.y(y))}" for x, y in points[1:])
    return f'<path class="line s{index}" d="{path}"/>'


def _bars(points: Points, scale: _Scale, index: int) -> str:
    floor = HEIGHT - _TOP - _BOTTOM
    wide = 0.8 * (scale.x(scale.left + 1) - scale.x(scale.left))
    path = "".join(
        f"M{_n(scale.x(x) - wide / 2)} {floor}V{_n(scale.y(y))}h{_n(wide)}V{floor}z"
        for x, y in points
        if y > 0
    )
    return f'<path class="bar s{index}" d="{path}"/>'


def _ticks(low: float, high: float, least: float = 0) -> list[float]:
    span = high - low
    if span <= 0:
        return [high]
    step = 10 ** math.floor(math.log10(span / 4))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if span / (step * factor) <= _MOST_TICKS / 2)
    step = max(step, least)
    first = math.ceil(low / step)
    return [round(step * tick, 10) for tick in range(first, math.floor(high / step + 1e-9) + 1)]


def _powers(top: float) -> list[float]:
    return [10.0**power for power in range(int(math.log10(max(top, 1))) + 1)]


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")

"""Plots as inline SVG: positions in percent, so that text keeps its size on a phone; and polar charts.

A polar chart is of one method: a sector per score, anti-clockwise from the top (Table S6).
"""

import math
from collections.abc import Sequence
from math import cos, pi, sin

from markupsafe import Markup, escape

from ...pages.text import readable
from ...schemas.values import Score
from .model import Plot, PlotPoint, Polar, PolarAxis, PolarChart, Sector, Unit
from .showing import DASH, interval_text, value_text

LABEL, LINE, GAP, AXIS = 20, 20, 12, 26
"""Heights in pixels: of a band's label, of one score, between bands, of the axis."""
LEFT, WIDTH = 3.0, 78.0
"""Where the axis begins, and how long it is, in percent of the plot's width; values stand to its right."""
SHAPES = 6
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)
LONGEST_LABEL = 34


def draw(plot: Plot) -> Markup:
    """Return a plot as SVG, with its content as a description for those who cannot see it."""
    names = series_of(plot)
    scores = [point.score for points in plot.groups.values() for point in points]
    low, high, step = _axis(scores, plot.unit)
    parts: list[Markup] = _courses(plot, names, (low, high)) if plot.curve else []
    top = 4
    for label, points in plot.groups.items():
        parts.append(band_label(label, top))
        if plot.joined or plot.curve:
            parts.append(_together(points, names, (low, high), top, plot))
            top += LABEL + LINE + GAP
            continue
        for number, point in enumerate(points):
            y = top + LABEL + number * LINE + LINE // 2
            parts.append(_mark(point, names, (low, high), y, plot.unit))
            parts.append(right_text(value_text(point.score.value, plot.unit), y + 4))
        top += LABEL + len(points) * LINE + GAP
    ticks = [(value, value_text(value, plot.unit).removesuffix(".0")) for value in _marks(low, high, step)]
    content = [grid((low, high), ticks, top), *parts]
    return framed(plot.name, plot.title, described(plot), content, top + AXIS)


def framed(
    name: str, title: str, description: str, content: Sequence[Markup], height: int, kind: str = "plot"
) -> Markup:
    """Return drawn parts as one picture as wide as the page lets it be, with title and description."""
    return Markup(
        '<svg class="{}" width="100%" height="{}" role="img" aria-labelledby="{}-t {}-d" focusable="false">'
        '<title id="{}-t">{}</title><desc id="{}-d">{}</desc>{}</svg>'
    ).format(kind, height, name, name, name, readable(title), name, description, Markup("").join(content))


def series_of(plot: Plot) -> tuple[str, ...]:
    """Return the names of a plot's series: those that it names, then others as they appear."""
    drawn = (point.series for points in plot.groups.values() for point in points)
    return tuple(dict.fromkeys((*plot.series, *drawn)))


def described(plot: Plot) -> str:
    """Return the content of a plot in words."""
    return " ".join(
        f"{readable(label)}: "
        + "; ".join(
            f"{readable(point.series)} {value_text(point.score.value, plot.unit)} "
            f"{interval_text(point.score, plot.unit)}".strip()
            for point in points
        )
        + "."
        for label, points in plot.groups.items()
    )


def legend_mark(number: int, *, square: bool = False) -> Markup:
    """Return the mark of the series with this number, as a small picture for the legend."""
    if square:  # of colours that stand for groups, whose members are numbered
        return Markup(
            '<svg width="16" height="16" aria-hidden="true" focusable="false">'
            '<rect class="c{}" x="2" y="2" width="12" height="12"/></svg>'
        ).format(number % 8)
    return Markup(
        '<svg width="16" height="16" aria-hidden="true" focusable="false">'
        '<svg x="8" y="8" overflow="visible">{}</svg></svg>'
    ).format(shape_of(number))


def _axis(scores: Sequence[Score], unit: Unit) -> tuple[float, float, float]:
    """Return both ends of the axis and the distance of its marks."""
    ends = [end for score in scores for end in (score.value, score.low, score.high) if end is not None]
    return axis_of(ends, 0.05 if unit != "usd" else 1.0)


def axis_of(ends: Sequence[float], least: float = 0.05) -> tuple[float, float, float]:
    """Return both ends of an axis that has zero and all of some values on it, and the distance of its marks.

    Args:
        ends: the values.
        least: how long it is at least.
    """
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if high - low < 0.05:
        high = low + least
    step = next((step for step in STEPS if (high - low) / step <= 6), (high - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return first * step, last * step, step


def x_of(value: float, axis: tuple[float, float]) -> str:
    """Return where a value stands, in percent of the picture's width."""
    share = (value - axis[0]) / (axis[1] - axis[0])
    return f"{LEFT + WIDTH * min(max(share, 0.0), 1.0):.3f}%"


def _marks(low: float, high: float, step: float) -> list[float]:
    return [low + number * step for number in range(round((high - low) / step) + 1)]


def grid(axis: tuple[float, float], ticks: Sequence[tuple[float, str]], height: int) -> Markup:
    """Return the lines of an axis with their texts below; that of zero is a stronger one."""
    lines = []
    for value, text in ticks:
        x = x_of(value, axis)
        kind = "zero" if abs(value) < (axis[1] - axis[0]) / 10_000 else "grid"
        lines.append(
            Markup(
                '<line class="{}" x1="{}" x2="{}" y1="0" y2="{}"/>'
                '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>'
            ).format(kind, x, x, height, x, height + 16, text)
        )
    return Markup("").join(lines)


def band_label(label: str, top: int) -> Markup:
    """Return the name of a band, cut where it is long."""
    shown = readable(label)
    short = shown if len(shown) <= LONGEST_LABEL else f"{shown[: LONGEST_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return Markup('<text class="band" x="0" y="{}" direction="ltr">{}</text>').format(top + 14, short)


def right_text(text: str, y: int) -> Markup:
    """Return a text at the right edge."""
    return Markup('<text class="value" x="100%" y="{}" text-anchor="end">{}</text>').format(y, text)


def _mark(point: PlotPoint, names: Sequence[str], axis: tuple[float, float], y: int, unit: Unit) -> Markup:
    score, number = point.score, names.index(point.series)
    if score.value is None:
        return Markup('<text class="value" x="{}%" y="{}">{}</text>').format(LEFT, y + 4, f"{DASH} undefined")
    bar = Markup("")
    if score.low is not None and score.high is not None:
        bar = Markup('<line class="bar c{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            number % 8, x_of(score.low, axis), x_of(score.high, axis), y, y
        )
    hint = escape(f"{readable(point.series)}: {value_text(score.value, unit)}")
    return Markup('<g>{}<svg x="{}" y="{}" overflow="visible"><title>{}</title>{}</svg></g>').format(
        bar, x_of(score.value, axis), y, hint, shape_of(number)
    )


def _courses(plot: Plot, names: Sequence[str], axis: tuple[float, float]) -> list[Markup]:
    """Return a line per series through the bands in which it has a value, its intervals shaded."""
    made = []
    for number, name in enumerate(names):
        line, low, high = [], [], []
        for index, points in enumerate(plot.groups.values()):
            y = 4 + index * (LABEL + LINE + GAP) + LABEL + LINE // 2
            score = next((point.score for point in points if point.series == name), None)
            if score is None or score.value is None:
                continue
            line.append((score.value, y))
            if score.low is not None and score.high is not None:
                low.append((score.low, y))
                high.append((score.high, y))
        area = Markup('<polygon class="area c{}" points="{}"/>').format(
            number % 8, _stretched([*low, *reversed(high)], axis)
        )
        course = Markup('<polyline class="course c{}" points="{}"/>').format(
            number % 8, _stretched(line, axis)
        )
        made += [*([area] if len(low) > 1 else []), *([course] if len(line) > 1 else [])]
    height = 4 + len(plot.groups) * (LABEL + LINE + GAP)
    frame = (
        '<svg x="{0}%" width="{1}%" height="{2}" viewBox="0 0 100 {2}" preserveAspectRatio="none">{3}</svg>'
    )
    return [Markup(frame).format(LEFT, WIDTH, height, Markup("").join(made))] if made else []


def _stretched(points: Sequence[tuple[float, int]], axis: tuple[float, float]) -> str:
    """Return points for a drawing that is stretched over the axis, 100 units wide."""
    places = ((100 * (value - axis[0]) / (axis[1] - axis[0]), y) for value, y in points)
    return " ".join(f"{min(max(x, 0.0), 100.0):.3f},{y}" for x, y in places)


def _together(
    points: Sequence[PlotPoint], names: Sequence[str], axis: tuple[float, float], top: int, plot: Plot
) -> Markup:
    """Return the points of a band at one height; joined by a line where the plot is so."""
    y, unit = top + LABEL + LINE // 2, plot.unit
    values = [point.score.value for point in points if point.score.value is not None]
    line = Markup("")
    if values and plot.joined:
        line = Markup('<line class="joint" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            x_of(min(values), axis), x_of(max(values), axis), y, y
        )
    apart = 6 if plot.joined else 0  # intervals that overlap stay apart; those of curves are shaded
    marks = [
        _mark(point, names, axis, y - apart * (len(points) - 1) // 2 + apart * number, unit)
        for number, point in enumerate(points)
        if point.score.value is not None
    ]
    text = " / ".join(value_text(point.score.value, unit) for point in points)
    return Markup("").join([line, *marks, right_text(text, top + 14)])


def shape_of(number: int) -> Markup:
    """Return the mark of a series around the origin: shape and colour, so that neither alone tells."""
    shapes = (
        '<circle class="{}" r="5"/>',
        '<rect class="{}" x="-4.5" y="-4.5" width="9" height="9"/>',
        '<path class="{}" d="M0-6 6 0 0 6-6 0Z"/>',
        '<path class="{}" d="M0-6 6 5-6 5Z"/>',
        '<path class="{}" d="M0 6 6-5-6-5Z"/>',
        '<path class="{}" d="M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z"/>',
    )
    return Markup(shapes[number % SHAPES]).format(f"c{number % 8}")


SIZE, RADIUS = 230, 88
"""Width and height of a chart, and its radius, in units of its own."""
RINGS = (0.25, 0.5, 0.75, 1.0)
_GAP = 0.06  # of a sector's angle, on both sides together
_CENTRE = SIZE / 2


def draw_polar(chart: PolarChart, polar: Polar, number: int) -> Markup:
    """Return a method's chart as SVG, with its content as a description for those who cannot see it."""
    groups = groups_of(polar)
    rings = Markup("").join(
        Markup('<circle class="ring" cx="{0:g}" cy="{0:g}" r="{1:g}"/>').format(_CENTRE, RADIUS * ring)
        for ring in RINGS
    )
    parts = [
        _sector(sector, index, len(polar.axes), groups.index(axis.group))
        for index, (axis, sector) in enumerate(zip(polar.axes, chart.sectors, strict=True))
    ]
    return Markup(
        '<svg class="polar" viewBox="0 0 {0} {0}" role="img" aria-labelledby="polar-{1}-t polar-{1}-d" '
        'focusable="false"><title id="polar-{1}-t">{2}</title><desc id="polar-{1}-d">{3}</desc>{4}{5}</svg>'
    ).format(
        SIZE, number, f"Scores of {readable(chart.method, 80)}", polar_described(chart, polar), rings,
        Markup("").join(parts),
    )  # fmt: skip


def polar_described(chart: PolarChart, polar: Polar) -> str:
    """Return a chart in words."""
    return "; ".join(
        f"{readable(axis.label)} {_axis_value(chart, axis)}"
        + ("" if sector.radius is None else f", {100 * sector.radius:.0f} % of the outer circle")
        for axis, sector in zip(polar.axes, chart.sectors, strict=True)
    )


def groups_of(polar: Polar) -> list[str]:
    """Return what the colours stand for, in order."""
    return list(dict.fromkeys(axis.group for axis in polar.axes))


def polar_key(polar: Polar) -> list[tuple[Markup, str, list[tuple[int, str]]]]:
    """Return the legend: mark, group, and the numbers and names of its scores."""
    return [
        (
            legend_mark(index, square=True), group,
            [(n + 1, axis.label) for n, axis in enumerate(polar.axes) if axis.group == group],
        )
        for index, group in enumerate(groups_of(polar))
    ]  # fmt: skip


def _axis_value(chart: PolarChart, axis: PolarAxis) -> str:
    score = chart.values.get(axis.name)
    return DASH if score is None or score.value is None else f"{score.value:.{axis.digits}f}"


def _sector(sector: Sector, index: int, count: int, colour: int) -> Markup:
    middle = pi / 2 + 2 * pi * index / count
    half = pi / count * (1 - _GAP)
    name = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>').format(
        *_point(middle, RADIUS + 13, down=4), index + 1
    )
    if sector.radius is None:
        nothing = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>').format(
            *_point(middle, RADIUS * 0.3, down=4), DASH
        )
        return nothing + name
    length = RADIUS * sector.radius
    start, end = _point(middle - half, length), _point(middle + half, length)
    large = int(half * 2 > pi)
    wedge = Markup(
        '<path class="wedge c{}" d="M{:.1f} {:.1f}L{:.1f} {:.1f}A{:.2f} {:.2f} 0 {} 0 {:.1f} {:.1f}Z"/>'
    ).format(colour % 8, _CENTRE, _CENTRE, *start, length, length, large, *end)
    whisker = Markup("")
    if sector.low is not None and sector.high is not None:
        inner, outer = _point(middle, RADIUS * sector.low), _point(middle, RADIUS * sector.high)
        whisker = Markup('<line class="whisker" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
            *inner, *outer
        )
    return wedge + whisker + name


def _point(angle: float, length: float, down: float = 0.0) -> tuple[float, float]:
    """Return a place on the page; angles turn anti-clockwise, the page's second axis points down."""
    return _CENTRE + length * cos(angle), _CENTRE - length * sin(angle) + down

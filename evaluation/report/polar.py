"""Polar charts as inline SVG: one per method, a sector per score, anti-clockwise from the top (Table S6)."""

from math import cos, pi, sin

from markupsafe import Markup

from .plots import legend_mark
from .shots_model import Polar, PolarAxis, PolarChart, Sector
from .showing import DASH, readable

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
        _sector(sector, place, len(polar.axes), groups.index(axis.group))
        for place, (axis, sector) in enumerate(zip(polar.axes, chart.sectors, strict=True))
    ]
    return Markup(
        '<svg class="polar" viewBox="0 0 {0} {0}" role="img" aria-labelledby="polar-{1}-t polar-{1}-d" '
        'focusable="false"><title id="polar-{1}-t">{2}</title><desc id="polar-{1}-d">{3}</desc>{4}{5}</svg>'
    ).format(
        SIZE, number, f"Scores of {readable(chart.method, 80)}", described(chart, polar), rings,
        Markup("").join(parts),
    )  # fmt: skip


def described(chart: PolarChart, polar: Polar) -> str:
    """Return a chart in words."""
    return "; ".join(
        f"{readable(axis.label)} {_value(chart, axis)}"
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
            legend_mark(place, square=True), group,
            [(n + 1, axis.label) for n, axis in enumerate(polar.axes) if axis.group == group],
        )
        for place, group in enumerate(groups_of(polar))
    ]  # fmt: skip


def _value(chart: PolarChart, axis: PolarAxis) -> str:
    score = chart.values.get(axis.name)
    return DASH if score is None or score.value is None else f"{score.value:.{axis.digits}f}"


def _sector(sector: Sector, place: int, count: int, colour: int) -> Markup:
    middle = pi / 2 + 2 * pi * place / count
    half = pi / count * (1 - _GAP)
    name = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>').format(
        *_point(middle, RADIUS + 13, down=4), place + 1
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

"""Figures of pages, as plain data and as inline SVG: values with intervals, ridges, strips, scatter plots.

Places across are in percent and heights in pixels, so that text keeps its size on a phone.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, TypeAlias, cast

from markupsafe import Markup
from pydantic import Field, model_validator

from ..errors import MissingRequirement
from ..schemas.text import counted
from ..schemas.values import Own, Score
from .grid import DASH, Unit, axis_title, interval_text, value_text
from .page import readable

LABEL, LINE, GAP, AXIS = 20, 20, 12, 44
"""Heights in pixels: of a band's label, of one score, between bands, of the axis with its title."""
RIDGE, CELL = 46, 22
"""Heights in pixels: of the tallest column of a ridge, of a cell."""
LEFT, WIDTH = 3.0, 78.0
"""Where the axis begins, and how long it is, in percent of the figure's width; values stand to its right."""
TALL, TOP, FOOT = 320, 26, 44
"""Heights in pixels of a scatter plot: of its field, above it, below it."""
FIELD_LEFT, FIELD_WIDTH = 11.0, 86.0
"""Where the field of a scatter plot begins, and how wide it is, in percent."""
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)
TONES, SHAPES, LONGEST_LABEL = 8, 6, 34
MOST_NUMBERED = 12
"""Most columns of a strip whose cells have their numbers in them, and most numbers below whole steps."""


class _Titled(Own):
    """What every figure has."""

    name: str = Field(description="Name in the data.")
    title: str = Field(description="Caption.")
    note: str = Field(default="", description="How to read it.")
    axis: str = Field(default="", exclude=True, description="What the values are, at the axis; without unit.")

    def save(self, path: str | Path, width: float = 6.4) -> Path:
        """Write the figure for a paper, by matplotlib (``fabula[figures]``).

        Args:
            path: the file; its ending says the form: ``.png``, ``.svg`` or ``.pdf``.
            width: inches; the height follows from what is shown.

        Returns:
            The file.

        Raises:
            TargetError: another ending, or the file cannot be written.
            MissingRequirement: matplotlib is not installed.
        """
        from .page import save_figure

        return save_figure(cast("Figure", self), Path(path), width)

    def _repr_png_(self) -> bytes | None:
        """Return the figure as a notebook shows it; None without matplotlib."""
        from .page import figure_bytes

        with suppress(ImportError, MissingRequirement):
            return figure_bytes(cast("Figure", self), "png", 6.4)
        return None


class PlotPoint(Own):
    series: str = Field(description="What its colour and shape stand for, such as a method.")
    score: Score = Field(description="The score; drawn with its interval where it has one.")


class Plot(_Titled):
    """Scores on one axis, one band per group, with their intervals."""

    unit: Unit = Field(default="percent", description="Unit of the axis.")
    groups: dict[str, tuple[PlotPoint, ...]] = Field(description="Band -> its points, in order.")


class Spot(Own):
    """One point of a scatter plot."""

    label: str = Field(description="What it is, such as a story.")
    series: str = Field(description="What its colour and shape stand for, such as a method.")
    across: float = Field(ge=0, le=1, description="From left to right.")
    up: float = Field(ge=0, le=1, description="From the bottom.")


class Scatter(_Titled):
    """Points on two axes that are shares, with the line on which both are the same."""

    across: str = Field(description="What goes from left to right.")
    up: str = Field(description="What goes from the bottom up.")
    noun: str = Field(default="point", description="What a point is, in the singular.")
    spots: tuple[Spot, ...] = Field(description="The points, in order.")


class Ridge(Own):
    """How often values fall between the edges of a figure, for one thing, such as a method."""

    label: str = Field(description="Whose values they are.")
    counts: tuple[Annotated[int, Field(ge=0)], ...] = Field(description="Values between two edges, in order.")
    middle: float | None = Field(description="Median of all values; null where there is none.")


class Ridges(_Titled):
    """Distributions on one axis, one above the other; nothing is smoothed."""

    unit: Unit = Field(description="Unit of the axis.")
    edges: tuple[float, ...] = Field(description="Edges, ascending, one more than counts of a ridge.")
    ridges: tuple[Ridge, ...] = Field(description="From the top.")

    @model_validator(mode="after")
    def _ridges_have_every_step(self) -> "Ridges":
        if any(len(ridge.counts) != len(self.edges) - 1 for ridge in self.ridges):
            raise ValueError("every ridge has a count between two edges")
        return self


class HeatRow(Own):
    """The values of one thing, such as a method, from left to right."""

    label: str = Field(description="Whose values they are.")
    values: tuple[float | None, ...] = Field(description="By column; null where there is no value.")
    missing: tuple[str, ...] = Field(
        default=(), description="By column, why there is none; empty: nothing is due."
    )


class Heat(_Titled):
    """A strip of cells for each thing, the darker the higher its value."""

    unit: Unit = Field(description="Unit of the values.")
    low: float = Field(default=0.0, description="Value of the lightest cell.")
    high: float = Field(default=1.0, description="Value of the darkest cell.")
    heading: str = Field(description="What the rows are.")
    columns: tuple[str, ...] = Field(description="Names of the columns, in order.")
    rows: tuple[HeatRow, ...] = Field(description="From the top.")


Figure: TypeAlias = Plot | Scatter | Ridges | Heat


def ridges(values: Mapping[str, Sequence[float]], edges: Sequence[float]) -> tuple[Ridge, ...]:
    """Return how often values fall between edges; the last edge belongs to the values before it.

    ``values``: label -> values, within the first and the last edge. ``edges``: ascending.
    """
    return tuple(
        Ridge(
            label=label,
            counts=tuple(
                sum(low <= value < high or (high == edges[-1] and value == high) for value in some)
                for low, high in pairwise(edges)
            ),
            middle=median(some) if some else None,
        )
        for label, some in values.items()
    )


def draw_figure(figure: Figure) -> Markup:
    """Return a figure as SVG, with its content as a description for those who cannot see it."""
    if isinstance(figure, Scatter):
        return _scatter(figure)
    if isinstance(figure, Ridges):
        return _ridges(figure)
    return _heat(figure) if isinstance(figure, Heat) else _plot(figure)


def legend_of(figure: Figure) -> list[tuple[Markup, str]]:
    """Return what a figure's marks stand for, in order; nothing where each band has its name."""
    if isinstance(figure, Ridges | Heat):
        return []
    mark = Markup(
        '<svg width="16" height="16" aria-hidden="true" focusable="false">'
        '<svg x="8" y="8" overflow="visible">{}</svg></svg>'
    )
    return [(mark.format(_shape(number)), name) for number, name in enumerate(_series(figure))]


def figure_table(figure: Figure) -> tuple[list[str], list[list[str]]] | None:
    """Return the numbers of ridges or strips as headings and rows; None of a figure that has them beside."""
    if isinstance(figure, Ridges):
        rows = [
            ["Values", *(f"{sum(ridge.counts):,}" for ridge in figure.ridges)],
            ["Median", *(value_text(ridge.middle, figure.unit) for ridge in figure.ridges)],
            *(
                [step, *(f"{ridge.counts[index]:,}" for ridge in figure.ridges)]
                for index, step in enumerate(_steps(figure))
            ),
        ]
        return ["Step", *(ridge.label for ridge in figure.ridges)], rows
    if isinstance(figure, Heat):
        rows = [
            [row.label, *(_cell_text(figure, row, index) for index in range(len(row.values)))]
            for row in figure.rows
        ]
        return [figure.heading, *figure.columns], rows
    return None


def figure_rows(figure: Figure) -> Iterator[tuple[str, str, str, float | int]]:
    """Yield the numbers that no table has: group, series, measure and value."""
    if isinstance(figure, Scatter):
        for spot in figure.spots:
            yield (spot.label, spot.series, "across", spot.across)
            yield (spot.label, spot.series, "up", spot.up)
    elif isinstance(figure, Ridges):
        for ridge in figure.ridges:
            for edge, count in zip(figure.edges, ridge.counts, strict=False):
                yield (ridge.label, f"from {edge:g}", "values", count)
    elif isinstance(figure, Heat):
        for row in figure.rows:
            for name, value in zip(figure.columns, row.values, strict=True):
                if value is not None:
                    yield (row.label, name, "value", value)


def _plot(plot: Plot) -> Markup:
    names = _series(plot)
    scores = [point.score for points in plot.groups.values() for point in points]
    low, high, step = _axis([end for score in scores for end in (score.value, score.low, score.high)], plot)
    parts, top = list[Markup](), 4
    for label, points in plot.groups.items():
        parts.append(_band(label, top))
        for number, point in enumerate(points):
            y = top + LABEL + number * LINE + LINE // 2
            parts.append(_mark(point, names, (low, high), y, plot.unit))
            parts.append(_right(value_text(point.score.value, plot.unit), y + 4))
        top += LABEL + len(points) * LINE + GAP
    marks = [low + number * step for number in range(round((high - low) / step) + 1)]
    described = " ".join(
        f"{readable(label)}: "
        + "; ".join(
            f"{readable(point.series)} {value_text(point.score.value, plot.unit)} "
            f"{interval_text(point.score, plot.unit)}".strip()
            for point in points
        )
        + "."
        for label, points in plot.groups.items()
    )
    ticks = [(mark, _tick(mark, plot.unit)) for mark in marks]
    grid = _grid((low, high), ticks, top)
    return _framed(
        plot,
        described,
        [grid, *parts, _axis_text(plot, top)],
        top + AXIS,
    )


def _mark(point: PlotPoint, names: Sequence[str], axis: tuple[float, float], y: int, unit: Unit) -> Markup:
    score, number = point.score, names.index(point.series)
    if score.value is None:
        return Markup('<text class="value" x="{}%" y="{}">{}</text>').format(LEFT, y + 4, f"{DASH} undefined")
    bar = Markup("")
    if score.low is not None and score.high is not None:
        bar = Markup('<line class="bar c{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            number % 8, _x(score.low, axis), _x(score.high, axis), y, y
        )
    hint = f"{readable(point.series)}: {value_text(score.value, unit)}"
    return Markup('<g>{}<svg x="{}" y="{}" overflow="visible"><title>{}</title>{}</svg></g>').format(
        bar, _x(score.value, axis), y, hint, _shape(number)
    )


def _axis(values: Sequence[float | None], plot: Plot) -> tuple[float, float, float]:
    """Return both ends of an axis that has zero and all values on it, and the distance of its marks."""
    ends = [value for value in values if value is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if high - low < 0.05:
        high = low + (1.0 if plot.unit == "usd" else 0.05)
    step = next((step for step in STEPS if (high - low) / step <= 6), (high - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return first * step, last * step, step


def _ridges(figure: Ridges) -> Markup:
    """Return an outline per thing, as high as its shares, with a mark at the median."""
    axis = (figure.edges[0], figure.edges[-1])
    shares = [[count / max(1, sum(ridge.counts)) for count in ridge.counts] for ridge in figure.ridges]
    peak = max((share for some in shares for share in some), default=0.0) or 1.0
    whole = figure.unit == "count"
    parts, top = list[Markup](), 4
    for number, (ridge, some) in enumerate(zip(figure.ridges, shares, strict=True)):
        floor = top + LABEL + RIDGE
        points = [f"0,{RIDGE}"]
        for index, share in enumerate(some):
            height = RIDGE * (1 - share / peak)
            points += [f"{100 * part / len(some):.2f},{height:.1f}" for part in (index, index + 1)]
        parts.append(
            Markup(
                '<svg x="{}%" y="{}" width="{}%" height="{}" viewBox="0 0 100 {}" preserveAspectRatio="none">'
                '<polygon class="ridge c{}" points="{}"/></svg>'
            ).format(
                LEFT, floor - RIDGE, WIDTH, RIDGE, RIDGE, number % 8, " ".join([*points, f"100,{RIDGE}"])
            )
        )
        parts += [_band(ridge.label, top), _right(f"n = {sum(ridge.counts):,}", top + 14)]
        if ridge.middle is not None:
            x = _x(ridge.middle + whole / 2, axis)
            line = Markup('<line class="median" x1="{}" x2="{}" y1="{}" y2="{}"/>')
            parts.append(line.format(x, x, floor - RIDGE, floor))
            parts.append(_right(_median_text(ridge, figure.unit), floor - 4))
        top += LABEL + RIDGE + GAP
    if whole:
        every = -(-len(figure.edges) // MOST_NUMBERED)
        ticks = [(edge + 0.5, f"{edge:,.0f}") for edge in figure.edges[:-1:every]]
    else:
        marks = [axis[0] + part * (axis[1] - axis[0]) / 4 for part in range(5)]
        ticks = [(mark, _tick(mark, figure.unit)) for mark in marks]
    described = " ".join(
        f"{readable(ridge.label)}: {counted(sum(ridge.counts), 'value')}, "
        f"median {_median_text(ridge, figure.unit)}."
        for ridge in figure.ridges
    )
    grid = _grid(axis, ticks, top)
    return _framed(
        figure,
        described,
        [grid, *parts, _axis_text(figure, top)],
        top + AXIS,
    )


def _median_text(ridge: Ridge, unit: Unit) -> str:
    if unit == "count" and ridge.middle is not None:
        return f"{ridge.middle:g}"  # between two whole numbers, maybe
    return value_text(ridge.middle, unit)


def _steps(figure: Ridges) -> list[str]:
    """Return what each step of ridges is called; one of whole numbers is its number."""
    edges = [value_text(edge, figure.unit) for edge in figure.edges]
    return edges[:-1] if figure.unit == "count" else [f"{low} to {high}" for low, high in pairwise(edges)]


def _heat(figure: Heat) -> Markup:
    """Return a row of cells per thing; dashes where something is due and has no value."""
    count, parts, top = max(1, len(figure.columns)), list[Markup](), 4
    width = WIDTH / count
    for row in figure.rows:
        parts.append(_band(row.label, top))
        known = [value for value in row.values if value is not None]
        if known:
            parts.append(_right(value_text(sum(known) / len(known), figure.unit), top + LABEL + 15))
        for index in range(len(row.values)):
            parts.append(_cell(figure, row, index, (LEFT + width * index, width, top + LABEL)))
        top += LABEL + CELL + GAP // 2
    every = -(-count // MOST_NUMBERED)
    for index, name in enumerate(figure.columns):
        if index % every == 0:
            x = LEFT + width * (index + 0.5)
            text = Markup('<text class="tick" x="{:.2f}%" y="{}" text-anchor="middle">{}</text>')
            parts.append(text.format(x, top + 12, readable(name, 20)))
    described = " ".join(
        f"{readable(row.label)}: "
        + ", ".join(
            f"{readable(name, 20)} {_cell_text(figure, row, index)}"
            for index, name in enumerate(figure.columns) if _cell_text(figure, row, index)
        ) + "."
        for row in figure.rows
    )  # fmt: skip
    return _framed(figure, described, [*parts, _axis_text(figure, top)], top + AXIS)


def _cell(figure: Heat, row: HeatRow, index: int, at: tuple[float, float, int]) -> Markup:
    (left, width, top), value, text = at, row.values[index], _cell_text(figure, row, index)
    if not text:
        return Markup("")
    kind = "due"
    if value is not None:
        tone = (value - figure.low) / ((figure.high - figure.low) or 1.0)
        kind = f"h{min(TONES - 1, max(0, int(tone * TONES)))}"
    cell = Markup(
        '<rect class="cell {}" x="{:.2f}%" width="{:.2f}%" y="{}" height="{}"><title>{}</title></rect>'
    ).format(kind, left, width, top, CELL, readable(f"{row.label}, {figure.columns[index]}: {text}"))
    if len(figure.columns) > MOST_NUMBERED:
        return cell
    label = Markup('<text class="inside" x="{:.2f}%" y="{}" text-anchor="middle">{}</text>')
    return cell + label.format(left + width / 2, top + 15, DASH if value is None else text)


def _cell_text(figure: Heat, row: HeatRow, index: int) -> str:
    """Return a value, or why there is none; empty where nothing is due."""
    value = row.values[index]
    if value is not None:
        return value_text(value, figure.unit)
    return row.missing[index] if index < len(row.missing) else ""


def _scatter(figure: Scatter) -> Markup:
    """Return points in a field; those at the same place are one mark, the larger the more they are."""
    names = _series(figure)
    together = Counter((spot.series, round(spot.across, 6), round(spot.up, 6)) for spot in figure.spots)
    parts = [*_field(figure)]
    for (series, across, up), count in together.items():
        x, y = FIELD_LEFT + FIELD_WIDTH * across, TOP + TALL * (1 - up)
        position = f"{value_text(across, 'percent')} across, {value_text(up, 'percent')} up"
        area = 0.8 * math.sqrt(min(count, 16))
        parts.append(
            Markup(
                '<svg class="spot" x="{:.3f}%" y="{:.1f}" overflow="visible"><title>{}</title>'
                '<g transform="scale({:.2f})">{}</g></svg>'
            ).format(
                x, y, f"{readable(series)}: {position}, {counted(count, figure.noun)}", area,
                _shape(names.index(series)),
            )
        )  # fmt: skip
    described = " ".join(_averages(figure, name) for name in names)
    return _framed(figure, described, parts, TOP + TALL + FOOT, "plot scatter")


def _field(figure: Scatter) -> Iterator[Markup]:
    """Yield the axes of a scatter plot, in percent, and the line on which both are the same."""
    line = Markup('<line class="{}" x1="{:.3f}%" x2="{:.3f}%" y1="{}" y2="{}"/>')
    text = Markup('<text class="tick" x="{:.3f}%" y="{}" text-anchor="{}">{}</text>')
    right, floor = FIELD_LEFT + FIELD_WIDTH, TOP + TALL
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = FIELD_LEFT + FIELD_WIDTH * share, round(floor - TALL * share)
        kind = "zero" if not share else "grid"
        yield line.format(kind, x, x, TOP, floor)
        yield line.format(kind, FIELD_LEFT, right, y, y)
        yield text.format(x, floor + 16, "middle", f"{100 * share:g}")
        yield text.format(FIELD_LEFT - 1.5, y + 4, "end", f"{100 * share:g}")
    yield Markup(
        '<svg x="{}%" y="{}" width="{}%" height="{}" viewBox="0 0 100 100" preserveAspectRatio="none">'
        '<line class="same" x1="0" y1="100" x2="100" y2="0"/></svg>'
    ).format(FIELD_LEFT, TOP, FIELD_WIDTH, TALL)
    yield Markup('<text x="0" y="14">{}</text>').format(f"{readable(figure.up, 60)}, %")
    yield Markup('<text x="{}%" y="{}" text-anchor="end">{}</text>').format(
        right, floor + 36, f"{readable(figure.across, 60)}, %"
    )


def _averages(figure: Scatter, name: str) -> str:
    own = [spot for spot in figure.spots if spot.series == name]
    across, up = (sum(values) / len(own) for values in ([s.across for s in own], [s.up for s in own]))
    return (
        f"{readable(name)}: {counted(len(own), figure.noun)}; on average {readable(figure.across)} "
        f"{value_text(across, 'percent')} %, {readable(figure.up)} {value_text(up, 'percent')} %."
    )


def _series(figure: Plot | Scatter) -> list[str]:
    """Return the names of series, in the order in which they appear."""
    if isinstance(figure, Scatter):
        return list(dict.fromkeys(spot.series for spot in figure.spots))
    return list(dict.fromkeys(point.series for points in figure.groups.values() for point in points))


def _framed(
    figure: Figure, description: str, content: Sequence[Markup], height: int, kind: str = "plot"
) -> Markup:
    """Return drawn parts as one picture as wide as the page lets it be, with title and description."""
    return Markup(
        '<svg class="{0}" width="100%" height="{1}" role="img" aria-labelledby="{2}-t {2}-d" '
        'focusable="false"><title id="{2}-t">{3}</title><desc id="{2}-d">{4}</desc>{5}</svg>'
    ).format(kind, height, figure.name, readable(figure.title), description, Markup("").join(content))


def _x(value: float, axis: tuple[float, float]) -> str:
    """Return where a value stands, in percent of the picture's width."""
    share = (value - axis[0]) / (axis[1] - axis[0])
    return f"{LEFT + WIDTH * min(max(share, 0.0), 1.0):.3f}%"


def _tick(value: float, unit: Unit) -> str:
    return value_text(value, unit).removesuffix(".0")


def _grid(axis: tuple[float, float], ticks: Sequence[tuple[float, str]], height: int) -> Markup:
    """Return the lines of an axis with their texts below; that of zero is a stronger one."""
    lines = []
    for value, text in ticks:
        x = _x(value, axis)
        kind = "zero" if abs(value) < (axis[1] - axis[0]) / 10_000 else "grid"
        lines.append(
            Markup(
                '<line class="{}" x1="{}" x2="{}" y1="0" y2="{}"/>'
                '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>'
            ).format(kind, x, x, height, x, height + 16, text)
        )
    return Markup("").join(lines)


def _axis_text(figure: Plot | Ridges | Heat, top: int) -> Markup:
    """Return the title of an axis, below the texts of its marks; that of a strip has no unit."""
    text = readable(figure.axis, 60)
    text = text if isinstance(figure, Heat) else axis_title(text, figure.unit)
    return Markup('<text class="tick" x="{}%" y="{}">{}</text>').format(LEFT, top + 36, text)


def _band(label: str, top: int) -> Markup:
    """Return the name of a band, cut where it is long."""
    shown = readable(label)
    short = shown if len(shown) <= LONGEST_LABEL else f"{shown[: LONGEST_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return Markup('<text class="band" x="0" y="{}" direction="ltr">{}</text>').format(top + 14, short)


def _right(text: str, y: int) -> Markup:
    """Return a text at the right edge."""
    return Markup('<text class="value" x="100%" y="{}" text-anchor="end">{}</text>').format(y, text)


def _shape(number: int) -> Markup:
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

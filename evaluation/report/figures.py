"""Figures of what people said as inline SVG: distributions over the steps of a scale, and scatter plots.

Positions are in percent and heights in pixels, as in :mod:`.plots`: text keeps its size on a phone.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

from markupsafe import Markup

from ...pages.text import readable
from ...schemas.text import counted
from .figure_model import Distribution, Heat, Ridges, Scatter, Spot, Spread
from .model import Plot
from .plots import (
    AXIS,
    GAP,
    LABEL,
    LEFT,
    axis_of,
    band_label,
    draw,
    framed,
    grid,
    legend_mark,
    right_text,
    series_of,
    shape_of,
    x_of,
)
from .ridges import draw_heat, draw_ridges, ridge_rows
from .showing import DASH, MINUS, interval_text, value_text

Figure: TypeAlias = Plot | Distribution | Scatter | Ridges | Heat
BAR, COLUMN = 18, 44
"""Heights in pixels: of a stacked bar, of the tallest column of a violin."""
TALL, TOP, FOOT = 320, 26, 44
"""Heights in pixels of a scatter plot: of its field, above it, below it."""
FIELD_LEFT, FIELD_WIDTH = 11.0, 86.0
"""Where the field of a scatter plot begins, and how wide it is, in percent."""
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
NOBODY = f"{DASH} nobody decided"
Row: TypeAlias = tuple[str, str, str, float | int]


def draw_figure(figure: Figure) -> Markup:
    """Return a figure as SVG, with its content as a description for those who cannot see it."""
    if isinstance(figure, Scatter):
        return _scatter(figure)
    if isinstance(figure, Distribution):
        return _stacked(figure) if figure.shape == "stacked" else _violin(figure)
    if isinstance(figure, Ridges):
        return draw_ridges(figure)
    return draw_heat(figure) if isinstance(figure, Heat) else draw(figure)


def legend_of(figure: Figure) -> list[tuple[Markup, str]]:
    """Return what a figure's marks stand for, in order."""
    if isinstance(figure, Scatter):
        return [(legend_mark(number), name) for number, name in enumerate(_series(figure))]
    if isinstance(figure, Ridges | Heat):
        return []  # each band has its name
    if not isinstance(figure, Distribution):
        return [(legend_mark(number), name) for number, name in enumerate(series_of(figure))]
    if figure.shape == "violin":
        return [(_square("c0 column"), "Share of judgements"), (_mean_mark(), "Mean and its interval")]
    return [
        (_square(f"d{_tone(number, figure)}"), f"{_signed(step)}: {label}")
        for number, (step, label) in enumerate(zip(figure.steps, figure.labels, strict=True))
    ]


def figure_rows(figure: Figure) -> Iterator[Row]:
    """Yield the numbers of a distribution or a scatter plot: group, series, measure and value."""
    if isinstance(figure, Distribution):
        for band in figure.bands:
            steps = zip(figure.steps, band.counts, strict=True)
            yield from ((band.label, f"{step:+d}", "judgements", count) for step, count in steps)
    elif isinstance(figure, Scatter):
        for spot in figure.spots:
            yield (spot.label, spot.series, "across", spot.across)
            yield (spot.label, spot.series, "up", spot.up)
    elif isinstance(figure, Ridges | Heat):
        yield from ridge_rows(figure)


def describe(figure: Distribution) -> str:
    """Return a distribution in words."""
    return " ".join(
        f"{readable(band.label)}: "
        + ", ".join(
            f"{_signed(step)} {_share(count, band)}"
            for step, count in zip(figure.steps, band.counts, strict=True)
        )
        + f"; mean {value_text(band.mean.value, 'plain')} {interval_text(band.mean, 'plain')}".rstrip()
        + f"; {_size(band)}."
        for band in figure.bands
    )


def _stacked(figure: Distribution) -> Markup:
    """Return bars of shares that diverge where the middle of the neutral step lies."""
    edges = [_edges(shares) for shares in _shares(figure)]
    low, high, step = axis_of([end for places in edges for end in (places[0], places[-1])])
    axis, parts, top = (low, high), list[Markup](), 4
    for band, places in zip(figure.bands, edges, strict=True):
        parts += [band_label(band.label, top), right_text(_size(band), top + 14)]
        y = top + LABEL
        for number, (count, sides) in enumerate(zip(band.counts, pairwise(places), strict=True)):
            if count:
                said = f"{_signed(figure.steps[number])}, {figure.labels[number]}: {_share(count, band)}"
                parts.append(_rectangle(f"d{_tone(number, figure)}", sides, axis, (y, BAR), said))
        if not sum(band.counts):
            parts.append(_note(NOBODY, y + 14))
        top += LABEL + BAR + GAP
    ticks = [
        (value, value_text(abs(value), "percent").removesuffix(".0"))
        for value in (low + number * step for number in range(round((high - low) / step) + 1))
    ]
    return framed(figure.name, figure.title, describe(figure), [grid(axis, ticks, top), *parts], top + AXIS)


def _violin(figure: Distribution) -> Markup:
    """Return a column per step, as high as its share, around the middle of each band; and the mean."""
    axis = (figure.steps[0] - 0.5, figure.steps[-1] + 0.5)
    peak = max((share for shares in _shares(figure) for share in shares), default=0.0) or 1.0
    parts, top = list[Markup](), 4
    for band, shares in zip(figure.bands, _shares(figure), strict=True):
        parts += [band_label(band.label, top), right_text(_size(band), top + 14)]
        middle = top + LABEL + COLUMN // 2
        for step, share, count in zip(figure.steps, shares, band.counts, strict=True):
            if share:
                tall = COLUMN * share / peak
                sides, hint = (step - 0.45, step + 0.45), f"{_signed(step)}: {_share(count, band)}"
                parts.append(_rectangle("c0 column", sides, axis, (middle - tall / 2, tall), hint))
        if band.mean.value is None:
            parts.append(_note(NOBODY, middle + 4))
        else:
            parts += [_mean(band, axis, middle), right_text(value_text(band.mean.value, "plain"), middle + 4)]
        top += LABEL + COLUMN + GAP
    ticks = [(float(step), _signed(step)) for step in figure.steps]
    return framed(figure.name, figure.title, describe(figure), [grid(axis, ticks, top), *parts], top + AXIS)


def _scatter(figure: Scatter) -> Markup:
    """Return points in a field; those at the same place are one mark, the larger the more they are."""
    names = _series(figure)
    parts = [*_field(figure)]
    for (series, across, up), count in _together(figure.spots).items():
        x, y = FIELD_LEFT + FIELD_WIDTH * across, TOP + TALL * (1 - up)
        position = f"{value_text(across, 'percent')} across, {value_text(up, 'percent')} up"
        parts.append(
            Markup(
                '<svg class="spot" x="{:.3f}%" y="{:.1f}" overflow="visible"><title>{}</title>'
                '<g transform="scale({:.2f})">{}</g></svg>'
            ).format(
                x, y, f"{readable(series)}: {position}, {counted(count, figure.noun)}", _scale(count),
                shape_of(names.index(series)),
            )
        )  # fmt: skip
    description = " ".join(_described(figure, name) for name in names)
    return framed(figure.name, figure.title, description, parts, TOP + TALL + FOOT, "plot scatter")


def _field(figure: Scatter) -> Iterator[Markup]:
    """Yield the axes of a scatter plot, in percent, and the line on which both are the same."""
    line = Markup('<line class="{}" x1="{:.3f}%" x2="{:.3f}%" y1="{}" y2="{}"/>')
    text = Markup('<text class="tick" x="{:.3f}%" y="{}" text-anchor="{}">{}</text>')
    right, floor = FIELD_LEFT + FIELD_WIDTH, TOP + TALL
    for share in QUARTERS:
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


def _together(spots: Iterable[Spot]) -> Counter[tuple[str, float, float]]:
    return Counter((spot.series, round(spot.across, 6), round(spot.up, 6)) for spot in spots)


def _scale(count: int) -> float:
    """Return how large a mark of several points is drawn: its area grows with them, up to sixteen."""
    return 0.8 * math.sqrt(min(count, 16))


def _series(figure: Scatter) -> list[str]:
    return list(dict.fromkeys(spot.series for spot in figure.spots))


def _described(figure: Scatter, name: str) -> str:
    own = [spot for spot in figure.spots if spot.series == name]
    across, up = (sum(values) / len(own) for values in ([s.across for s in own], [s.up for s in own]))
    return (
        f"{readable(name)}: {counted(len(own), figure.noun)}; on average {readable(figure.across)} "
        f"{value_text(across, 'percent')} %, {readable(figure.up)} {value_text(up, 'percent')} %."
    )


def _edges(shares: Sequence[float]) -> list[float]:
    """Return where bars side by side begin and end, with zero in the middle of the neutral one."""
    middle = len(shares) // 2
    return list(accumulate(shares, initial=-(sum(shares[:middle]) + shares[middle] / 2)))


def _shares(figure: Distribution) -> list[list[float]]:
    """Return the share of each step, by band; all zero where nobody decided."""
    return [[count / max(1, sum(band.counts)) for count in band.counts] for band in figure.bands]


def _share(count: int, band: Spread) -> str:
    return f"{value_text(count / max(1, sum(band.counts)), 'percent')} % ({count:,})"


def _size(band: Spread) -> str:
    return f"n = {sum(band.counts):,}"


def _signed(step: int) -> str:
    return f"{step:+d}".replace("-", MINUS) if step else "0"


def _tone(number: int, figure: Distribution) -> int:
    """Return which of the five tones a step has: 0 and 4 are the ends, 2 is neutral."""
    last = max(1, len(figure.steps) - 1)
    return round(4 * number / last)


def _rectangle(
    kind: str, sides: tuple[float, float], axis: tuple[float, float], rows: tuple[float, float], hint: str
) -> Markup:
    """Return a rectangle between two values of an axis; ``rows`` are its top and its height, in pixels."""
    left, right = (float(x_of(side, axis).removesuffix("%")) for side in sides)
    return Markup(
        '<rect class="{}" x="{:.3f}%" width="{:.3f}%" y="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
    ).format(kind, left, right - left, *rows, readable(hint))


def _mean(band: Spread, axis: tuple[float, float], y: int) -> Markup:
    """Return the mark of a mean with its interval."""
    mean, bar = band.mean, Markup("")
    assert mean.value is not None
    if mean.low is not None and mean.high is not None:
        bar = Markup('<line class="bar mean" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            x_of(mean.low, axis), x_of(mean.high, axis), y, y
        )
    return Markup(
        '{}<svg x="{}" y="{}" overflow="visible"><circle class="mean" r="4.5"/></svg>'
    ).format(bar, x_of(mean.value, axis), y)  # fmt: skip


def _note(text: str, y: int) -> Markup:
    return Markup('<text class="value" x="{}%" y="{}">{}</text>').format(LEFT, y, text)


def _square(kind: str) -> Markup:
    return Markup(
        '<svg width="16" height="16" aria-hidden="true" focusable="false">'
        '<rect class="{}" x="2" y="2" width="12" height="12"/></svg>'
    ).format(kind)


def _mean_mark() -> Markup:
    return Markup(
        '<svg width="16" height="16" aria-hidden="true" focusable="false">'
        '<circle class="mean" cx="8" cy="8" r="4.5"/></svg>'
    )

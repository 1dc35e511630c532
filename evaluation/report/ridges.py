"""Distributions one above the other, strips of values, and forests of differences, as inline SVG.

Positions are in percent and heights in pixels, as in :mod:`.plots`: text keeps its size on a phone.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from ...pages.text import readable
from .figure_model import Heat, HeatRow, Ridge, Ridges
from .model import Comparison, Plot, PlotPoint, SeenEpisode
from .plots import AXIS, GAP, LABEL, LEFT, WIDTH, band_label, framed, grid, right_text, x_of
from .showing import DASH, value_text

RIDGE, CELL = 46, 22
"""Heights in pixels: of the tallest column of a ridge, of a cell."""
TONES = 8
MOST_NUMBERED, MOST_BANDS = 12, 40
"""Most columns of a strip whose cells have their numbers in them; most differences of one plot."""


def ridges(values: dict[str, Sequence[float]], edges: Sequence[float]) -> tuple[Ridge, ...]:
    """Return how often values fall between edges; the last edge belongs to the values before it.

    Args:
        values: label -> values, within the first and the last edge.
        edges: ascending.
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


def draw_ridges(figure: Ridges) -> Markup:
    """Return ridges as SVG: an outline per thing, as high as its shares, with a mark at the median."""
    axis = (figure.edges[0], figure.edges[-1])
    shares = [[count / max(1, sum(ridge.counts)) for count in ridge.counts] for ridge in figure.ridges]
    peak = max((share for some in shares for share in some), default=0.0) or 1.0
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
        parts += [band_label(ridge.label, top), right_text(f"n = {sum(ridge.counts):,}", top + 14)]
        if ridge.middle is not None:
            x = x_of(ridge.middle, axis)
            parts.append(
                Markup('<line class="median" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                    x, x, floor - RIDGE, floor
                )
            )
            parts.append(right_text(value_text(ridge.middle, figure.unit), floor - 4))
        top += LABEL + RIDGE + GAP
    marks = [axis[0] + part * (axis[1] - axis[0]) / 4 for part in range(5)]
    ticks = [(mark, value_text(mark, figure.unit).removesuffix(".0")) for mark in marks]
    return framed(
        figure.name, figure.title, _ridges_described(figure), [grid(axis, ticks, top), *parts], top + AXIS
    )


def draw_heat(figure: Heat) -> Markup:
    """Return strips as SVG: a row of cells per thing; dashes where something is due and has no value."""
    count, parts, top = max(1, len(figure.columns)), list[Markup](), 4
    width = WIDTH / count
    for row in figure.rows:
        parts.append(band_label(row.label, top))
        known = [value for value in row.values if value is not None]
        if known:
            parts.append(right_text(value_text(sum(known) / len(known), figure.unit), top + LABEL + 15))
        for index, value in enumerate(row.values):
            parts.append(_cell(figure, row, index, value, (LEFT + width * index, width, top + LABEL)))
        top += LABEL + CELL + GAP // 2
    every = -(-count // MOST_NUMBERED)
    for index, name in enumerate(figure.columns):
        if index % every == 0:
            x = LEFT + width * (index + 0.5)
            text = Markup('<text class="tick" x="{:.2f}%" y="{}" text-anchor="middle">{}</text>')
            parts.append(text.format(x, top + 12, readable(name, 20)))
    return framed(figure.name, figure.title, _heat_described(figure), parts, top + AXIS)


def _cell(
    figure: Heat, row: HeatRow, index: int, value: float | None, at: tuple[float, float, int]
) -> Markup:
    left, width, top = at
    missing = row.missing[index] if index < len(row.missing) else ""
    if value is None and not missing:
        return Markup("")
    text = missing if value is None else value_text(value, figure.unit)
    kind = "due" if value is None else f"h{_tone(value, figure)}"
    cell = Markup(
        '<rect class="cell {}" x="{:.2f}%" width="{:.2f}%" y="{}" height="{}"><title>{}</title></rect>'
    ).format(kind, left, width, top, CELL, readable(f"{row.label}, {figure.columns[index]}: {text}"))
    if len(figure.columns) > MOST_NUMBERED:
        return cell
    shown = DASH if value is None else text
    label = Markup('<text class="inside" x="{:.2f}%" y="{}" text-anchor="middle">{}</text>')
    return cell + label.format(left + width / 2, top + 15, shown)


def figure_table(figure: object) -> tuple[list[str], list[list[str]]] | None:
    """Return the numbers of ridges or strips as headings and rows; None of a figure that has them beside."""
    if isinstance(figure, Ridges):
        edges = [value_text(edge, figure.unit) for edge in figure.edges]
        steps = [f"{low} to {high}" for low, high in pairwise(edges)]
        rows = [
            ["Values", *(f"{sum(ridge.counts):,}" for ridge in figure.ridges)],
            ["Median", *(value_text(ridge.middle, figure.unit) for ridge in figure.ridges)],
            *(
                [step, *(f"{ridge.counts[index]:,}" for ridge in figure.ridges)]
                for index, step in enumerate(steps)
            ),
        ]
        return ["Step", *(ridge.label for ridge in figure.ridges)], rows
    if isinstance(figure, Heat):
        rows = [
            [row.label, *(_text_of(figure, row, index) for index in range(len(row.values)))]
            for row in figure.rows
        ]
        return [figure.heading, *figure.columns], rows
    return None


def _text_of(figure: Heat, row: HeatRow, index: int) -> str:
    value = row.values[index]
    if value is not None:
        return value_text(value, figure.unit)
    return row.missing[index] if index < len(row.missing) else ""


def strip_of(episode: SeenEpisode, number: int) -> Heat:
    """Return how an episode's entities look shot by shot: their fidelity, or why they have none."""
    return Heat(
        name=f"strip-{number}", title="Fidelity, shot by shot", unit="number", heading="Entity",
        note="A cell is a shot that schedules the entity, the darker the more it looks as described; a dash "
        "has no value. At the right the mean of the cells.",
        columns=tuple(shot.shot for shot in episode.shots),
        rows=tuple(
            HeatRow(
                label=entity.name,
                values=tuple(None if cell is None else cell.fidelity for cell in entity.cells),
                missing=tuple("" if cell is None else cell.status for cell in entity.cells),
            )
            for entity in episode.entities
        ),
    )  # fmt: skip


def forests(comparisons: Sequence[Comparison]) -> list[Plot]:
    """Return plots of the differences that a page lists, with their intervals: one for each unit."""
    units: dict[str, list[Comparison]] = {}
    for pair in comparisons:
        if pair.shown and pair.difference.value is not None:
            units.setdefault(pair.unit, []).append(pair)
    return [_forest(some[:MOST_BANDS], number, len(some)) for number, some in enumerate(units.values(), 1)]


def _forest(pairs: Sequence[Comparison], number: int, total: int) -> Plot:
    groups: dict[str, list[PlotPoint]] = {}
    names = {(pair.first, pair.second): f"{pair.first} \N{MINUS SIGN} {pair.second}" for pair in pairs}
    several = len(names) > 1
    by_pair = len({pair.measure for pair in pairs}) < len(names)  # colours are few
    for pair in pairs:
        name = names[pair.first, pair.second]
        band, series = (name, pair.measure) if by_pair else (pair.measure, name)
        groups.setdefault(band, []).append(PlotPoint(series=series, score=pair.difference))
    whose = "" if several else f" {pairs[0].first} minus {pairs[0].second}."
    more = total > len(pairs)
    left_out = f" The first {len(pairs)} of {total:,} are drawn; the table has all." if more else ""
    return Plot(
        name=f"differences-{number}", title="Differences with their intervals", unit=pairs[0].unit,
        note=f"The first method minus the second, with paired 95 % intervals; zero is no difference.{whose}"
        f"{left_out}",
        groups={band: tuple(points) for band, points in groups.items()},
    )  # fmt: skip


def ridge_rows(figure: Ridges | Heat) -> Iterator[tuple[str, str, str, float | int]]:
    """Yield the numbers of ridges or strips: group, series, measure and value."""
    if isinstance(figure, Ridges):
        for ridge in figure.ridges:
            for edge, count in zip(figure.edges, ridge.counts, strict=False):
                yield (ridge.label, f"from {edge:g}", "values", count)
    else:
        for row in figure.rows:
            for name, value in zip(figure.columns, row.values, strict=True):
                if value is not None:
                    yield (row.label, name, "value", value)


def _tone(value: float, figure: Heat) -> int:
    share = (value - figure.low) / ((figure.high - figure.low) or 1.0)
    return min(TONES - 1, max(0, int(share * TONES)))


def _ridges_described(figure: Ridges) -> str:
    return " ".join(
        f"{readable(ridge.label)}: {sum(ridge.counts):,} values, median "
        f"{value_text(ridge.middle, figure.unit)}."
        for ridge in figure.ridges
    )


def _heat_described(figure: Heat) -> str:
    return " ".join(
        f"{readable(row.label)}: "
        + ", ".join(
            f"{readable(name, 20)} {_text_of(figure, row, index)}"
            for index, name in enumerate(figure.columns) if _text_of(figure, row, index)
        ) + "."
        for row in figure.rows
    )  # fmt: skip

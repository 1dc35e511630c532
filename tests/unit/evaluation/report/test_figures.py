"""Figures of what people said: right in place, well-formed, and described in words."""

import re
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError

from fabula.evaluation.report.figure_model import Distribution, Scatter, Spot, Spread
from fabula.evaluation.report.figures import describe, draw_figure, figure_rows, legend_of
from fabula.evaluation.report.model import Plot
from fabula.schemas.values import Score
from fabula.testing.report_documents import HOSTILE, made_report, undefined

STEPS = (-2, -1, 0, 1, 2)
MEAN = Score(value=0.5, status="ok", low=0.0, high=1.0)
MINUS = "\N{MINUS SIGN}"


def distribution(shape: str, *counts: tuple[int, ...]) -> Distribution:
    bands = tuple(
        Spread(label=f"Q1{n}", counts=some, mean=MEAN if sum(some) else undefined())
        for n, some in enumerate(counts)
    )
    return distribution_of(shape, bands)


def distribution_of(
    shape: str, bands: tuple[Spread, ...], texts: tuple[str, ...] = tuple("abcdef")
) -> Distribution:
    given = {
        "name": "d",
        "title": texts[0],
        "shape": shape,
        "steps": STEPS,
        "labels": texts[:5],
        "bands": bands,
    }
    return Distribution.model_validate(given)


def rectangles(text: str) -> list[tuple[str, float, float, float, float]]:
    """Return class, x and width in percent, y and height in pixels."""
    found = re.findall(
        r'<rect class="([^"]*)" x="([\d.-]+)%" width="([\d.]+)%" y="([\d.]+)" height="([\d.]+)"', text
    )
    return [(kind, *(float(number) for number in numbers)) for kind, *numbers in found]


def test_stacked_bars_when_drawn_diverge_at_the_middle_of_the_neutral_step() -> None:
    # Shares 10, 20, 40, 20, 10 %: half of 40 lies on either side, so that the bar goes from -50 to 50 %.
    text = str(draw_figure(distribution("stacked", (1, 2, 4, 2, 1))))
    drawn = rectangles(text)
    assert [kind for kind, *_ in drawn] == ["d0", "d1", "d2", "d3", "d4"]
    # The axis goes from -0.6 to 0.6 (a mark each 0.2), over 78 % of the width, from 3 % on.
    scale, left = 78 / 1.2, 3 + 78 / 2
    assert [width for _, _, width, *_ in drawn] == pytest.approx(
        [scale * s for s in (0.1, 0.2, 0.4, 0.2, 0.1)]
    )
    assert [x for _, x, *_ in drawn] == pytest.approx(
        [left + scale * edge for edge in (-0.5, -0.4, -0.2, 0.2, 0.4)], abs=0.001
    )
    assert re.findall(r'text-anchor="middle">([^<]*)<', text) == ["60", "40", "20", "0", "20", "40", "60"]
    assert "n = 10" in text


def test_stacked_bars_when_all_are_of_one_side_begin_at_zero() -> None:
    drawn = rectangles(str(draw_figure(distribution("stacked", (0, 0, 0, 1, 3)))))
    # The axis goes from 0 to 1: no step is drawn that nobody chose.
    assert [(kind, x, width) for kind, x, width, *_ in drawn] == [("d3", 3.0, 19.5), ("d4", 22.5, 58.5)]


def test_violin_when_drawn_has_a_column_per_step_as_high_as_its_share() -> None:
    text = str(draw_figure(distribution("violin", (1, 0, 4, 2, 1), (0, 0, 8, 0, 0))))
    first, second = rectangles(text)[:4], rectangles(text)[4:]
    # The tallest share of all bands, 8 of 8, is 44 pixels high; columns stand around the middle of the band.
    assert [height for *_, height in first] == pytest.approx([44 / 8, 44 / 2, 44 / 4, 44 / 8], abs=0.06)
    assert [height for *_, height in second] == [44.0]
    middles = {round(y + height / 2, 1) for *_, y, height in first}
    assert middles == {4 + 20 + 22}
    # -2 stands at 0.5 of 5 steps: its column goes from 0.05 to 0.95 steps.
    assert first[0][1:3] == pytest.approx((3 + 78 * 0.05 / 5, 78 * 0.9 / 5))
    bar = re.search(r'class="bar mean" x1="([\d.]+)%" x2="([\d.]+)%"', text)
    assert bar is not None
    assert [float(end) for end in bar.groups()] == pytest.approx([3 + 78 * 2.5 / 5, 3 + 78 * 3.5 / 5])


@pytest.mark.parametrize("shape", ["stacked", "violin"])
def test_distribution_when_nobody_decided_says_so_and_keeps_the_others(shape: str) -> None:
    text = str(draw_figure(distribution(shape, (0, 0, 0, 0, 0), (1, 0, 0, 0, 0))))
    assert "nobody decided" in text and "n = 0" in text
    assert len(rectangles(text)) == 1
    ElementTree.fromstring(str(draw_figure(distribution(shape))))


def test_distribution_when_described_has_every_share_count_and_mean() -> None:
    assert describe(distribution("violin", (1, 0, 2, 0, 1))) == (
        f"Q10: {MINUS}2 25.0 % (1), {MINUS}1 0.0 % (0), 0 50.0 % (2), +1 0.0 % (0), +2 25.0 % (1); "
        "mean 0.50 [0.00, 1.00]; n = 4."
    )


def test_distribution_when_a_band_lacks_a_step_is_refused() -> None:
    with pytest.raises(ValidationError, match="every band has a count"):
        distribution("violin", (1, 2))


def scatter(*spots: tuple[str, float, float]) -> Scatter:
    return Scatter(
        name="s", title="T", across="People", up="Judge", noun="storyboard",
        spots=tuple(
            Spot(label=f"s{n}", series=series, across=x, up=y) for n, (series, x, y) in enumerate(spots)
        ),
    )  # fmt: skip


def test_scatter_when_drawn_places_points_and_joins_those_at_one_place() -> None:
    figure = scatter(("m", 0.0, 0.0), ("m", 0.5, 1.0), ("m", 0.5, 1.0), ("n", 1.0, 0.25))
    text = str(draw_figure(figure))
    marks = re.findall(
        r'<svg class="spot" x="([\d.]+)%" y="([\d.]+)".*?<title>(.*?)</title><g transform="scale\(([\d.]+)\)',
        text,
    )
    # The field is 86 % wide from 11 % on, and 320 pixels high from 26 on.
    assert [(float(x), float(y)) for x, y, *_ in marks] == [(11, 346), (54, 26), (97, 266)]
    assert [float(scale) for *_, scale in marks] == pytest.approx([0.8, 0.8 * 2**0.5, 0.8], abs=0.005)
    assert marks[1][2] == "m: 50.0 across, 100.0 up, 2 storyboards"
    assert [name for _, name in legend_of(figure)] == ["m", "n"]
    assert "n: 1 storyboard; on average People 100.0 %, Judge 25.0 %." in text
    assert list(figure_rows(figure))[:2] == [("s0", "m", "across", 0.0), ("s0", "m", "up", 0.0)]


@pytest.mark.parametrize("place", [(-0.1, 0.5), (0.5, 1.5), (float("nan"), 0.5)])
def test_scatter_when_a_point_is_no_share_is_refused(place: tuple[float, float]) -> None:
    with pytest.raises(ValidationError):
        scatter(("m", *place))


def test_figures_when_names_are_hostile_are_well_formed_and_labelled() -> None:
    bands = tuple(Spread(label=text, counts=(1, 1, 1, 1, 1), mean=MEAN) for text in HOSTILE)
    figures = [
        *(
            distribution_of(shape, bands, HOSTILE)
            for shape in ("stacked", "violin")
        ),
        scatter(*((text, 0.5, 0.5) for text in HOSTILE)),
    ]  # fmt: skip
    for figure in figures:
        root = ElementTree.fromstring(str(draw_figure(figure)))
        title, description = root.find("title"), root.find("desc")
        assert title is not None and description is not None and description.text
        assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], description.attrib["id"]]
        assert not list(root.iter("script")) and not list(root.iter("img"))
        assert legend_of(figure)


def test_figure_when_it_is_a_plot_is_drawn_as_one() -> None:
    plot = made_report().plots[0]
    assert isinstance(plot, Plot)
    assert 'class="plot"' in str(draw_figure(plot)) and list(figure_rows(plot)) == []

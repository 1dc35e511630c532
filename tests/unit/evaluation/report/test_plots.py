"""Plots as SVG: valid, described, and right in place."""

import re
from xml.etree import ElementTree

import pytest

from fabula.evaluation.report.model import Plot, PlotPoint
from fabula.evaluation.report.plots import described, draw, series_of
from fabula.schemas.values import Score
from fabula.testing.report_documents import HOSTILE, made_report, score, undefined


def plot(*values: float, **given) -> Plot:
    points = tuple(PlotPoint(series=f"m{n}", score=score(value)) for n, value in enumerate(values))
    return Plot(name="p", title="Gap", unit="points", groups={"Causal": points}, **given)


def test_plot_when_drawn_is_well_formed_and_names_its_text_alternative() -> None:
    for one in made_report().plots:
        root = ElementTree.fromstring(str(draw(one)))
        title, description = root.find("title"), root.find("desc")
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], description.attrib["id"]]
        assert description.text == described(one)


def test_plot_when_described_has_every_value_with_its_interval() -> None:
    assert described(plot(0.2, -0.1)) == (
        "Causal: m0 +20.0 [+17.0, +23.0]; m1 \N{MINUS SIGN}10.0 [\N{MINUS SIGN}13.0, \N{MINUS SIGN}7.0]."
    )


def test_plot_when_values_differ_places_them_on_the_axis() -> None:
    # The axis goes from -0.2 to 0.4 (a mark each 0.1), 78 % of the width, from 3 % on.
    text = str(draw(plot(0.37, -0.17)))
    places = [float(x) for x in re.findall(r'<svg x="([\d.]+)%"', text)]
    assert places == pytest.approx([3 + 78 * 0.57 / 0.6, 3 + 78 * 0.03 / 0.6], abs=0.001)


def test_plot_when_a_curve_shades_the_intervals_of_each_series_from_band_to_band() -> None:
    groups = {"1-2": (0.5, 0.1), "3-5": (0.3, 0.2), "6-10": (None, 0.3)}
    bands = {
        label: tuple(
            PlotPoint(series=name, score=undefined() if value is None else score(value))
            for name, value in zip(("a", "b"), values, strict=True)
        )
        for label, values in groups.items()
    }
    text = str(draw(Plot(name="p", title="T", unit="number", curve=True, groups=bands)))
    ElementTree.fromstring(text)
    # The axis goes from 0 to 0.6; bands are 52 pixels high, their points 30 below the top, which is at 4.
    areas = re.findall(r'class="area c(\d)" points="([^"]*)"', text)
    assert areas[0] == ("0", "78.333,34 45.000,86 55.000,86 88.333,34"), "low ends down, high ends up"
    lines = dict(re.findall(r'class="course c(\d)" points="([^"]*)"', text))
    assert lines == {"0": "83.333,34 50.000,86", "1": "16.667,34 33.333,86 50.000,138"}


def test_plot_when_a_score_is_undefined_says_so_and_keeps_the_others() -> None:
    points = (PlotPoint(series="a", score=undefined()), PlotPoint(series="b", score=score(0.3)))
    text = str(draw(Plot(name="p", title="T", groups={"g": points})))
    assert "undefined" in text and "30.0" in text


@pytest.mark.parametrize("joined", [True, False])
def test_plot_when_nothing_is_known_is_drawn_all_the_same(joined) -> None:
    nothing = Plot(
        name="p", title="T", joined=joined, groups={"g": (PlotPoint(series="a", score=undefined()),)}
    )
    ElementTree.fromstring(str(draw(nothing)))
    ElementTree.fromstring(str(draw(Plot(name="p", title="T", groups={}))))


def test_plot_when_names_are_hostile_is_well_formed() -> None:
    points = tuple(PlotPoint(series=text, score=Score(value=0.1, status="ok")) for text in HOSTILE)
    root = ElementTree.fromstring(
        str(draw(Plot(name="p", title=HOSTILE[0], groups=dict.fromkeys(HOSTILE, points))))
    )
    assert not list(root.iter("script")) and not list(root.iter("img"))


def test_series_when_listed_are_in_order_of_appearance() -> None:
    assert series_of(plot(0.1, 0.2)) == ("m0", "m1")
    assert series_of(plot(0.1, 0.2, series=("m1", "none"))) == ("m1", "none", "m0")

"""Figures as SVG: right in place, well-formed, and described in words."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError

from fabula.errors import TargetError
from fabula.pages.figures import (
    Figure,
    Heat,
    HeatRow,
    Plot,
    PlotPoint,
    Ridges,
    Scatter,
    Spot,
    draw_figure,
    figure_rows,
    figure_table,
    legend_of,
    ridges,
)
from fabula.pages.grid import (
    DASH,
    axis_title,
    count_text,
    effect_text,
    interval_text,
    label_text,
    p_text,
    value_text,
)
from fabula.pages.page import drawn_figure, readable
from fabula.schemas.values import Score
from fabula.testing.report_documents import HOSTILE, score, undefined

MINUS = "\N{MINUS SIGN}"


def plot(*values: float | None, names: tuple[str, ...] = ("m0", "m1"), title: str = "Gap") -> Plot:
    points = tuple(
        PlotPoint(series=name, score=undefined() if value is None else score(value))
        for name, value in zip(names, values, strict=False)
    )
    return Plot(name="p", title=title, unit="points", groups={"Causal": points})


def scatter(*spots: tuple[str, float, float]) -> Scatter:
    return Scatter(
        name="s", title="T", across="People", up="Judge", noun="storyboard",
        spots=tuple(
            Spot(label=f"s{n}", series=series, across=x, up=y) for n, (series, x, y) in enumerate(spots)
        ),
    )  # fmt: skip


def heat(*rows: tuple[float | None, ...], names: tuple[str, ...] = ("a", "b")) -> Heat:
    return Heat(
        name="h", title="T", unit="number", heading="Method", columns=("1", "2"),
        rows=tuple(
            HeatRow(label=name, values=values, missing=("none",))
            for name, values in zip(names, rows, strict=True)
        ),
    )  # fmt: skip


def in_elements(figure: Figure) -> str:
    """Return a drawn figure with its legend, an element a line."""
    legend = [f"{mark} {name}" for mark, name in legend_of(figure)]
    return "\n".join([str(draw_figure(figure)), *legend]).replace("><", ">\n<")


def spread(values: dict[str, Any], edges: tuple[float, ...], unit: Any = "number") -> Ridges:
    return Ridges(name="r", title="T", unit=unit, edges=edges, ridges=ridges(values, edges))


def test_plot_when_drawn_places_values_and_describes_them_with_their_intervals(snapshot) -> None:
    # The axis goes from -0.2 to 0.4 (a mark each 0.1), 78 % of the width, from 3 % on.
    drawn = plot(0.37, -0.17)
    text = str(draw_figure(drawn))
    places = [float(x) for x in re.findall(r'<svg x="([\d.]+)%"', text)]
    assert places == pytest.approx([3 + 78 * 0.57 / 0.6, 3 + 78 * 0.03 / 0.6], abs=0.001)
    assert f"Causal: m0 +37.0 [+34.0, +40.0]; m1 {MINUS}17.0 [{MINUS}20.0, {MINUS}14.0]." in text
    assert [name for _, name in legend_of(drawn)] == ["m0", "m1"]
    assert figure_table(drawn) is None and list(figure_rows(drawn)) == []
    assert in_elements(drawn) == snapshot


def test_plot_when_a_score_is_undefined_says_so_and_keeps_the_others(snapshot) -> None:
    text = str(draw_figure(plot(None, 0.3)))
    assert "undefined" in text and "+30.0" in text
    two = plot(0.01, None)
    bands = {**two.groups, "Temporal": two.groups["Causal"][:1]}
    assert in_elements(two.model_copy(update={"groups": bands, "unit": "usd", "axis": "a" * 61})) == snapshot
    ElementTree.fromstring(str(draw_figure(plot(None))))
    ElementTree.fromstring(str(draw_figure(Plot(name="p", title="T", groups={}))))


def test_ridges_when_made_count_the_values_between_edges_and_draw_their_shares(snapshot) -> None:
    figure = spread({"a": (0.0, 0.4, 0.5, 1.0), "b": (0.1,), "c": ()}, (0.0, 0.5, 1.0))
    assert [ridge.counts for ridge in figure.ridges] == [(2, 2), (1, 0), (0, 0)]  # 1.0 belongs to the last
    assert [ridge.middle for ridge in figure.ridges] == [0.45, 0.1, None]
    text = str(draw_figure(figure))
    # The highest share, all of b, is 46 pixels high: half of a is 23 pixels below the top.
    assert re.findall(r'points="([^"]*)"', text)[:2] == [
        "0,46 0.00,23.0 50.00,23.0 50.00,23.0 100.00,23.0 100,46",
        "0,46 0.00,0.0 50.00,0.0 50.00,46.0 100.00,46.0 100,46",
    ]
    assert "a: 4 values, median 0.450. b: 1 value, median 0.100." in text
    table = figure_table(figure)
    assert table is not None and table[1][2] == ["0.000 to 0.500", "2", "1", "0"]
    assert next(iter(figure_rows(figure))) == ("a", "from 0", "values", 2)
    assert in_elements(figure) == snapshot


def test_ridges_when_values_are_whole_numbers_have_a_step_for_each(snapshot) -> None:
    figure = spread({"a": (1, 1, 2, 3)}, (1, 2, 3, 4), "count")
    text = str(draw_figure(figure))
    # Three steps of 26 % from 3 % on: a number stands in the middle of its step, and so does a median.
    assert re.findall(r'class="tick" x="([\d.]+)%"[^>]*>(\d)<', text) == [
        ("16.000", "1"), ("42.000", "2"), ("68.000", "3")
    ]  # fmt: skip
    assert 'class="median" x1="29.000%"' in text and ">1.5<" in text
    table = figure_table(figure)
    assert table is not None and table[1][2:] == [["1", "2"], ["2", "1"], ["3", "1"]]
    assert in_elements(figure) == snapshot


def test_strip_when_drawn_has_darker_cells_for_higher_values_and_says_what_is_missing(snapshot) -> None:
    figure = heat((0.1, 0.95), (None, 0.5))
    text = str(draw_figure(figure))
    # Eight tones from 0 to 1: 0.1 is of the first, 0.95 of the last, 0.5 of the fifth.
    assert re.findall(r'class="cell (\w+)"', text) == ["h0", "h7", "due", "h4"]
    assert "a: 1 0.100, 2 0.950. b: 1 none, 2 0.500." in text
    assert figure_table(figure) == (["Method", "1", "2"], [["a", "0.100", "0.950"], ["b", "none", "0.500"]])
    assert list(figure_rows(figure))[-1] == ("b", "2", "value", 0.5)
    assert in_elements(figure) == snapshot


def test_scatter_when_drawn_places_points_and_joins_those_at_one_place(snapshot) -> None:
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
    assert "n: 1 storyboard; on average People 100.0 %, Judge 25.0 %." in text
    assert list(figure_rows(figure))[:2] == [("s0", "m", "across", 0.0), ("s0", "m", "up", 0.0)]
    assert in_elements(figure) == snapshot


def test_axis_when_drawn_on_a_page_has_its_title_with_the_unit() -> None:
    titled = plot(0.3).model_copy(update={"axis": "STG, <text> minus images"})
    assert ">STG, &lt;text&gt; minus images, percentage points</text>" in str(draw_figure(titled))
    assert axis_title("", "number") == "value"
    assert "axis" not in titled.model_dump(mode="json"), "reports as data stay as they are"


@pytest.mark.slow  # matplotlib is imported
@pytest.mark.parametrize(("ending", "head"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_figure_when_saved_for_a_paper_is_what_its_ending_says_and_the_same_each_time(tmp_path, ending, head):
    pytest.importorskip("matplotlib")
    figure = plot(0.37, None)
    first, second = (figure.save(tmp_path / name / f"f{ending}") for name in ("a", "b"))
    assert first.read_bytes().startswith(head) and first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["f.html", "f.jpg", "f"])
def test_figure_when_its_ending_cannot_be_written_is_refused_with_those_that_can(tmp_path, name):
    with pytest.raises(TargetError, match=r"\.png, \.svg or \.pdf"):
        plot(0.1).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_figure_when_drawn_for_a_paper_has_values_intervals_and_axis_titles() -> None:
    pytest.importorskip("matplotlib")
    axes = drawn_figure(plot(0.37, -0.17), 6.4).axes[0]
    # score() gives an interval of three points to both sides
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in "os"]
    assert marks == pytest.approx([37, -17])
    ends = [segment[:, 0].tolist() for one in axes.collections for segment in one.get_segments()]
    assert ends == [pytest.approx([34, 40]), pytest.approx([-20, -14])]
    assert axes.get_xlabel() == "percentage points" and axes.get_title(loc="left") == "Gap"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["Causal"]
    cells = drawn_figure(heat((0.1, 0.95), (None, 0.5)), 6.4).axes[0]
    assert [text.get_text() for text in cells.texts] == ["0.100", "0.950", DASH, "0.500"]
    points = drawn_figure(scatter(("m", 0.0, 0.5), ("n", 1.0, 0.25)), 6.4).axes[0]
    assert [one.get_offsets().tolist() for one in points.collections] == [[[0, 50]], [[100, 25]]]
    assert (points.get_xlabel(), points.get_ylabel()) == ("People, %", "Judge, %")


def test_figures_when_their_data_do_not_fit_are_refused() -> None:
    for place in ((-0.1, 0.5), (0.5, 1.5), (float("nan"), 0.5)):
        with pytest.raises(ValidationError):
            scatter(("m", *place))
    with pytest.raises(ValidationError, match="a count between two edges"):
        Ridges(name="r", title="T", unit="number", edges=(0, 1), ridges=ridges({"a": (1,)}, (0, 1, 2)))


FIGURES: tuple[Figure, ...] = (
    plot(*(0.1 for _ in HOSTILE), names=HOSTILE, title=HOSTILE[0]),
    scatter(*((text, 0.5, 0.5) for text in HOSTILE)),
    heat(*((0.5, None) for _ in HOSTILE), names=HOSTILE),
    spread(dict.fromkeys(HOSTILE, (0.5,)), (0.0, 1.0)),
)


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_figures_when_names_are_hostile_can_be_saved(figure: Figure, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert figure.save(tmp_path / "f.svg").stat().st_size > 5_000


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_figures_when_names_are_hostile_are_well_formed_and_labelled(figure: Figure) -> None:
    root = ElementTree.fromstring(str(draw_figure(figure)))
    title, description = root.find("title"), root.find("desc")
    assert title is not None and description is not None and description.text
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], description.attrib["id"]]
    assert not list(root.iter("script")) and not list(root.iter("img"))


# -- Numbers, and texts of others, as tables and pages print them


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.4321, "percent", "43.2"),
        (0.12, "points", "+12.0"),
        (-0.12, "points", "\N{MINUS SIGN}12.0"),
        (-0.00001, "points", "0.0"),
        (0.0, "points", "0.0"),
        (-0.5, "number", "\N{MINUS SIGN}0.500"),
        (1234.5, "usd", "$1,234.50"),
        (0.0012, "usd", "$0.0012"),
        (1234.0, "count", "1,234"),
        (None, "percent", "\N{EN DASH}"),
    ],
)
def test_value_when_printed_has_its_unit(value, unit, text) -> None:
    assert value_text(value, unit) == text


def test_interval_when_an_end_is_missing_is_empty() -> None:
    assert interval_text(Score(value=0.5, status="ok", low=0.4), "percent") == ""
    assert interval_text(Score(value=0.5, status="ok", low=0.4, high=0.6), "percent") == "[40.0, 60.0]"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain\ntext\t", "plain\ntext\t"),
        ("a\u202eb", "a[U+202E]b"),
        ("a\u2066b\u2069", "a[U+2066]b[U+2069]"),
        ("nul\x00 esc\x1b c1\x9b", "nul[U+0000] esc[U+001B] c1[U+009B]"),
        ("lone \ud800", "lone [U+D800]"),
        ("family \U0001f468\u200d\U0001f469, \u05e9\u05dc\u05d5\u05dd\u200f", None),
    ],
)
def test_text_when_it_could_mislead_shows_the_code_points(given, shown) -> None:
    assert readable(given) == (given if shown is None else shown)
    readable(given).encode("utf-8")


def test_text_when_long_is_cut_and_says_so() -> None:
    assert readable("x" * 700) == "x" * 600 + "\N{HORIZONTAL ELLIPSIS} (700 characters in all)"
    assert readable("x" * 700, None) == "x" * 700


def test_counts_and_tests_when_printed_are_short() -> None:
    assert [count_text(one) for one in (12345, 0.25, 3.0, -2, None, "yes")] == [
        "12,345", "0.25", "3", "\N{MINUS SIGN}2", "\N{EN DASH}", "yes"
    ]  # fmt: skip
    assert [p_text(one) for one in (0.00001, 0.05, None)] == ["< 0.001", "0.050", "\N{EN DASH}"]
    assert effect_text(-0.614) == "\N{MINUS SIGN}0.61"
    assert label_text("temporal_order") == "Temporal order"

"""Numbers, and texts of others, as tables and pages print them."""

import pytest

from fabula.pages.grid import count_text, effect_text, interval_text, label_text, p_text, value_text
from fabula.pages.page import readable
from fabula.schemas.values import Score


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

"""JSON paths with names in quotes: parse and write are inverse; simple paths are among them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.schemas.paths import parse_quoted, quoted_path, value_at, with_value

STEPS = st.lists(st.text(max_size=9) | st.integers(0, 10**6), max_size=5)
DOCUMENT = {"Shots": [{"Setting Description": {"en": "A hill", "ch": None}}], "Old Tom's": 1}


@given(STEPS)
def test_parse_when_a_path_was_written_returns_the_steps(steps: list[str | int]) -> None:
    assert parse_quoted(quoted_path(steps)) == tuple(steps)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$", ()),
        ("$.scenes[2].action", ("scenes", 2, "action")),
        ("$.Shots[0]['Setting Description'].en", ("Shots", 0, "Setting Description", "en")),
        ('$.Shots[0]["Setting Description"].en', ("Shots", 0, "Setting Description", "en")),
        ('$.Characters["Tom\'s \\u00e9"]', ("Characters", "Tom's é")),
    ],
)
def test_parse_when_names_stand_in_quotes_takes_either_kind(path: str, steps: tuple[Any, ...]) -> None:
    assert parse_quoted(path) == steps


@pytest.mark.parametrize(
    "path", ["", "a", "$['a", '$["a\\x"]', "$[a b]", "$['a']b", "$.a b", "$[-1]", "$..a"]
)
def test_parse_when_text_is_no_path_says_from_where_on(path: str) -> None:
    with pytest.raises(ValueError, match="JSON path"):
        parse_quoted(path)


def test_value_when_it_is_there_is_returned_and_replaced_in_a_copy() -> None:
    steps = parse_quoted("$.Shots[0]['Setting Description'].ch")
    assert value_at(DOCUMENT, steps) is None
    assert value_at(with_value(DOCUMENT, steps, "山"), steps) == "山"
    assert value_at(DOCUMENT, steps) is None


@pytest.mark.parametrize(
    "path", ["$.Shots[1]", "$.Shots.en", "$[0]", "$.Shots[0]['Setting']", "$['Old Tom']"]
)
def test_value_when_nothing_is_there_is_an_error_that_names_the_path(path: str) -> None:
    with pytest.raises(LookupError, match="nothing at"):
        value_at(DOCUMENT, parse_quoted(path))

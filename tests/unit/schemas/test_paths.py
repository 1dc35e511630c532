"""JSON paths: parse and format are inverse; reading and replacing say when nothing is there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.schemas.paths import format_path, get_at, parse_path, replace_at

DOCUMENT = {"scenes": [{"action": "runs"}, {"action": None}], "title": "x"}
STEPS = st.lists(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.integers(0, 10**6), max_size=6
)


@given(STEPS)
def test_parse_path_when_path_was_formatted_returns_the_steps(steps: list[str | int]) -> None:
    assert parse_path(format_path(steps)) == tuple(steps)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "scenes",
        "$scenes",
        "$.",
        "$[x]",
        "$[-1]",
        "$.a b",
        "$..a",
        "$[0",
        "$.a[*]",
        "$.9",
        "$.a\n",
        "$[\u0661]",
    ],
)
def test_parse_path_when_text_is_no_path_says_from_where_on(path: str) -> None:
    with pytest.raises(ValueError, match="JSON path"):
        parse_path(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [("$", DOCUMENT), ("$.title", "x"), ("$.scenes[1].action", None), ("$.scenes[0]", {"action": "runs"})],
)
def test_get_at_when_something_is_there_returns_it(path: str, value: Any) -> None:
    assert get_at(DOCUMENT, path) == value


@pytest.mark.parametrize(
    "path", ["$.name", "$.scenes[2]", "$.scenes.action", "$[0]", "$.title[0]", "$.title.x"]
)
def test_access_when_nothing_is_there_raises_lookup_error(path: str) -> None:
    with pytest.raises(LookupError, match="nothing at"):
        get_at(DOCUMENT, path)
    with pytest.raises(LookupError, match="nothing at"):
        replace_at(DOCUMENT, path, 1)


def test_replace_at_when_path_exists_changes_the_copy_and_not_the_original() -> None:
    changed = replace_at(DOCUMENT, "$.scenes[1].action", "hides")
    assert changed == {"scenes": [{"action": "runs"}, {"action": "hides"}], "title": "x"}
    assert DOCUMENT["scenes"][1] == {"action": None}
    assert changed["scenes"][0] is DOCUMENT["scenes"][0]
    assert replace_at(DOCUMENT, "$", 1) == 1

"""JSON paths: parse and format are inverse; reading and replacing say when nothing is there."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.schemas.paths import (
    format_path,
    get_at,
    parse_path,
    parse_quoted,
    quoted_path,
    replace_at,
    value_at,
    with_value,
)
from fabula.schemas.plain_files import below, by_name, composed
from fabula.schemas.text import is_language_tag, is_part_id, is_story_id, primary_language

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


# JSON paths with names in quotes: parse and write are inverse; simple paths are among them.

QUOTED_STEPS = st.lists(st.text(max_size=9) | st.integers(0, 10**6), max_size=5)
QUOTED_DOCUMENT = {"Shots": [{"Setting Description": {"en": "A hill", "ch": None}}], "Old Tom's": 1}


@given(QUOTED_STEPS)
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
    assert value_at(QUOTED_DOCUMENT, steps) is None
    assert value_at(with_value(QUOTED_DOCUMENT, steps, "山"), steps) == "山"
    assert value_at(QUOTED_DOCUMENT, steps) is None


# What may be an id or a language tag.


@pytest.mark.parametrize("text", ["a", "kb25k_0001", "7-dwarfs", "A" * 64])
def test_story_id_when_plain_and_short_is_one(text: str) -> None:
    assert is_story_id(text) and is_part_id(text)


@pytest.mark.parametrize("text", ["", "_a", "-a", "a.b", "a/b", "..", "a b", "a\n", "\u00e9", "a\u0661"])
def test_id_when_it_could_not_be_a_file_name_everywhere_is_none(text: str) -> None:
    assert not is_story_id(text) and not is_part_id(text)


def test_part_id_when_longer_than_a_story_id_is_still_one_up_to_its_limit() -> None:
    assert not is_story_id("a" * 65)
    assert is_part_id("a" * 96) and not is_part_id("a" * 97)


@pytest.mark.parametrize(
    ("tag", "language"), [("en", "en"), ("EN-us", "en"), ("zh-Hans-CN", "zh"), ("hsb", "hsb")]
)
def test_language_tag_when_well_formed_has_a_primary_language(tag: str, language: str) -> None:
    assert is_language_tag(tag) and primary_language(tag) == language


# Names as file systems write them: é may be one character or two, and is the same name.

ONE, TWO = "caf\u00e9.mp4", "cafe\u0301.mp4"


def test_names_when_two_become_one_are_told_and_the_first_is_taken() -> None:
    assert by_name([TWO, "a.mp4", ONE]) == ({ONE: TWO, "a.mp4": "a.mp4"}, [(TWO, ONE)])
    assert by_name(["a", "\uac00"]) == ({"a": "a", "\uac00": "\uac00"}, [])


@pytest.mark.parametrize(("there", "asked"), [(ONE, TWO), (TWO, ONE), (TWO, TWO)])
def test_file_when_its_name_is_written_otherwise_is_found(tmp_path: Path, there: str, asked: str) -> None:
    folder = tmp_path / composed("Zoe\u0308")
    folder.mkdir()
    (folder / there).touch()
    assert below(tmp_path, f"Zoe\u0308/{asked}") == folder / there
    assert below(tmp_path, "Zoe\u0308/other.mp4") == folder / "other.mp4"


def test_file_when_both_names_are_there_is_that_of_exactly_the_name(tmp_path: Path) -> None:
    for name in (ONE, TWO):
        (tmp_path / name).touch()
    assert [below(tmp_path, name).name for name in (ONE, TWO)] == [ONE, TWO]
    assert below(tmp_path, "\u00e9" * 300) == tmp_path / ("\u00e9" * 300)  # too long for a name

"""What may be an id or a language tag."""

import pytest

from fabula.schemas.text import is_language_tag, is_part_id, is_story_id, primary_language


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


@pytest.mark.parametrize("tag", ["", "e", "english", "en_US", "en-", "en us", "zh-Hans\n"])
def test_language_tag_when_malformed_is_none(tag: str) -> None:
    assert not is_language_tag(tag)

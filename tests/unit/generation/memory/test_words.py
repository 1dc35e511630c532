"""Words: head nouns, sorts of things, colours and styles."""

import pytest

from fabula.generation.memory.words import colours_worn, head_phrase, is_many, singulars, sort_of, style_in


@pytest.mark.parametrize(
    ("name", "sort"),
    [
        ("the striped t-shirt", "wearable"),
        ("a pair of muddy boots", "wearable"),
        ("the blue and white fedora", "wearable"),
        ("the dark tattoo on his arm", "mark"),
        ("the wooden benches", "fixture"),
        ("the 'OPEN ALL NIGHT' neon sign", "fixture"),
        ("the old sheepdog's puppies", "creature"),
        ("the horse-drawn carriage", "vehicle"),
        ("the glass of milk", "prop"),
        ("the bouquet of flowers", "prop"),
    ],
)
def test_sort_when_the_head_noun_is_listed_goes_by_it(name: str, sort: str) -> None:
    found = sort_of(name)
    assert found is not None and found[0] == sort


@pytest.mark.parametrize("name", ["the quux", "李小龙的剑", "", "42"])
def test_sort_when_no_word_is_listed_says_nothing(name: str) -> None:
    assert sort_of(name) is None


def test_head_phrase_when_there_is_more_than_the_head_ends_with_it() -> None:
    assert head_phrase("the mannequin in a robe") == ("the", "mannequin")
    assert head_phrase("stacks of old books") == ("old", "books")
    assert head_phrase("the bag of white paste") == ("the", "bag")


def test_singulars_when_an_ending_may_be_a_plural_gives_every_reading() -> None:
    assert {"puppy", "puppie"} <= set(singulars("puppies"))
    assert "knife" in set(singulars("knives"))
    assert list(singulars("s")) == ["s"]


def test_is_many_when_a_name_counts_things_or_ends_in_s() -> None:
    assert is_many("the metal keys") and is_many("a pair of dice")
    assert not is_many("the red cup") and not is_many("the wine glass") and not is_many("")


def test_colours_worn_when_words_or_their_parts_are_listed() -> None:
    assert colours_worn("Man in an olive coat with blue-grey eyes.") == {"green", "blue"}
    assert colours_worn("Woman in red.") == frozenset()
    assert colours_worn("Greenland's evergreens") == frozenset()


def test_style_when_the_text_names_one_is_that_and_else_none() -> None:
    style = style_in("An anime about a thief.")
    assert style is not None and style.startswith("anime")
    assert style_in("A thief animates a crowd in Rome.") is None

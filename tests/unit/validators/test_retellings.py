"""Retellings: what links two stories and what does not, from made stories whose relations are known."""

import pytest

from fabula.models.vectors import packed
from fabula.testing.made_stories import make_story, near_copy
from fabula.validators.retellings import (
    Traces,
    catalogue_keys,
    links_between,
    links_by_meaning,
    title_key,
)
from fabula.validators.similarity import shingles


def by_text(texts: dict[str, str]) -> set[tuple[str, str]]:
    traces = {key: Traces.of("Untitled", text) for key, text in texts.items()}
    return {(link.first, link.second) for link in links_between(traces)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The Fox and the Grapes", "The Grapes and the Fox"),
        ("The Story of the Fox and the Grapes", "FOX AND GRAPES."),
        ("Le Corbeau et le Renard", "Renard et corbeau"),
    ],
)
def test_titles_when_articles_order_and_frames_differ_are_one(first, second) -> None:
    assert title_key(first) == title_key(second)


def test_titles_when_the_heroes_differ_are_two() -> None:
    assert title_key("The Fox and the Grapes") != title_key("The Fox and the Crow")
    assert title_key("The Fox and the Crow 7") != title_key("The Fox and the Crow 8")


@pytest.mark.parametrize("title", ["Chapter IV", "Story 12", "Untitled", "XXI", "Introduction"])
def test_titles_that_name_no_story_are_no_evidence(title) -> None:
    assert title_key(title) is None


@pytest.mark.parametrize(
    ("reference", "keys"),
    [
        ("Perry 150", ("perry 150",)),
        ("Perry Index no. 150; ATU 75", ("atu 75", "perry 150")),
        ("Aarne-Thompson type 75*", ("atu 75*",)),
        ("Phaedrus 4.3", ("phaedrus 4.3",)),
        ("Townsend 1867, p. 12", ()),
        ("the cat 7, at home", ()),
        (None, ()),
    ],
)
def test_catalogue_numbers_are_read_from_references(reference, keys) -> None:
    assert catalogue_keys(reference) == keys


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_texts_when_words_are_replaced_and_sentences_turned_are_linked(share, turned) -> None:
    texts = {f"a{n:03d}": make_story(n)["text"] for n in range(1, 121)}
    copies = {f"b{n:03d}": near_copy(texts[f"a{n:03d}"], share, n, turned=turned) for n in range(1, 121, 4)}
    assert by_text({**texts, **copies}) == {(f"a{n:03d}", f"b{n:03d}") for n in range(1, 121, 4)}


def test_texts_when_one_stands_in_the_other_are_linked() -> None:
    inner = make_story(1)["text"]
    assert by_text({"a": inner, "b": f"{make_story(2)['text']} {inner}", "c": make_story(3)["text"]}) == {
        ("a", "b")
    }


def test_texts_when_long_are_compared_over_what_both_keep() -> None:
    long = " ".join(make_story(n)["text"] for n in range(1, 120))
    assert len(shingles(long)) > 4096
    other = "A man sowed beans. Rain fell all night. " * 9
    assert by_text({"a": long, "b": near_copy(long, 0.1, 1), "c": other}) == {("a", "b")}


def test_texts_when_unspaced_are_compared_by_characters() -> None:
    text = "从前有一只狐狸看见葡萄挂在高高的架子上它跳了又跳怎么也够不着于是它说葡萄是酸的转身走开了"
    other = "一个农夫在田里种瓜每天早上都去浇水"
    assert by_text({"a": text, "b": text.replace("狐狸", "小狼"), "c": other}) == {("a", "b")}


def test_texts_when_empty_are_linked_to_nothing() -> None:
    assert by_text({"a": "", "b": "", "c": "a fox"}) == set()


def test_titles_when_half_the_collection_bears_one_say_nothing() -> None:
    traces = {f"s{n:03d}": Traces.of("Aesop's Fables", make_story(n)["text"]) for n in range(60)}
    assert links_between(traces) == []
    few = dict(list(traces.items())[:3])
    assert [link.by for link in links_between(few)] == ["title", "title"]


def test_meaning_when_vectors_point_one_way_links_them() -> None:
    vectors = {"a": packed([1.0, 0.0]), "b": packed([0.99, 0.1]), "c": packed([0.0, 1.0])}
    (link,) = links_by_meaning(vectors, 0.9)
    assert (link.first, link.second, link.by) == ("a", "b", "meaning")
    # cosine = 0.99 / sqrt(0.99^2 + 0.1^2) = 0.9949
    assert link.evidence.endswith("0.995")


def test_meaning_when_vectors_differ_in_length_says_so() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        list(links_by_meaning({"a": packed([1.0]), "b": packed([1.0, 2.0])}))

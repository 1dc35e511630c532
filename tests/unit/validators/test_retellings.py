"""MinHash signatures and near-duplicate pairs: exact on equal texts, close to the true value elsewhere."""

import subprocess
import sys

import pytest

from fabula.models.chat import packed
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.made_stories import make_story, near_copy
from fabula.validators.retellings import (
    Traces,
    catalogue_keys,
    links_between,
    links_by_meaning,
    near_duplicates,
    shingles,
    signature,
    similarity,
    title_key,
)

TEXT = sample_bundles(1)[0]["record"]["story_text"]


def words(number: int, start: int = 0) -> str:
    return " ".join(f"word{index}" for index in range(start, start + number))


def jaccard(first: str, second: str) -> float:
    a, b = shingles(first), shingles(second)
    return len(a & b) / len(a | b)


def test_shingles_when_text_has_words_are_word_trigrams() -> None:
    assert shingles("The fox, the FOX ran!") == {"the fox the", "fox the fox", "the fox ran"}


def test_shingles_when_script_has_no_spaces_are_five_characters() -> None:
    assert shingles("狐は鶴に会った。") == {"狐は鶴に会", "は鶴に会っ", "鶴に会った"}


def test_shingles_when_script_has_spaces_but_is_not_latin_are_words() -> None:
    assert shingles("एक लोमड़ी और एक सारस") == {"एक लोमड़ी और", "लोमड़ी और एक", "और एक सारस"}


def test_signature_when_only_case_punctuation_and_space_differ_is_equal() -> None:
    noisy = TEXT.upper().replace(" ", " \n ").replace(".", "!")
    assert signature(noisy) == signature(TEXT)
    assert len(signature(TEXT)) == 128
    assert all(0 <= number < 2**32 for number in signature(TEXT))


@pytest.mark.slow
def test_signature_when_computed_in_another_process_and_hash_seed_is_the_same() -> None:
    code = (
        "from fabula.validators.retellings import signature; print(signature('The fox met the crane.')[:4])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    ]
    assert runs[0] == runs[1] == f"{signature('The fox met the crane.')[:4]}\n"


@pytest.mark.parametrize("shared", [20, 60, 90])
def test_similarity_when_texts_overlap_is_near_the_true_jaccard(shared: int) -> None:
    first, second = words(100), words(100, 100 - shared)
    # 128 numbers: the standard error is at most 0.044; three of them.
    assert abs(similarity(signature(first), signature(second)) - jaccard(first, second)) < 0.133


def test_near_duplicates_when_texts_are_equal_finds_every_pair_whatever_the_threshold() -> None:
    marks = {"c": signature(TEXT), "a": signature(TEXT.lower()), "b": signature("something else entirely")}
    for threshold in (0.3, 0.5, 0.8, 0.9, 1.0):
        assert near_duplicates(marks, threshold) == [("a", "c", 1.0)]


def test_near_duplicates_when_thousands_are_equal_gives_one_pair_for_each_but_the_first() -> None:
    mark = signature(TEXT)
    marks = {f"s{number:04}": mark for number in range(3000)} | {"other": signature(words(40))}
    pairs = near_duplicates(marks, 0.8)
    assert len(pairs) == 2999
    assert {first for first, _, _ in pairs} == {"s0000"}


def test_near_duplicates_when_many_stories_overlap_finds_what_a_plain_search_finds() -> None:
    # Pairs of equal texts, each near those a few steps on.
    texts = {f"s{number:03}": words(60, number // 2 * 3) for number in range(120)}
    marks = {name: signature(text) for name, text in texts.items()}
    names = sorted(marks)
    first = {name: min(other for other in names if marks[other] == marks[name]) for name in names}
    plain = [
        (a, b, similarity(marks[a], marks[b]))
        for index, a in enumerate(names)
        for b in names[index + 1 :]
        if similarity(marks[a], marks[b]) >= 0.8 and (a == first[a] or b == first[b])
    ]
    assert near_duplicates(marks, 0.8) == plain
    assert len(plain) > 200


# Retellings: what links two stories and what does not, from made stories whose relations are known.


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

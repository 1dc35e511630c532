"""Words and templates of the review pages: whole in every language, and nothing that the policy forbids."""

import re
from collections import Counter
from importlib.resources import files

import pytest
from scipy.stats import binomtest, chisquare

from fabula.people.review.design import Place
from fabula.people.review.items import Item, Part, shuffled_parts
from fabula.people.review.serve.server import FIRST, Given, Shown, blocks, languages, strings
from fabula.people.review.task import load_task

HERE = files("fabula.people.review.serve")
ASKED = re.compile(r'\bsay\(\s*"([a-z_.]+)"\s*[,)]')
"""Words that a template or script asks for by their full name."""
VALUE = re.compile(r"\{\w+\}")
PARTS = tuple(Part(id=f"p{number}", text=f"Question {number}?") for number in range(5))
SOURCES = {
    entry.name: entry.read_text("utf-8")
    for folder in ("templates", "static")
    for entry in (HERE / folder).iterdir()
    if entry.name.endswith((".j2", ".js"))
}


@pytest.mark.parametrize("language", languages())
def test_words_when_read_in_a_language_have_the_values_of_the_english_ones(language: str) -> None:
    own, first = strings(language), strings(FIRST)
    assert own.keys() == first.keys()
    for name, words in own.items():
        assert sorted(VALUE.findall(words)) == sorted(VALUE.findall(first[name])), name
        assert bool(words) == bool(first[name]), name


def test_words_when_pages_ask_for_them_are_there() -> None:
    known = strings(FIRST)
    asked = {(source, name) for source, text in SOURCES.items() for name in ASKED.findall(text)}
    assert len(asked) > 60
    assert {(source, name) for source, name in asked if name not in known} == set()


def test_templates_when_the_policy_is_strict_have_no_inline_script_style_or_foreign_address() -> None:
    for name, text in SOURCES.items():
        if name.endswith(".j2"):
            assert not re.search(r"\sstyle=|\son[a-z]+=|<style", text), name
            assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text)), name
        assert not re.search(r"https?://|\beval\(|new Function|innerHTML|setAttribute\(\"style", text), name


def test_text_when_people_wrote_it_is_parted_into_paragraphs_and_lists() -> None:
    written = "Look at both.\nThen answer.\n\n- Use what you see.\n- Do not guess.\nDone.\n\n\nThank you."
    assert blocks(written) == [
        ("text", ["Look at both.", "Then answer."]),
        ("list", ["Use what you see.", "Do not guess."]),
        ("text", ["Done."]),
        ("text", ["Thank you."]),
    ]


def test_answers_when_begun_and_saved_show_what_was_begun_and_that_it_would_change_them() -> None:
    assert Given().answers == {}
    assert Given(saved={"better": 1}).answers == {"better": 1}
    assert not Given(saved={"better": 1}).is_changed
    assert Given({}, {"better": 1}).answers == {}
    assert Given({"better": 2}, {"better": 1}).is_changed
    assert not Given({"better": 1}, {"better": 1}).is_changed


def shown(task: str, seat: int, number: int = 0) -> Shown:
    item = Item(item="i", texts={}, sides=(), parts={"questions": PARTS, "moral": PARTS[:1]}, values=())
    draw = f"7/{seat}/{number}"
    return Shown(item, Place("i", 0), shuffled_parts(item, draw), load_task(task).card, draw)


def values(task: Shown) -> list[tuple[str | int, ...]]:
    asked = [question for _, groups in task.sections() for _, questions in groups for question in questions]
    return [tuple(option.value for option in task.options(question)) for question in asked]


def test_questions_when_shuffled_stand_first_equally_often_and_are_all_there() -> None:
    seats = range(1400)
    orders = [shown("preference", seat).sections() for seat in seats]
    heads = Counter(sections[0][0] for sections in orders)
    assert len(heads) == 8  # the ninth asks about a bridge, which this item has not
    assert chisquare(list(heads.values())).pvalue > 0.01
    pairs = Counter(
        groups[0][1][0].name for sections in orders for name, groups in sections if name == "cause"
    )
    assert binomtest(pairs["Q1"], len(seats)).pvalue > 0.01
    assert {
        len([q for _, groups in sections for _, asked in groups for q in asked]) for sections in orders
    } == {14}
    assert shown("preference", 3).sections() == shown("preference", 3).sections()


def test_scales_when_shuffled_are_turned_for_half_of_the_seats_and_alike_within_one() -> None:
    way = (2, 1, 0, -1, -2)
    turned = 0
    for seat in range(400):
        orders = {order for number in range(3) for order in values(shown("preference", seat, number))}
        assert orders in ({way}, {way[::-1]})
        turned += orders == {way[::-1]}
    assert binomtest(turned, 400).pvalue > 0.01


def test_parts_when_shuffled_keep_what_is_asked_of_each_in_order() -> None:
    firsts = Counter()
    for seat in range(300):
        sections = dict(shown("recoverability", seat).sections())
        for _, questions in sections["questions"]:
            assert [question.name for question in questions] == ["answer", "confidence"]
        firsts[sections["questions"][0][0].id] += 1
    assert chisquare([firsts[part.id] for part in PARTS]).pvalue > 0.01


def test_tasks_when_not_shuffled_ask_as_they_are_written() -> None:
    for name in ("ratings", "record", "shots", "appearances"):
        card = load_task(name).card
        whole = [question.name for question in card.questions if question.each is None]
        found = shown(name, 5)
        asked = [q for _, groups in found.sections() for part, own in groups if part is None for q in own]
        assert [question.name for question in asked] == whole
        for question in asked:
            if question.type in ("choice", "scale"):
                assert found.options(question) == list(question.choices)

"""A task of one's own over a file of items; training and check items; what isolation refuses."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from scipy.stats import binomtest, chisquare

from fabula.errors import ConfigError, InputError
from fabula.kinds.making_studies import draw_items
from fabula.people.review.design import Place, Plan
from fabula.people.review.flow import human_rows
from fabula.people.review.folder import Study, StudyPlan, make_study
from fabula.people.review.items import Drawn, Item, Part, Value, shuffled_parts
from fabula.people.review.plan import Rules
from fabula.people.review.serve.server import FIRST, Given, Shown, blocks, languages, strings
from fabula.people.review.sources.answers import answers_of, sampled
from fabula.people.review.sources.given import marked
from fabula.people.review.sources.source import Drawing, DrawOptions
from fabula.people.review.task import Task, load_task
from fabula.schemas.katha import Question
from fabula.testing.review_studies import NOW, add_votes

TASK = """{#---
id: pages
version: 1
title: {en: Pages}
instructions: {en: Look at the page.}
source: made for this test
draws: items
questions:
  - {name: order, type: choice, title: {en: "Is the order plain?"}, row: rating, criterion: order,
     options: [{value: 1, text: {en: "no"}}, {value: 2, text: {en: "yes"}}]}
  - {name: said, type: text, each: questions, title: {en: Answer}, row: answer, optional: true}
---#}
{% import "evidence.j2" as show with context %}
{{ show.sides(sides) }}
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "pages.j2").write_text(TASK)
    return load_task(str(tmp_path / "pages.j2"))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    for name in ("a", "b", "c"):
        Image.new("RGB", (32, 32), (ord(name), 0, 0)).save(tmp_path / "pictures" / f"{name}.png")
    return tmp_path


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def line(name: str, **more: Any) -> dict[str, Any]:
    part = {"id": f"{name}-q1", "text": "What falls?"}
    return {"about": f"page-{name}", "story": f"tale-{name}", "condition": "image", "methods": ["m"],
            "sides": [[f"pictures/{name}.png"]], "parts": {"questions": [part]}, **more}  # fmt: skip


def study_of(
    folder: Path, task: str | Path, items: Sequence[Drawn], training: Sequence[Drawn] = (),
    checks: Sequence[Drawn] = (),
) -> Study:  # fmt: skip
    plan = Plan(raters=1, seats=1, checks=len(checks))
    about = StudyPlan("given", "", str(task), plan, Rules(), NOW)
    return make_study(folder, about, items, training, checks)


def test_a_tenth_task_when_it_is_one_file_runs_over_a_file_of_items(task: Task, pictures: Path) -> None:
    items = write(pictures / "items.jsonl", line("a"), line("b", seed=3))
    drawing = draw_items(task, items)
    assert drawing.source["kind"] == "file" and drawing.source["path"] == "items.jsonl"
    study = study_of(pictures / "study", pictures / "pages.j2", drawing.items)
    votes = {place.item: {"order": 2} for place in study.seats[1].places}
    add_votes(study, "p1", votes, seat=1)
    rows = human_rows(study, study.standing())
    assert {(row.item, row.method, row.seed, row.criterion, row.value) for row in rows} == {
        ("page-a", "m", None, "order", 2), ("page-b", "m", 3, "order", 2)
    }  # fmt: skip
    (chosen,) = draw_items(task, items, DrawOptions(stories=("tale-b",))).items
    assert chosen.about == "page-b"
    with pytest.raises(ConfigError, match="there is no story tale-z"):
        draw_items(task, items, DrawOptions(stories=("tale-z",)))


def test_a_file_of_items_when_a_line_is_wrong_is_refused_with_its_number(task, pictures, refusals, snapshot):
    (pictures.parent / "outside.png").write_bytes((pictures / "pictures/a.png").read_bytes())
    (pictures / "pictures/link.png").symlink_to(pictures.parent / "outside.png")
    sides = ("pictures/z.png", "../outside.png", "/etc/hostname", "pictures/link.png")
    changes = [{"sides": [[side]]} for side in sides]
    changes += [{"surprise": 1}, {"expected": {"order": [1]}}, {"condition": "smell"}]
    assert refusals(
        lambda change: draw_items(task, write(pictures / "items.jsonl", line("a", **change))), changes
    ) == snapshot  # fmt: skip
    wrong = [["{"], [], [{"story": "x"}], [line("a"), line("a")]]
    assert refusals(lambda lines: draw_items(task, write(pictures / "all.jsonl", *lines)), wrong) == snapshot


def test_a_task_when_its_folder_is_given_is_the_one_file_in_it_with_a_source_that_there_is(task, tmp_path):
    assert load_task(str(tmp_path)).card == task.card
    (tmp_path / "none").mkdir()
    with pytest.raises(ConfigError, match="holds 0 files of tasks"):
        load_task(str(tmp_path / "none"))
    (tmp_path / "odd.j2").write_text(TASK.replace("draws: items", "draws: dreams"))
    with pytest.raises(ConfigError, match=r"expected one of .*items"):
        draw_items(load_task(str(tmp_path / "odd.j2")), tmp_path)


# Training and checks


def drawing(pictures: Path, task: Task, *lines: dict[str, Any]) -> Drawing:
    return draw_items(task, write(pictures / "items.jsonl", *lines))


def test_marked_items_when_picked_leave_the_others_and_end_as_training_and_attention(task, pictures):
    made = drawing(pictures, task, line("a"), line("b"), line("c"))
    own = line("c", about="page-own", expected={"order": [1]})
    right = {"order": [2], "said/a-q1": ["a tree", "the tree"]}
    file = write(
        pictures / "marked.jsonl",
        {"about": "page-a", "expected": right, "explained": {"en": "It is plain."}},
        {"about": "page-b", "methods": ["m"], "condition": "image", "expected": {"order": [1]}},
        own,
    )
    training, checks = marked(file, made, task)
    assert [item.about for item in training] == ["page-a"]
    assert [item.about for item in checks] == ["page-b", "page-own"]
    rest = made.without([*training, *checks])
    assert [item.about for item in rest] == ["page-c"]
    study = study_of(pictures / "study", pictures / "pages.j2", rest, training, checks)
    (taught,) = study.training
    hidden = study.items[taught].parts["questions"][0].id
    assert study.stands[taught].expected == {"order": (2,), f"said/{hidden}": ("a tree", "the tree")}
    assert sum(place.check for place in study.seats[1].places) == 2
    add_votes(study, "p1", {place.item: {"order": 1} for place in study.seats[1].places}, seat=1)
    rows = human_rows(study, study.standing())
    assert Counter((row.kind, row.value) for row in rows) == {("attention", 1): 2, ("rating", 1): 1}


def test_marked_items_when_a_line_cannot_be_used_are_refused_with_its_number(
    task, pictures, refusals, snapshot
):
    made, right = drawing(pictures, task, line("a"), line("b")), {"order": [1]}
    assert refusals(
        lambda mark: marked(write(pictures / "marked.jsonl", {"about": "page-a", **mark}), made, task), [
            {"about": "page-z", "expected": right}, {}, {"expected": {"order": []}},
            {"expected": {"order": [9]}}, {"expected": {"mood": [1]}}, {"expected": {"said/b-q1": ["x"]}},
            {"seed": 4, "expected": right},
        ]) == snapshot  # fmt: skip


def test_marked_items_when_several_fit_or_one_is_named_twice_are_refused(task: Task, pictures: Path) -> None:
    made = drawing(pictures, task, line("a"), line("a", methods=["n"]))
    one = {"about": "page-a", "expected": {"order": [1]}}
    with pytest.raises(InputError, match="2 drawn items are about page-a: say condition, methods"):
        marked(write(pictures / "marked.jsonl", one), made, task)
    both = [one | {"methods": ["n"]}] * 2
    with pytest.raises(InputError, match="line 1 has this item already"):
        marked(write(pictures / "marked.jsonl", *both), made, task)


# Isolation


SHOWN = Part(id="q1", text="What falls?")


def with_part(**more: Any) -> dict[str, Any]:
    return {"parts": {"questions": (SHOWN.model_copy(update=more),)}}


@pytest.mark.parametrize(
    "more",
    [
        {"texts": {"title": "The bridge"}},
        {"values": (Value(path="$.title", label="Title", value="The bridge"),)},
        with_part(detail=("a bridge",)), with_part(values=(Value(path="$", label="", value=1),)),
        {"texts": {"scenes": ["A tree falls."]}, "condition": "text"},  # there the picture is too much
    ],
)  # fmt: skip
def test_an_item_when_it_shows_more_than_its_condition_allows_is_refused(task, pictures, more):
    side = (pictures / "pictures/a.png",)
    about = {"condition": "image", "parts": {"questions": (SHOWN,)}, **more}
    with pytest.raises(InputError, match="it would show more than its evidence condition allows"):
        study_of(
            pictures / "study", pictures / "pages.j2", [Drawn("page-a", "tale-a", sides=(side,), **about)]
        )
    if "condition" not in more:
        preference = Drawn("s", "s", sides=(side, (pictures / "pictures/b.png",)), **more)
        with pytest.raises(InputError, match="preference: s"):
            study_of(pictures / "other", "preference", [preference])


def test_study_when_a_picture_cannot_be_read_is_refused_with_its_name(task, pictures) -> None:
    items = draw_items(task, write(pictures / "items.jsonl", line("a"), line("b"))).items
    (pictures / "pictures/b.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"b\.png"):
        study_of(pictures / "study", pictures / "pages.j2", items)


# Answers


def question(name: str, gold: str, *accepted: str) -> Question:
    return Question(
        question_id=name, story_id="s1", question_type="causal", question="Why?", gold_answer=gold,
        accepted_answers=(gold, *accepted), target_scene=1, target_transition=None, evidence_scenes=(1,),
        required_evidence=None, answerability="answerable",
    )  # fmt: skip


def test_answers_when_alike_count_once_in_the_form_that_was_written_most_often() -> None:
    asked = {"q1": question("q1", "the flood", "a flood"), "q2": question("q2", "fear")}
    rose = "The river rose."
    said = [("q1", rose), ("q1", "the river rose"), ("q1", rose), ("q1", "A flood!"),
            ("q2", "unclear"), ("q2", "  "), ("q2", "Fear"), ("q2", "joy"), ("q9", "joy")]  # fmt: skip
    given = answers_of(asked, said)
    assert [(each.question.question_id, each.shown, each.accepted) for each in given] == [
        ("q1", "A flood!", True), ("q1", "The river rose.", False), ("q2", "Fear", True), ("q2", "joy", False)
    ]  # fmt: skip
    assert given[0].others == ("the flood",) and given[1].others == ("the flood", "a flood")
    assert given[2].others == ()  # nothing would be left to compare it with: it is no control


def test_answers_when_sampled_keep_the_share_of_controls() -> None:
    asked = {f"q{number}": question(f"q{number}", "yes", "right", "true") for number in range(100)}
    said = [(name, answer) for name in asked for answer in ("no", "right")]
    given = answers_of(asked, said)
    some = sampled(given, 40, 0.25, 7)
    assert sum(each.accepted for each in some) == 10 and len(some) == 40
    every = sampled(given, None, 0.1, 7)  # 100 that no key accepts, and 11 of 111 that one does
    assert (len(every), sum(each.accepted for each in every)) == (111, 11)
    assert sampled([each for each in given if each.accepted], None, 0.1, 7) == []
    assert some == sampled(given, 40, 0.25, 7) != sampled(given, 40, 0.25, 8)


def test_options_when_out_of_range_are_refused_by_name(refusals, snapshot):
    assert refusals(lambda given: DrawOptions(**given), [
        {"limit": 0}, {"per_prompt": 0}, {"controls": 1.0}, {"conditions": ("smell",)}, {"pairs": ("a",)},
        {"pairs": ("a:",)},
    ]) == snapshot  # fmt: skip


# -- Words and templates of the review pages: whole in every language, and nothing that the policy forbids

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
    pairs = Counter(dict(sections)["cause"][0][1][0].name for sections in orders)
    assert binomtest(pairs["Q1"], len(seats)).pvalue > 0.01
    assert {sum(len(asked) for _, groups in order for _, asked in groups) for order in orders} == {14}
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

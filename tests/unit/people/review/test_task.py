"""The file of a task, and what it says of answers."""

from pathlib import Path

import pytest

from fabula.errors import ConfigError, InputError
from fabula.people.review.task import load_task, read_task, task_names
from fabula.testing.review_studies import TASK, task_of

PARTS = {"questions": ("p1", "p2")}
GOOD = {"quality": 2, "said/p1": "because", "valid/p1": "valid", "said/p2": "unclear", "valid/p2": "valid"}


def test_answers_when_whole_have_no_problem(tmp_path: Path) -> None:
    assert task_of(tmp_path).problems(GOOD, PARTS) == {}


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        ("quality", 4), ("quality", "2"), ("quality", True), ("quality", 2.0), ("quality", None), ("side", 2),
        ("labels", []), ("labels", ["kindness", "kindness"]), ("labels", ["kindness", "nonsense"]),
        ("labels", "kindness"), ("labels", ["kindness", "wisdom", "honesty", "courage"]), ("said/p1", ""),
        ("said/p1", "x" * 5000), ("said/p1", 3), ("valid/p1", "unclear"), ("other", 1), ("said/p9", "x"),
        ("said", "x"), ("fixed/p1", [{"path": "$", "new": 1}]),
    ],
)  # fmt: skip
def test_answer_when_not_one_of_those_asked_for_is_a_problem(
    tmp_path: Path, place: str, answer: object
) -> None:
    assert list(task_of(tmp_path).problems({**GOOD, place: answer}, PARTS)) == [place]  # type: ignore[dict-item]


def test_answer_when_missing_is_a_problem_unless_optional(tmp_path: Path) -> None:
    wrong = task_of(tmp_path).problems({"quality": 1}, PARTS)
    assert set(wrong) == {"said/p1", "said/p2", "valid/p1", "valid/p2"}


def test_question_when_its_condition_holds_is_asked(tmp_path: Path) -> None:
    task = task_of(tmp_path)
    edits = [{"path": "$.questions[0].gold_answer", "new": "since"}]
    assert task.problems({**GOOD, "valid/p1": "invalid", "fixed/p1": edits}, PARTS) == {}
    assert list(task.problems({**GOOD, "fixed/p1": edits}, PARTS)) == ["fixed/p1"]
    assert list(task.problems({**GOOD, "valid/p1": "invalid", "fixed/p1": [{"path": 1}]}, PARTS)) == [
        "fixed/p1"
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("{#---", "{#--"), "must start"),
        (("version: 1", "version: 0"), "version"),
        (("most: 3", "most: 0"), "most"),
        (("type: labels", "type: labelled"), "type"),
        (("words: moral_label", "words: null"), "no options"),
        (("name: side", "name: quality"), "one name"),
        (("when: {valid: [invalid]}", "when: {missing: [invalid]}"), "missing"),
        (("{en: left}", "{fr: gauche}"), "English"),
        (("source: made", "source: [made"), "not the file of a task"),
    ],
)
def test_task_when_its_file_is_wrong_names_the_fault(change: tuple[str, str], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read_task(TASK.replace(*change).encode(), "toy.j2")


def test_task_when_not_text_is_an_error() -> None:
    with pytest.raises(InputError, match="not the file of a task"):
        read_task(b"\xff\xfe\x00", "toy.j2")


def test_task_when_unknown_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="expected one of"):
        load_task("nothing")
    with pytest.raises(ConfigError, match="no file"):
        load_task("nothing.j2")


@pytest.mark.parametrize("name", task_names())
def test_task_when_ours_has_every_text_in_english_and_chinese(name: str) -> None:
    card = load_task(name).card
    texts = [card.title, card.instructions, *card.sections.values(), *card.texts.values()]
    for question in card.questions:
        texts += [question.title, *([question.help] if question.help else [])]
        texts += [option.text for option in question.options]
    assert [dict(text) for text in texts if not {"en", "zh"} <= set(text)] == []
    assert card.id == name

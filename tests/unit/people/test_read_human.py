"""Reading what people said: JSONL and CSV alike, every problem with its line, nothing dropped silently."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fabula
from fabula.errors import InputError
from fabula.people.read import Known, read_human
from fabula.schemas.judgement import NEEDED, HumanRow

Write = Callable[..., Path]
ANSWER = {
    "kind": "answer", "rater": "p1", "item": "kb25k_0001_q01", "condition": "image", "method": "m",
    "answer": "a rope",
}  # fmt: skip


def problems(path: Path, known: Known, **given: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_human(path, known, **given)  # type: ignore[arg-type]
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def item(known: Known) -> str:
    return next(iter(known.questions))


@pytest.fixture
def story(known: Known) -> str:
    return next(iter(known.morals))


def test_file_when_csv_and_jsonl_say_the_same_gives_the_same_lines(
    written: Write, known: Known, item: str, story: str
) -> None:
    csv = written(
        "people.csv",
        "kind,rater,item,condition,method,answer,labels,criterion,value,baseline,seconds,completion",
        f'answer,p1,{item},text,,"rain, and no rope",,,,,12.5,',
        f"moral_label,7,{story},image,m,,kindness|wisdom,,,,,",
        f"rating,p1,{story},,m,,,NCS,4,,,",
        f"preference,p1,{story},,m,,,Q1,-2,n,,",
        f"preference,p1,{story},,m,unclear,,Q2,,n,,",
        "attention,p1,check_1,,,,,,1,,,",
        "",
    )
    rows = [
        {"kind": "answer", "rater": "p1", "item": item, "condition": "text", "answer": "rain, and no rope",
         "seconds": 12.5},
        {"kind": "moral_label", "rater": "7", "item": story, "condition": "image", "method": "m",
         "labels": ["kindness", "wisdom"]},
        {"kind": "rating", "rater": "p1", "item": story, "method": "m", "criterion": "NCS", "value": 4},
        {"kind": "preference", "rater": "p1", "item": story, "method": "m", "baseline": "n",
         "criterion": "Q1", "value": -2},
        {"kind": "preference", "rater": "p1", "item": story, "method": "m", "baseline": "n",
         "criterion": "Q2", "answer": "unclear"},
        {"kind": "attention", "rater": "p1", "item": "check_1", "value": 1},
    ]  # fmt: skip
    jsonl = written("people.jsonl", *map(json.dumps, rows))
    assert read_human(csv, known) == read_human(jsonl, known)
    assert len(read_human(csv, known)) == 6


@pytest.mark.parametrize(
    ("change", "column", "text"),
    [
        ({"rater": None}, "rater", "the anonymised id of the person"),
        ({"rater": ""}, "rater", "the anonymised id of the person"),
        ({"item": "kb25k_9999_q01"}, "item", "'kb25k_9999_q01'"),
        ({"method": "o"}, "method", "one of m, n, found 'o'"),
        ({"method": None}, "", "method: a line of kind answer under image needs it"),
        ({"condition": "text"}, "", "nothing is shown under text-only evidence"),
        ({"answer": None}, "", "answer: a line of kind answer needs it"),
        ({"condition": "picture"}, "condition", "Input should be 'text', 'image' or 'text_image'"),
        ({"confidence": "sure"}, "confidence", "Input should be 'low', 'medium' or 'high'"),
        ({"seconds": -1}, "seconds", "greater than or equal to 0"),
        ({"rater": 5}, "rater", "valid string"),
        ({"mood": "good"}, "mood", "Extra inputs are not permitted"),
    ],
)
def test_line_when_wrong_is_named_with_its_number_and_column(
    written: Write, known: Known, item: str, change: dict[str, object], column: str, text: str
) -> None:
    good = ANSWER | {"item": item}
    path = written("people.jsonl", json.dumps(good), "", json.dumps(good | {"rater": "p2"} | change))
    (problem,) = problems(path, known)
    assert f"people.jsonl:3 {column}" in problem or (not column and "people.jsonl:3" in problem)
    assert text in problem


def test_file_when_many_lines_are_wrong_names_them_all(
    written: Write, known: Known, item: str, story: str
) -> None:
    rows = [
        {"kind": "rating", "rater": "p1", "item": story, "method": "m", "criterion": "NCS", "value": 6},
        {"kind": "preference", "rater": "p1", "item": story, "method": "m", "baseline": "m",
         "criterion": "Q1", "value": 1},
        {"kind": "moral_label", "rater": "p1", "item": story, "condition": "image", "method": "m",
         "labels": ["kindness", "speed"]},
        {"kind": "rating", "rater": "p1", "item": "a.mp4", "method": "m", "criterion": "NCS", "value": 1},
        ["a list"],
    ]  # fmt: skip
    found = problems(written("people.jsonl", *map(json.dumps, rows), "{"), known)
    assert [text.split(".jsonl:")[1][0] for text in found] == ["5", "6", "1", "2", "3", "4"] or len(
        found
    ) == 6
    assert any("value: expected a rating from 1 to 5, found 6" in text for text in found)
    assert any("compares two methods" in text for text in found)
    assert any("'speed'" in text for text in found)
    assert any("a story of the release" in text for text in found)


def test_person_when_answering_twice_differently_is_a_problem_and_the_same_is_none(
    written: Write, known: Known, item: str
) -> None:
    first, other = json.dumps(ANSWER | {"item": item}), json.dumps(ANSWER | {"item": item, "answer": "b"})
    again = json.dumps(ANSWER | {"item": item, "answer": "b", "repeat": 1})
    assert len(read_human(written("a.jsonl", first, first, again), known)) == 2
    (problem,) = problems(written("b.jsonl", first, other), known)
    assert "b.jsonl:2" in problem
    assert "b.jsonl:1" in problem


@pytest.mark.parametrize(
    ("name", "lines", "text"),
    [
        ("people.txt", ["x"], "the ending '.txt'"),
        ("people.csv", ["kind,rater,age", "answer,p,3"], "'age'"),
        ("people.csv", ["kind,rater,rater", "answer,p,3"], "twice: 'rater'"),
        ("people.csv", ["kind,rater,item", "answer,p"], "3 cells, as in line 1"),
        ("people.csv", ["kind,rater", '"answer,p'], "CSV, with commas and quotes"),
        ("people.csv", ["kind,rater,item"], "at least one line"),
        ("people.jsonl", [""], "at least one line"),
    ],
)
def test_file_when_of_another_form_is_refused(
    written: Write, known: Known, name: str, lines: list[str], text: str
) -> None:
    assert any(text in problem for problem in problems(written(name, *lines), known))


def test_file_when_missing_or_not_utf_8_is_refused(tmp_path: Path, known: Known) -> None:
    assert "No such file" in problems(tmp_path / "none.csv", known)[0]
    (tmp_path / "latin.csv").write_bytes("kind,rater\nanswer,\xe9".encode("latin-1"))
    assert "in UTF-8" in problems(tmp_path / "latin.csv", known)[0]


def test_tasks_when_anonymised_stand_for_what_the_key_says(written: Write) -> None:
    known = Known(methods=frozenset({"x"}), events={"a.mp4": 2})
    row = {"kind": "completion", "rater": "p1", "item": "task_0001", "completion": [1, 0]}
    key = {"task_0001": ("a.mp4", "x"), "task_0002": ("gone.mp4", "x")}
    (found,) = read_human(written("a.jsonl", json.dumps(row)), known, key)
    assert (found.item, found.method, found.completion) == ("a.mp4", "x", (1, 0))
    bad = [
        row | {"item": "task_9"},
        row | {"method": "x"},
        row | {"item": "task_0002"},
        row | {"completion": [1]},
    ]
    found_problems = problems(written("b.jsonl", *map(json.dumps, bad)), known, key=key)
    assert [text.partition(" ")[0].rpartition(":")[2] for text in found_problems] == ["1", "2", "3", "4"]


@given(st.text(max_size=200))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_file_when_it_holds_anything_gives_problems_not_crashes(
    tmp_path: Path, known: Known, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "replace"))
    assert problems(path, known)


def test_columns_of_a_study_when_csv_and_jsonl_say_the_same_give_the_same_lines(
    written: Write, known: Known, story: str
) -> None:
    csv = written(
        "people.csv",
        "kind,rater,item,method,criterion,value,part,at,protocol,simulated",
        f"rating,p1,{story},m,NCS,4,1-2,2026-01-01T00:00:00Z,{'a' * 64},true",
        f"rating,p2,{story},m,NCS,4,,,,False",
        f"rating,p3,{story},m,NCS,4,,,,",
    )
    row = {"kind": "rating", "item": story, "method": "m", "criterion": "NCS", "value": 4}
    more = {"part": "1-2", "at": "2026-01-01T00:00:00Z", "protocol": "a" * 64, "simulated": True}
    rows = [row | {"rater": "p1"} | more, row | {"rater": "p2"}, row | {"rater": "p3", "simulated": False}]
    jsonl = written("people.jsonl", *map(json.dumps, rows))
    assert read_human(csv, known) == read_human(jsonl, known)
    assert [row.simulated for row in read_human(csv, known)] == [True, False, False]
    (problem,) = problems(written("b.csv", "kind,rater,simulated", "rating,p1,perhaps"), known)
    assert "b.csv:2 simulated" in problem


@pytest.mark.parametrize("known_kinds", [None, frozenset({"rating", "attention"}), frozenset()])
def test_lines_when_used_elsewhere_are_refused_in_one_sentence_for_each_kind(
    written: Write, known: Known, item: str, story: str, known_kinds: frozenset[str] | None
) -> None:
    rows = [
        {"kind": "review", "rater": "p1", "item": story, "criterion": "scene", "answer": "ok"},
        {"kind": "review", "rater": "p2", "item": story, "criterion": "confidence", "value": 4},
        {"kind": "equivalence", "rater": "p1", "item": item, "answer": "a rope", "value": 1},
        {"kind": "audit", "rater": "p1", "item": "x", "criterion": "transition", "value": 1},
        {"kind": "rating", "rater": "p1", "item": story, "method": "m", "criterion": "NCS", "value": 4},
    ]
    fitting = known if known_kinds is None else Known(morals=known.morals, kinds=known_kinds)
    found = problems(written("people.jsonl", *map(json.dumps, rows)), fitting)
    used = {
        "2 lines of kind review": "`fabula release pack --reviews` reads them",
        "1 line of kind equivalence": "`labelled` in the study.toml of an experiment takes the file",
        "1 line of kind audit": "`fabula review status --results` counts them",
    }
    for text, (lines, where) in zip(found, used.items(), strict=True):
        said = text.partition("people.jsonl: ")[2]
        assert said.startswith(f"{lines} cannot be compared with an evaluation: {where}")


def test_page_when_compared_names_every_column_and_kind() -> None:
    page = Path(fabula.__file__).parent / "docs" / "human.md"
    if not page.exists():
        pytest.skip("the suite runs against an installed wheel, which has no docs")
    text = page.read_text("utf-8")
    assert [name for name in (*HumanRow.model_fields, *NEEDED) if f"| `{name}` |" not in text] == []


def test_line_about_a_task_when_no_key_is_given_asks_for_it(written: Write) -> None:
    row = {"kind": "completion", "rater": "p1", "item": "task_0001", "completion": [1]}
    (problem,) = problems(written("a.jsonl", json.dumps(row)), Known(events={"a.mp4": 1}))
    assert "given with --key" in problem

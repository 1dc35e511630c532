"""Items given to other tools, and answers taken back: nothing is lost that a form can hold."""

import base64
import copy
import csv
import io
import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from fabula.engine.lock import hold
from fabula.errors import ConfigError, InputError, RunBusy
from fabula.people.review.design import Plan
from fabula.people.review.exchange.cells import Asked, Load, answer_of, hint, sheets_of
from fabula.people.review.exchange.forms import FORMS, ExportOptions, export_seat, import_answers
from fabula.people.review.exchange.label_studio import interface_of
from fabula.people.review.flow import human_rows
from fabula.people.review.folder import Study, StudyPlan, make_study
from fabula.people.review.items import Drawn, Part, Value
from fabula.people.review.plan import Rules
from fabula.people.review.standing import Event, Standing, VoteJournal, read_events
from fabula.people.review.task import Question, is_due, load_task, task_names
from fabula.testing.filled_forms import Answers, cell_of, fill_csv, results_of
from fabula.testing.review_page import Field
from fabula.testing.review_studies import add_votes, toy_answers, toy_items, toy_study
from fabula.testing.reviewed_records import answers_of, record_study
from fabula.testing.simulated_reviewers import drawn_answer

NOW = "2026-02-01T08:00:00.000Z"
PERSON = "simulated-ana"
GOLDEN = Path(__file__).parents[3] / "golden"
TEXTS: dict[Any, str] = {
    2: "good", -2: "bad", "a, b": "first", "x|y": "second", "=1+1": "third", "2": "two", "'": "quote",
    " ": "space", "unclear": "not clear", "é\u2028": "line", "$5": "price",
}  # fmt: skip
OPTIONS: list[Any] = [{"value": value, "text": {"en": text}} for value, text in TEXTS.items()]
VALUES = (
    Value(path="$.title", label="Title", value="The fox"),
    Value(path="$.title.sub", label="Below", value=None),
    Value(path="$.scenes", label="Scenes", value=[1, 2]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def question(**about: Any) -> Asked:
    made = Question.model_validate({"name": "q", "title": {"en": "Q?"}, **about})
    return Asked("q", made, None, 0, VALUES)


CHOICE, LABELS = {"type": "choice", "options": OPTIONS}, {"type": "labels", "options": OPTIONS, "most": 3}
SCALE, TEXT, EDITS = {"type": "scale", "options": OPTIONS[:2]}, {"type": "text"}, {"type": "edits"}


def round_trips(asked: Asked, answer: Any) -> bool:
    assert asked.question.problem(answer) is None
    cell = cell_of(asked, answer)
    spreadsheet = next(csv.reader(io.StringIO(_csv([[cell]]), newline="")))[0]
    back = answer_of(asked, spreadsheet)
    return back == answer and answer_of(asked, cell) == answer and type(back) is type(answer)


def _csv(rows: list[list[Any]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


any_answer = st.one_of(
    st.tuples(
        st.booleans().map(lambda unclear: {**CHOICE, "unclear": unclear}), st.sampled_from(list(TEXTS))
    ),
    st.tuples(
        st.just(LABELS),
        st.permutations([value for value in TEXTS if value != "2"]).map(lambda made: made[:3]),
    ),
    st.tuples(st.just({**TEXT, "unclear": True}), st.text(min_size=1, max_size=300).filter(str.strip)),
    st.tuples(
        st.just({**EDITS, "optional": True}),
        st.lists(
            st.fixed_dictionaries(
                {"path": st.sampled_from(["$.title", "$.title.sub", "$.scenes", "$.x"]), "new": json_values}
            ),
            max_size=4,
        ),
    ),
)


@settings(max_examples=200)
@given(any_answer)
def test_answer_when_it_stands_in_a_cell_comes_back_whatever_it_is(drawn: tuple[Any, Any]) -> None:
    about, answer = drawn
    assert round_trips(question(**about), answer)


@pytest.mark.parametrize(
    ("about", "cell", "answer"),
    [
        (SCALE, "GOOD", 2), (SCALE, "-2", -2), ({**SCALE, "type": "labels"}, "bad|good", [-2, 2]),
        ({**CHOICE, "unclear": True}, " Unclear ", "unclear"),
        (TEXT, '"Because," she said', '"Because," she said'), (EDITS, "None", []),
        (EDITS, "$.title = A fox = a friend\n$.scenes = [3]\n$.title.sub = told",
         [{"path": "$.title", "new": "A fox = a friend"}, {"path": "$.scenes", "new": [3]},
          {"path": "$.title.sub", "new": "told"}]),
    ],
)  # fmt: skip
def test_cell_when_written_by_a_person_is_read_as_it_is_meant(about: Any, cell: str, answer: Any) -> None:
    assert answer_of(question(**about), cell) == answer


@pytest.mark.parametrize(
    ("about", "cell"),
    [
        (CHOICE, "nothing"), (CHOICE, "two good"), (EDITS, "json:{"), (EDITS, "title = x"),
        (EDITS, "$.scenes = many"), (TEXT, 'json:"\\ud800"'), (EDITS, "$.scenes = NaN"),
        (EDITS, "json:" + "[" * 10**5),
    ],
)  # fmt: skip
def test_cell_when_it_is_no_answer_is_refused(about: Any, cell: str) -> None:
    with pytest.raises(ValueError, match=r"expected|each line"):
        answer_of(question(**about), cell)


# -- whole studies, through every form

answers_to_toy = st.fixed_dictionaries(
    {
        "quality": st.sampled_from([1, 2, 3, "unclear"]),
        "side": st.sampled_from([None, 1, 0, -1, "unclear"]),
        "labels": st.none() | st.just("unclear")
        | st.lists(st.sampled_from(["courage", "kindness", "self_control", "wisdom"]), min_size=1, max_size=3,
                   unique=True),
        "said": st.sampled_from(["unclear", "- it was\n  so", "=SUM(A1)", "'quoted", "因为\u3000冷"])
        | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(str.strip),
        "fixed": st.none() | st.just([]) | st.sampled_from(["since", " since", '"', "json:1", "a\nb"]).map(
            lambda new: [{"path": "$.questions[0].gold_answer", "new": new}]),
    }
)  # fmt: skip


def toy_vote(study: Study, key: str, drawn: Mapping[str, Any]) -> dict[str, Any]:
    part = study.items[key.partition("#")[0]].parts["questions"][0].id
    answers = {name: drawn[name] for name in ("quality", "side", "labels") if drawn[name] is not None}
    answers[f"said/{part}"] = drawn["said"]
    answers[f"valid/{part}"] = "valid" if drawn["fixed"] is None else "invalid"
    if drawn["fixed"] is not None:
        answers[f"fixed/{part}"] = drawn["fixed"]
    return answers


def returned(tool: str, folder: Path, load: Load, answers: Answers, user: object = "ana") -> Path:
    """Return the file that comes back from a tool, filled with answers."""
    if tool == "csv":
        return fill_csv(folder / "answers.csv", load, answers)
    tasks = json.loads((folder / "tasks.json").read_text("utf-8"))
    sheets = {sheet.key: sheet for sheet in load.sheets}
    exported = []
    for number, task in enumerate(tasks, 1):
        sheet = sheets[task["data"]["item"]]
        annotations = [annotation(load, sheet, answers[sheet.key], user, number)]
        exported.append({"id": number, "data": task["data"], "drafts": [], "annotations": annotations})
    path = folder / "project-1.json"
    path.write_text(json.dumps(exported), "utf-8")
    return path


def through(tool: str, folder: Path, study: Study, answers: Answers, user: object = "ana") -> Path:
    """Give the first seat to a tool; return the file that comes back from it, filled with answers."""
    load = Load(study, 1, sheets_of(study, 1))
    folder.mkdir(exist_ok=True)
    FORMS[tool].write(load, folder)
    return returned(tool, folder, load, answers, user)


def annotation(
    load: Load, sheet: Any, answers: Mapping[str, Any], user: object, number: int
) -> dict[str, Any]:
    return {
        "id": number, "completed_by": user, "result": list(results_of(load, sheet, answers)),
        "was_cancelled": False, "ground_truth": False, "created_at": "2026-01-20T10:00:00.123456Z",
        "updated_at": "2026-01-20T10:00:00.123456Z", "lead_time": 12.5 + number, "draft_created_at": None,
    }  # fmt: skip


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study with repetitions and check items, in which nobody votes; only read."""
    return toy_study(tmp_path_factory.mktemp("repeated") / "study", stories=5, checks=1,
                     plan=Plan(raters=1, block=3, repeats=1, gap=2, checks=1))  # fmt: skip


@pytest.mark.parametrize("tool", FORMS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_answers_when_they_went_through_a_form_are_the_same(tool, repeated, tmp_path_factory, data):
    seat = min(repeated.seats)
    sheets = sheets_of(repeated, seat)
    answers = {sheet.key: toy_vote(repeated, sheet.key, data.draw(answers_to_toy)) for sheet in sheets}
    load = Load(repeated, seat, sheets)
    folder = tmp_path_factory.mktemp("form")
    FORMS[tool].write(load, folder)
    reading = FORMS[tool].read(returned(tool, folder, load, answers), repeated)
    assert reading.problems == []
    assert {each.key: dict(each.answers) for each in reading.given} == answers
    assert {each.seat for each in reading.given} == {seat}


def test_answers_when_they_went_through_a_form_twice_are_votes_once(tmp_path: Path) -> None:
    for number, tool in enumerate(FORMS):
        study = toy_study(tmp_path / f"study-{number}", plan=Plan(raters=1, block=2))
        sheets = sheets_of(study, 1)
        answers = {sheet.key: toy_answers(study, sheet.item.item) for sheet in sheets}
        path = through(tool, tmp_path / f"form-{number}", study, answers)
        first = import_answers(study, path, tool, {"ana": PERSON}, NOW)
        assert (first.votes, first.known, first.people) == (4, 0, {PERSON: 1})
        events = read_events(study.folder)
        again = import_answers(study, path, tool, {"ana": PERSON}, "2026-03-01T00:00:00Z")
        assert (again.votes, again.known) == (0, 4)
        assert read_events(study.folder) == events
        standing = study.standing()
        assert standing.reviewers[PERSON].ended == "finished"
        voted = [event for event in events if event.kind == "voted"]
        flips = {sheet.key: sheet.dealt.flip for sheet in sheets}
        assert {event.item: event.body["flip"] for event in voted} == flips
        assert {event.body["imported"]["tool"] for event in voted} == {tool}
        assert {(len(event.body["timeline"]), len(event.body["imported"]["file"])) for event in voted} == {
            (0, 64)
        }
        said = {(row.seconds, row.at) for row in human_rows(study, standing)}
        told = {(seconds, "2026-01-20T10:00:00.123Z") for seconds in (13.5, 14.5, 15.5, 16.5)}
        assert said == (told if tool == "label-studio" else {(None, NOW)})


def test_preference_when_sides_were_turned_in_another_tool_favours_the_same_method(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study", stories=12, plan=Plan(raters=1))
    sheets = sheets_of(study, 1)
    answers = {sheet.key: {**toy_answers(study, sheet.item.item), "side": 1} for sheet in sheets}
    folder = tmp_path / "csv"
    path = through("csv", folder, study, answers)
    for sheet in sheets:  # what stands left in the page is what stands left in the vote
        page = (folder / "evidence" / f"{sheet.number:03d}.html").read_text("utf-8")
        first = sheet.item.sides[1 if sheet.dealt.flip else 0][0].name
        assert page.index(first) == min(page.index(medium.name) for medium in sheet.item.media)
    import_answers(study, path, "csv", {"ana": PERSON}, NOW)
    rows = [row for row in human_rows(study, study.standing()) if row.kind == "preference"]
    flips = {study.stands[sheet.key].about: sheet.dealt.flip for sheet in sheets}
    assert len(set(flips.values())) == 2
    assert {row.item: row.value for row in rows} == {
        about: -1 if flip else 1 for about, flip in flips.items()
    }


def test_export_when_read_says_nothing_of_what_items_stand_for(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    for tool in FORMS:
        made = export_seat(study, tmp_path / tool, tool, 1)
        content = b"".join(
            path.read_bytes() for path in sorted((tmp_path / tool).rglob("*")) if path.is_file()
        )
        names = " ".join(path.name for path in (tmp_path / tool).rglob("*"))
        for stands in study.stands.values():
            for secret in (stands.about, *stands.files.values()):
                assert secret.encode() not in content
                assert secret not in names
        assert study.secret.hex().encode() not in content
        assert json.loads((tmp_path / tool / "export.json").read_bytes())["not_held"] == list(made.limits)


def test_export_when_no_seat_is_named_has_a_folder_for_each_that_is_free(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    keys = [sheet.key for sheet in sheets_of(study, 2)]
    add_votes(study, PERSON, {keys[0]: toy_answers(study, keys[0])}, seat=2)
    made = export_seat(study, tmp_path / "all", "csv")
    assert dict(made.seats) == {1: 4, 3: 4}
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["seat-1", "seat-3"]
    assert export_seat(study, tmp_path / "two", "csv", 2).seats == {2: 3}  # what is still to be answered
    with (tmp_path / "two" / "answers.csv").open(encoding="utf-8-sig", newline="") as file:
        assert list(dict.fromkeys(row["item"] for row in csv.DictReader(file))) == keys[1:]


@pytest.mark.parametrize(("tool", "seat"), [("excel", 1), ("jsonl", 1), ("csv", 9), ("csv", 0)])
def test_export_when_there_is_no_such_tool_or_seat_is_refused(tmp_path: Path, tool: str, seat: int) -> None:
    study = toy_study(tmp_path / "study")
    with pytest.raises(ConfigError):
        export_seat(study, tmp_path / "out", tool, seat)
    assert not (tmp_path / "out").exists()


# -- what is wrong


@pytest.fixture
def filled(tmp_path: Path) -> Callable[..., tuple[Study, list[dict[str, Any]], Callable[..., Any]]]:
    """Make a study, what somebody answers in its first seat, and what imports it as a table."""

    def make(**about: Any) -> tuple[Study, list[dict[str, Any]], Callable[..., Any]]:
        study = toy_study(tmp_path / "study", **about)
        lines = [
            {"item": sheet.key, "seat": 1, "answers": toy_answers(study, sheet.item.item), "reviewer": "ana"}
            for sheet in sheets_of(study, 1)
        ]

        def take(lines: list[Any], people: Mapping[str, str] | None = None, **more: Any) -> Any:
            rows = [
                [line["seat"], line["item"], place, said, line["reviewer"]]
                for line in lines
                for place, said in line["answers"].items()
            ]
            path = tmp_path / "answers.csv"
            path.write_text(_csv([["seat", "item", "place", "answer", "reviewer"], *rows]), "utf-8")
            return import_answers(study, path, "csv", people or {"ana": PERSON}, NOW, **more)

        return study, lines, take

    return make


def changed(lines: list[dict[str, Any]], number: int, **change: Any) -> list[dict[str, Any]]:
    copied = copy.deepcopy(lines)
    copied[number] |= change
    return copied


def test_import_when_one_item_is_wrong_takes_nothing(filled, refusals, snapshot):
    study, lines, take = filled()
    # the first line has the names of columns, and each of the two items before has three
    said = refusals(lambda change: take(changed(lines, 2, **change)), [
        {"answers": {"quality": 2}}, {"answers": {"quality": 9}}, {"item": "i0"}, {"seat": 2}, {"seat": 77},
        {"seat": None}, {"seat": True}, {"reviewer": "bob@example.org"},
    ])  # fmt: skip
    assert re.sub(r"/p[0-9a-f]{8}\b", "/part", said) == snapshot
    assert read_events(study.folder) == []
    assert take(lines).votes == 4


def test_import_when_many_items_are_wrong_or_there_twice_lists_them_all(filled: Callable[..., Any]) -> None:
    _, lines, take = filled()
    wrong = changed(changed(lines, 0, answers={"quality": 2}), 3, item="i0")
    with pytest.raises(InputError, match="answered in a row before") as error:
        take([*wrong, lines[1]])
    places = [problem.where.split(" ")[0].rpartition("/")[2] for problem in error.value.problems]
    assert sorted(set(places)) == [f"answers.csv:{number}" for number in (12, 13, 14, 2, 9)]


@pytest.mark.parametrize(
    "people",
    [
        {"ana": "ana@example.org"}, {"ana": "Ana"}, {"ana": "r-5f2c91aa"}, {"ana": "a-5f2c91aa"}, {"ana": ""},
        {"ana": PERSON, "bob": PERSON}, {"ana": "simulated-Ana Lovelace"},
    ],
)  # fmt: skip
def test_import_when_a_pseudonym_cannot_be_one_is_refused(filled: Callable[..., Any], people: Any) -> None:
    _, lines, take = filled()
    with pytest.raises(ConfigError, match="--person"):
        take(lines, people)


def test_import_when_the_study_is_served_is_refused(filled: Callable[..., Any]) -> None:
    study, lines, take = filled()
    with hold(study.folder), pytest.raises(RunBusy, match="the study is served"):
        take(lines)


def test_import_when_only_checked_writes_nothing(filled: Callable[..., Any]) -> None:
    study, lines, take = filled()
    made = take(lines, dry_run=True)
    assert (made.votes, made.written) == (4, False)
    assert read_events(study.folder) == []


def test_answer_when_changed_and_imported_again_is_a_changed_vote_until_its_part_is_closed(filled):
    study, lines, take = filled()
    take(lines[:3])
    item = lines[0]["item"]
    better = changed(lines, 0, answers={**lines[0]["answers"], "quality": 3})
    assert (take(better[:3]).votes, take(lines[:3]).votes) == (1, 1)
    votes = study.standing().reviewers[PERSON].votes[item]
    assert [vote.answers["quality"] for vote in votes] == [2, 3, 2]
    assert study.standing().reviewers[PERSON].ended is None
    assert take(lines).votes == 1
    assert study.standing().reviewers[PERSON].ended == "finished"
    with pytest.raises(InputError, match="its answers are final"):
        take(better)
    assert take(lines).known == 4


def test_import_when_somebody_else_has_the_seat_or_answered_in_it_is_refused(filled):
    study, lines, take = filled()
    key = lines[0]["item"]
    add_votes(study, "simulated-bob", {key: lines[0]["answers"]}, seat=1)
    with pytest.raises(InputError, match="seat 1 is held by simulated-bob"):
        take(lines)
    events = read_events(study.folder)
    left = Event("bob/left", NOW, study.protocol.sha256, "simulated-bob", "left", None, {"why": "returned"})
    with VoteJournal(study.folder) as journal:
        journal.add_now(left)
    with pytest.raises(InputError, match="was answered by somebody else"):
        take(lines)
    assert len(read_events(study.folder)) == len(events) + 1
    assert take(lines[1:]).votes == 3
    assert study.standing().reviewers[PERSON].ended == "finished"


def test_users_of_the_tool_when_imported_are_nowhere_in_the_study(filled: Callable[..., Any]) -> None:
    study, lines, take = filled()
    secret = "ana.lovelace@example.org"
    take([{**line, "reviewer": secret} for line in lines], {secret: PERSON})
    for path in study.folder.rglob("*"):
        assert not path.is_file() or b"lovelace" not in path.read_bytes(), path


# -- Label Studio


@pytest.fixture
def exported(tmp_path: Path) -> tuple[Study, list[dict[str, Any]]]:
    """A study, and what Label Studio exports of its first seat once it is answered."""
    study = toy_study(tmp_path / "study")
    answers = {sheet.key: toy_answers(study, sheet.item.item) for sheet in sheets_of(study, 1)}
    return study, json.loads(through("label-studio", tmp_path, study, answers, 7).read_text("utf-8"))


def read_back(study: Study, folder: Path, document: Any) -> Any:
    path = folder / "export.json"
    path.write_text(json.dumps(document), "utf-8")
    return FORMS["label-studio"].read(path, study)


def test_annotations_when_of_several_people_are_told_apart(exported, tmp_path):
    study, document = exported
    other = {"id": 9, "email": "bob@example.org", "first_name": "Bob"}
    for task in document:
        mine = task["annotations"][0]
        skipped = {"was_cancelled": True, "created_at": "2027-01-01T00:00:00Z", "result": []}
        task["annotations"] += [{**mine, "id": 99, "completed_by": other}, {**mine, "id": 98, **skipped}]
        task["drafts"] = [{"result": []}]
        task["predictions"] = [{"result": [{"from_name": "quality"}]}]
    reading = read_back(study, tmp_path, document)
    assert reading.problems == []
    assert sorted(each.user for each in reading.given) == ["7"] * 4 + ["9"] * 4
    assert reading.passed == {"drafts": 4, "skipped annotations": 4}


def test_annotation_when_made_anew_by_the_same_person_is_the_one_that_counts(exported, tmp_path):
    study, document = exported
    later = copy.deepcopy(document[0]["annotations"][0])
    later |= {"id": 50, "created_at": "2026-01-21T00:00:00Z", "lead_time": None}
    later["result"][0]["value"] = {"rating": 3}
    later["result"][0]["type"] = "rating"
    document[0]["annotations"].insert(0, later)
    reading = read_back(study, tmp_path, document)
    assert reading.problems == []
    assert reading.given[0].answers["quality"] == 3
    assert (reading.given[0].at, reading.given[0].seconds) == ("2026-01-21T00:00:00.000Z", None)


def test_results_when_hidden_by_other_answers_are_left_out(exported, tmp_path):
    study, document = exported
    hidden = {"from_name": "fixed__1", "to_name": "evidence", "type": "textarea", "value": {"text": ["none"]}}
    document[0]["annotations"][0]["result"].append(hidden)
    reading = read_back(study, tmp_path, document)
    assert reading.problems == []
    assert not any(name.startswith("fixed") for name in reading.given[0].answers)
    assert reading.passed["answers to questions that other answers hide"] == 1


@pytest.mark.parametrize(
    "document",
    [
        "no json", {}, [1], [{"id": 1, "data": {}, "quality": "1"}], [{"annotations": []}],
        [{"annotations": [], "data": {"item": "i0", "seat": 1}}],
        [{"annotations": [], "data": {"item": 1, "seat": [1]}}],
    ],
)  # fmt: skip
def test_export_when_not_of_this_study_or_no_export_is_refused(tmp_path: Path, document: Any) -> None:
    study = toy_study(tmp_path / "study")
    path = tmp_path / "export.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    with pytest.raises(InputError):
        import_answers(study, path, "label-studio", {"7": PERSON}, NOW)


@pytest.mark.parametrize(
    "result",
    [
        {}, 5, {"from_name": "nothing"},
        {"from_name": "quality", "type": "choices", "value": {"choices": ["1", "2"]}},
        {"from_name": "quality", "type": "choices", "value": {"choices": []}}, {"from_name": "quality"},
        {"from_name": "quality", "type": "choices", "value": {"choices": ["4"]}},
        {"from_name": "labels", "type": "choices", "value": {"choices": ["nonsense"]}},
        {"from_name": "said__2", "type": "textarea", "value": {"text": ["because"]}},
    ],
)  # fmt: skip
def test_result_when_it_is_no_answer_is_a_problem(exported, tmp_path, result):
    study, document = exported
    document[1]["annotations"][0]["result"] = [result]
    reading = read_back(study, tmp_path, document)
    assert len(reading.problems) == 1
    assert "task 2, annotation 2" in reading.problems[0].where


def test_export_of_label_studio_when_people_answered_on_its_pages_is_read_as_they_meant_it(tmp_path):
    """The file came from Label Studio 1.23.2, where a project of a toy study was answered in a browser.

    In the second task a correction was begun and hidden again by another answer.
    """
    study = toy_study(tmp_path / "study", plan=Plan(raters=1))
    document = json.loads((GOLDEN / "label_studio" / "export.json").read_text("utf-8"))
    sheets = sheets_of(study, 1)
    for task in document:  # items of every study have names of their own
        task["data"]["item"] = sheets[task["data"]["number"] - 1].key
    reading = read_back(study, tmp_path, document)
    assert reading.problems == []
    said = [
        {"quality": 1, "side": 1, "labels": ["wisdom", "courage", "honesty"], "said": "because it\nrained",
         "valid": "invalid", "fixed": [{"path": "$.questions[0].gold_answer", "new": "since it rained"}]},
        {"quality": 2, "said": "因为 =1", "valid": "valid"},
        {"quality": 3, "side": -1, "labels": ["wisdom", "courage"], "said": "因为 =1", "valid": "valid"},
        {"quality": "unclear", "side": 0, "said": "unclear", "valid": "valid"},
    ]  # fmt: skip
    assert [
        {name.partition("/")[0]: answer for name, answer in each.answers.items()} for each in reading.given
    ] == said
    assert [(each.user, each.seconds) for each in reading.given] == [
        ("1", 17.793), ("1", 3.808), ("1", 5.957), ("1", 4.504),
    ]  # fmt: skip
    assert reading.given[0].at == "2026-11-24T22:34:17.841Z"
    made = import_answers(study, tmp_path / "export.json", "label-studio", {"1": PERSON}, NOW)
    assert made.votes == 4


@pytest.mark.parametrize("answer", ["half \ud800", 2**63, float("nan"), [float("inf")]])
def test_answer_when_it_cannot_be_stored_is_a_problem_of_its_item(exported, tmp_path, answer):
    study, document = exported
    item = study.items[study.seats[1].places[0].item]
    wrong = study.task.problems({**toy_answers(study, item.item), "said": answer}, item.part_ids)
    assert [place.partition("/")[0] for place in wrong] == ["said"]
    results = document[0]["annotations"][0]["result"]
    text = next(result for result in results if result["type"] == "textarea")
    text["value"]["text"] = ["half \ud800"]
    (tmp_path / "export.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="half a character"):
        import_answers(study, tmp_path / "export.json", "label-studio", {"7": PERSON}, NOW)
    assert read_events(study.folder) == []


def test_pictures_when_embedded_are_lists_of_each_side(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    export_seat(study, tmp_path / "out", "label-studio", 1, ExportOptions(embed=True))
    config = (tmp_path / "out" / "config.xml").read_text("utf-8")
    assert config.count("<Image ") == 2
    assert not (tmp_path / "out" / "media").exists()
    tasks = json.loads((tmp_path / "out" / "tasks.json").read_text())
    for sheet, task in zip(sheets_of(study, 1), tasks, strict=True):
        kept = study.stands[sheet.item.item].files
        for number, side in enumerate(sheet.shown.sides, 1):
            (picture,) = task["data"][f"pictures_{number}"]
            content = base64.b64decode(picture.removeprefix("data:image/png;base64,"))
            stored = Image.open(study.folder / "media" / kept[side[0].name])
            assert Image.open(io.BytesIO(content)).tobytes() == stored.tobytes()
        assert "<img" not in task["data"]["evidence"]


def test_pictures_when_items_differ_in_them_are_not_embedded(tmp_path: Path) -> None:
    items = [*toy_items(tmp_path / "pictures", 1), Drawn(about="s", story="s", parts={"questions": ()})]
    study = toy_study(tmp_path / "study", items=items, plan=Plan(raters=1))
    with pytest.raises(ConfigError, match="--embed"):
        export_seat(study, tmp_path / "out", "label-studio", 1, ExportOptions(embed=True))


def test_fields_when_items_have_different_parts_are_as_many_as_the_most(tmp_path: Path) -> None:
    items = [
        Drawn(about=f"s{count}", story=f"s{count}", texts={"x": "y"},
              parts={"questions": tuple(Part(id=f"s{count}q{n}", text=f"Q {n}?") for n in range(count))})
        for count in (1, 3)
    ]  # fmt: skip
    study = toy_study(tmp_path / "study", items=items, plan=Plan(raters=1))
    sheets = sheets_of(study, 1)
    interface = interface_of(Load(study, 1, sheets))
    assert {name for name in interface.controls if name.startswith("said")} == {
        "said__1", "said__2", "said__3",
    }  # fmt: skip
    assert any("different numbers of questions" in limit for limit in interface.limits)
    assert interface.xml.count('name="said__1" toName="evidence" rows="3"') == 1
    assert interface.xml.count("required=") == 3  # quality, said__1 and valid__1
    answers = {
        sheet.key: {"quality": 1}
        | {f"said/{part.id}": f"of {part.text}" for part in sheet.item.parts["questions"]}
        | {f"valid/{part.id}": "valid" for part in sheet.item.parts["questions"]}
        for sheet in sheets
    }
    reading = FORMS["label-studio"].read(through("label-studio", tmp_path, study, answers), study)
    assert {each.key: dict(each.answers) for each in reading.given} == answers


def test_standing_when_made_of_imported_events_is_that_of_the_study(filled: Callable[..., Any]) -> None:
    study, lines, take = filled(training=1, training_pass=1.0)
    take(lines)
    standing = Standing.of(read_events(study.folder))
    assert standing.holders == {1: PERSON}
    assert standing.reviewers[PERSON].seats == [1]
    assert {row.rater for row in human_rows(study, standing)} == {PERSON}
    assert all(row.simulated for row in human_rows(study, standing))


# -- every task there is


def drawn_answers(study: Study, sheet: Any, draw: random.Random) -> dict[str, Any]:
    """Return answers to everything that is asked, drawn among those that are right."""
    answers: dict[str, Any] = {}
    for asked in sheet.asked * 3:  # a question may depend on one that comes later
        question, part = asked.question, "" if asked.part is None else asked.part.id
        if asked.name in answers or not is_due(question, part, answers):
            continue
        values = {value.path: value.model_dump(mode="json") for value in asked.values}
        options = [option.value for option in question.choices] if question.type in CHOSEN else []
        field = Field(asked.name, question.name, part, question.type, question.most, question.optional, {},
                      options, question.unclear, values)  # fmt: skip
        if values or question.type != "edits":
            answers[asked.name] = drawn_answer(field, draw)
    assert study.task.problems(answers, sheet.item.part_ids) == {}
    return answers


def study_of(folder: Path, name: str) -> Study:
    """Make a study of a task of ours whose items have one to three parts, and show nothing."""
    questions = load_task(name).card.questions
    paths = [f"{begin}[0].x" for question in questions for begin in question.corrects] or ["$.x"]
    corrected = any(question.type == "edits" for question in questions)
    values = tuple(Value(path=path, label=path, value="a") for path in dict.fromkeys(paths) if corrected)
    lists = {question.each for question in questions if question.each is not None}
    items = [
        Drawn(about=f"s{n}", story=f"s{n}", methods=("a", "b"), values=values,
              parts={each: tuple(Part(id=f"s{n}{each}{m}", text="?", values=values) for m in range(1 + n % 3))
                     for each in lists})
        for n in range(6)
    ]  # fmt: skip
    plan = StudyPlan(name="all", title="", task=name, plan=Plan(raters=1), rules=Rules(), created_at=NOW)
    return make_study(folder, plan, items)


CHOSEN = ("choice", "scale", "labels")


@pytest.mark.parametrize("name", task_names())
def test_answers_to_a_task_of_ours_when_they_went_through_label_studio_or_a_cell_are_the_same(tmp_path, name):
    study = study_of(tmp_path / "study", name)
    sheets = sheets_of(study, 1)
    load = Load(study, 1, sheets, "zh")
    answers = {sheet.key: drawn_answers(study, sheet, random.Random(sheet.number)) for sheet in sheets}
    for sheet in sheets:
        for asked in sheet.asked:
            if asked.name in answers[sheet.key]:
                assert round_trips(asked, answers[sheet.key][asked.name])
                assert hint(asked, "zh")
    document = [
        {"id": sheet.number, "data": {"item": sheet.key, "seat": 1},
         "annotations": [annotation(load, sheet, answers[sheet.key], 1, 1)]}
        for sheet in sheets
    ]  # fmt: skip
    reading = read_back(study, tmp_path, document)
    assert reading.problems == []
    assert {each.key: dict(each.answers) for each in reading.given} == answers
    config = ElementTree.fromstring(interface_of(load).xml)
    names = [element.get("name") for element in config.iter() if element.get("toName")]
    assert sorted(names) == sorted(interface_of(load).controls)
    choices = {each.get("name"): {choice.get("alias") for choice in each.iter("Choice")}
               for each in config.iter("Choices")}  # fmt: skip
    for view in config.iter("View"):
        if view.get("whenTagName"):
            known = choices[view.get("whenTagName")]
            assert set((view.get("whenChoiceValue") or "").split(",")) <= known


@pytest.mark.parametrize("tool", ["csv", "label-studio"])
@pytest.mark.parametrize("kept", [True, False])
def test_answers_on_a_record_when_the_file_names_what_was_shown_are_bound_to_it(tmp_path, tool, kept):
    study = record_study(tmp_path / "study", 1)
    item = next(iter(study.items))
    text = through(tool, tmp_path / "given", study, {item: answers_of(study, item)}, 7).read_text("utf-8")
    seen, person = str(study.stands[item].seen), {"7" if tool == "label-studio" else "": PERSON}
    (tmp_path / "wrong").write_text(text.replace(seen, "0" * 64), "utf-8")
    with pytest.raises(InputError, match="another content was shown there"):
        import_answers(study, tmp_path / "wrong", tool, person, NOW)
    (tmp_path / "file").write_text(text if kept else text.replace(seen, ""), "utf-8")
    import_answers(study, tmp_path / "file", tool, person, NOW)
    assert {row.seen_sha256 for row in human_rows(study, study.standing())} == {seen if kept else None}

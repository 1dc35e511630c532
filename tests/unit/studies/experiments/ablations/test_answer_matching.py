"""Matchers against labelled answers: false accepts and rejects by hand, file forms, every error named."""

import json
from pathlib import Path

import pytest

from fabula.errors import InputError, UserError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.matching import keyword
from fabula.evaluation.stats.uncertainty import Uncertainty
from fabula.releases.loading import Release, load
from fabula.schemas.judgement import HumanRow
from fabula.schemas.katha import Question
from fabula.studies.experiments.ablations.matching import (
    Labelled,
    answer_matching,
    matching_errors,
    read_labelled,
)
from fabula.studies.experiments.ablations.measuring import Sources
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.planted_judgements import write_judged
from fabula.testing.simulated_evaluations import write_loadable_release

PLAIN = Uncertainty(resamples=0)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return load(write_loadable_release(tmp_path_factory.mktemp("matching") / "release", sample_bundles(2)))


@pytest.fixture(scope="module")
def questions(release: Release) -> dict[str, Question]:
    return {question.question_id: question for record in release for question in record.questions}


def labelled(questions: dict[str, Question]) -> list[Labelled]:
    gold = questions["kb25k_0001_q1"].gold_answer  # the river had risen all night
    return [
        Labelled("kb25k_0001_q1", gold, True),
        Labelled("kb25k_0001_q1", gold.upper(), True),
        Labelled("kb25k_0001_q1", f"because: {gold}", True),
        Labelled("kb25k_0001_q1", "high water after dark", True),
        Labelled("kb25k_0001_q1", "the river was dry all night", False),
        Labelled("kb25k_0002_q1", "no idea", False),
    ]


def test_errors_when_worked_by_hand_are_shares_of_wrong_and_of_right_answers(
    release: Release, questions: dict[str, Question], tmp_path: Path
) -> None:
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(vars(answer)) + "\n" for answer in labelled(questions)))
    run = write_judged(tmp_path / "run", release, ("m",), lambda *_: True)
    rows = {
        row.matcher: row for row in answer_matching(Sources({"katha": run}, Definitions(resamples=0)), path)
    }
    assert list(rows) == ["exact", "keyword", "accepted"]
    # exact: the first alone is right letter by letter, so 3 of 4 right ones are rejected
    assert rows["exact"].scores["false_rejects"].value == 3 / 4
    assert rows["exact"].scores["false_accepts"].value == 0
    # accepted: the paraphrase alone is unknown
    assert rows["accepted"].scores["false_rejects"].value == 1 / 4
    assert rows["accepted"].scores["false_accepts"].value == 0
    # keyword: "river ... all night" has 4 of the 6 words, so the wrong answer is accepted: 1 of 2
    assert rows["keyword"].scores["false_accepts"].value == 1 / 2
    assert rows["keyword"].scores["false_rejects"].value == 1 / 4
    assert {(row.compared, row.unknown) for row in rows.values()} == {(6, 0)}
    assert rows["keyword"].scores["human_correlation"].reason == "no person has answered yet"


def test_errors_when_people_voted_go_by_what_more_than_half_say(
    release: Release, questions: dict[str, Question], tmp_path: Path
) -> None:
    said = [[1, 1, 0], [1], [0, 1, 1, None], [1, 1], [0, 0, 1], [0, 1]]  # the third has half, the last a tie
    rows = [
        HumanRow(
            kind="equivalence", rater=f"p{person}", item=answer.question_id, answer=answer.answer, value=value
        ).as_json()
        for answer, values in zip(labelled(questions), said, strict=True)
        for person, value in enumerate(values)
    ]
    path = tmp_path / "votes.jsonl"
    again = {**rows[0], "value": 0, "repeat": 1}  # the same person was asked once more: not counted
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, again, again]))
    answers = read_labelled(path, questions)
    assert [answer.correct for answer in answers] == [True, True, None, True, False, None]
    run = write_judged(tmp_path / "run", release, ("m",), lambda *_: True)
    (row,) = answer_matching(Sources({"katha": run}, Definitions(resamples=0)), path, ["accepted"])
    assert (row.compared, row.unknown, row.undecided) == (4, 0, 2)
    assert row.scores["false_rejects"].value == 1 / 3  # the paraphrase, of three right answers
    assert row.scores["false_accepts"].value == 0
    path.write_text(
        json.dumps({**rows[0], "value": [1]}) + "\n" + json.dumps({**rows[0], "item": "q"}) + "\n"
    )
    with pytest.raises(InputError) as caught:
        read_labelled(path, questions)
    assert len(caught.value.problems) == 2


def test_errors_when_nothing_was_labelled_or_a_matcher_has_no_verdict_say_so(
    release: Release, questions: dict[str, Question], tmp_path: Path
) -> None:
    run = write_judged(tmp_path / "run", release, ("m",), lambda *_: True)
    given = Sources({"katha": run}, Definitions(resamples=0))
    (row,) = answer_matching(given, None, ["accepted"])
    assert row.scores["false_accepts"].reason == "no answers were labelled as right or wrong"

    def silent(_key: object, _answer: str) -> bool:
        raise InputError([UserError("q", what="the archive has no verdict", fix="run the matcher")])

    scores, unknown = matching_errors(labelled(questions), questions, silent, PLAIN)
    assert unknown == 6 and scores["false_accepts"].status == "undefined"
    only_right = [answer for answer in labelled(questions) if answer.correct]
    scores, _ = matching_errors(only_right, questions, keyword, PLAIN)
    assert scores["false_accepts"].reason == "no wrong answer was compared"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.jsonl", '{"question_id": "kb25k_0001_q1", "answer": "x"}\n', "a.jsonl:1"),
        ("a.jsonl", '{"question_id": "nowhere", "answer": "x", "correct": true}\n', "no question 'nowhere'"),
        ("a.jsonl", "not json\n", "no labelled answer"),
        ("a.jsonl", "", "holds no answers"),
        ("a.csv", "question_id,answer,correct\nkb25k_0001_q1,x,maybe\n", "a.csv:2"),
        ("a.csv", 'question_id,answer,correct\nkb25k_0001_q1,"x,yes\n', "cannot be read"),
    ],
)
def test_file_when_a_line_is_wrong_is_named_with_what_to_do(
    questions: dict[str, Question], tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as raised:
        read_labelled(tmp_path / name, questions)
    assert (told in str(raised.value) and "correct" in str(raised.value)) or "its questions" in str(
        raised.value
    )

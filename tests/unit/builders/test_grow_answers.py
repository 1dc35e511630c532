"""Accepted answers that grow: who may add one, what joins, and what is kept of the rest."""

import json
from typing import Any

import pytest

from fabula.builders.katha.drafts import maker_of
from fabula.engine.stage import Answer, NoAnswer
from fabula.schemas.katha import KathaBundle, ProducerLine

JUDGE = "openai:judge"


class Asker:
    """Answers blindly per model, and judges the new answers in ``wrong`` to be others."""

    def __init__(self, blind: Any, wrong: tuple[str, ...] = (), refuses: str = "") -> None:
        self.blind, self.wrong, self.refuses = blind, wrong, refuses
        self.asked: list[tuple[str, str, int]] = []

    async def ask(self, ask: Any) -> Answer[Any]:
        name = ask.prompt.partition("@")[0].removeprefix("katha/")
        self.asked.append((name, ask.request.model, ask.sample))
        if name == self.refuses:
            raise NoAnswer("refused", "I would rather not")
        if isinstance(self.blind, Exception):
            raise self.blind
        if name == "answer_questions":
            answers = self.blind[ask.request.model, ask.sample]
            rows = [
                {"number": n, "status": "recoverable" if text else "unclear", "answer": text}
                for n, text in enumerate(answers, start=1)
            ]
            return Answer(ask.read({"answers": rows}))
        shown = str(ask.request.messages[-1].parts[0]).split("Other answers to question ")[1:]
        rows = []
        for n, block in enumerate(shown, start=1):
            lines = [line.partition("] ") for line in block.splitlines() if line.startswith("[")]
            bad = [int(number[1:]) for number, _, text in lines if text in self.wrong]
            rows.append({"number": n, "remark": None, "gold_supported": True, "wrong_answers": bad})
        return Answer(ask.read({"questions": rows}))


@pytest.fixture
def tale(drafted: Any) -> Any:
    """A sample story drafted by rules, with one question."""
    fields = drafted["kb25k_0001"]
    question = {
        **fields["questions"][0],
        "question_type": "causal",
        "question": "Why did the ant fall into the spring?",
        "gold_answer": "it slipped on a wet leaf",
        "accepted_answers": ["it slipped on a wet leaf", "a wet leaf"],
    }
    return {**fields, "questions": [question], "questions_by": "rules@1", "answers": []}


def grow(katha: Any, tale: Any, asker: Any = None, **settings: Any) -> Any:
    chosen = {"model": JUDGE, **settings} if asker is not None else settings
    return katha.run_stage("grow_answers", tale, chosen, asker=asker).fields


def history(fields: Any) -> list[tuple[Any, ...]]:
    return [(row["answer"], row["verdict"], row["joined"], row["reason"]) for row in fields["answer_history"]]


def person(tale: Any, answer: str, question_id: str | None = None) -> Any:
    name = question_id or tale["questions"][0]["question_id"]
    return {"story_id": tale["story"]["id"], "question_id": name, "answer": answer, "who": "ana"}


def test_answers_when_judged_the_same_join_with_producer_and_judge(katha, tale) -> None:
    blind = {
        ("openai:a", 0): ["the leaf was slippery"],
        ("openai:a", 1): ["it was pushed"],
        ("openai:b", 0): ["It slipped on a wet leaf!"],
        ("openai:b", 1): ["The leaf was slippery."],
    }
    asker = Asker(blind, wrong=("it was pushed",))
    fields = grow(katha, tale, asker, answerers=["openai:a", "openai:b"], samples=2)
    assert asker.asked == [
        *[("answer_questions", model, sample) for model, sample in blind],
        ("check_answers", JUDGE, 0),
    ]
    assert fields["grown"] == {tale["questions"][0]["question_id"]: ["the leaf was slippery"]}
    assert history(fields) == [
        ("the leaf was slippery", True, True, "the same in other words"),
        ("it was pushed", False, False, "another answer"),
        ("It slipped on a wet leaf!", None, False, "it is accepted already"),
        ("The leaf was slippery.", True, False, "the same answer was given before"),
    ]
    first, second, known, _ = fields["answer_history"]
    assert first["producer"].startswith("openai:a via katha/answer_questions@")
    assert (first["judge"], second["judge"], known["judge"]) == (JUDGE, JUDGE, None)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("Into the spring", "it stands in the question"), ("unknown", "it says nothing"),
     ("A WET LEAF", "it is accepted already")],
)  # fmt: skip
def test_answer_when_it_may_never_be_accepted_is_not_judged(katha, tale, answer, reason) -> None:
    asker = Asker({(JUDGE, 0): [answer]})
    fields = grow(katha, tale, asker)
    assert asker.asked == [("answer_questions", JUDGE, 0)]
    assert fields["grown"] == {}
    assert history(fields) == [(answer, None, False, reason)]


def test_answer_of_a_person_when_no_model_judges_is_kept_and_does_not_join(katha, tale) -> None:
    tale["answers"] = [person(tale, "the leaf was slippery"), person(tale, "x", "no_such_q01")]
    fields = grow(katha, tale)
    assert fields["grown"] == {}
    assert history(fields) == [
        ("the leaf was slippery", None, False, "not judged: there is no model"),
        ("x", None, False, "there is no question of this id"),
    ]
    assert {row["producer"] for row in fields["answer_history"]} == {"hand:ana"}


def test_question_of_a_person_when_models_answer_takes_only_what_people_said(katha, tale) -> None:
    tale |= {"questions_by": None, "given": {"author": "bo", "questions": tale["questions"]}}
    tale["answers"] = [person(tale, "its feet found no hold")]
    fields = grow(katha, tale, Asker({(JUDGE, 0): ["the leaf was slippery"]}))
    assert history(fields) == [("its feet found no hold", True, True, "the same in other words")]


def test_judge_when_it_refuses_lets_nothing_join_and_says_why(katha, tale) -> None:
    fields = grow(katha, tale, Asker({(JUDGE, 0): ["slippery leaf"]}, refuses="check_answers"))
    ((_, verdict, joined, reason),) = history(fields)
    assert (verdict, joined) == (None, False)
    assert reason == "not judged: refused: I would rather not"


def test_record_when_answers_joined_has_them_with_their_producer_and_history(katha, tale) -> None:
    tale |= grow(katha, tale, Asker({(JUDGE, 0): ["the leaf was slippery"]}))
    done = katha.run_stage("apply_edits", tale).fields
    (question,) = done["draft"]["questions"]
    assert question["accepted_answers"][-1] == "the leaf was slippery"
    made = done["draft"]["producers"]
    assert str(maker_of("$.questions[0].accepted_answers[2]", made)).startswith(f"{JUDGE} via katha/answer")
    assert maker_of("$.questions[0].accepted_answers", made) == "rules@1"
    tale |= done
    measured = katha.run_stage("measure_edits", tale).fields["edit_distances"]
    assert measured["$.questions[*].accepted_answers"]["changed"] == 0
    bundle = katha.run_stage("assemble_records", tale).fields["bundle"]
    assert [row["joined"] for row in bundle["answers"]] == [True]
    assert KathaBundle.model_validate(bundle).as_json()["answers"] == bundle["answers"]
    line = {"id": "x", "fields": [], "answers": bundle["answers"]}
    assert ProducerLine.model_validate(line).answers[0].judge == JUDGE


def test_file_of_answers_when_read_belongs_to_stories_and_names_every_problem(
    katha, write_rows, tmp_path
) -> None:
    from fabula.errors import InputError

    stories = write_rows({})
    row = {"story_id": "one", "question_id": "one_q01", "answer": "a fox", "who": "ana"}
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert katha.load([("stories", stories), ("answers", path)])["one"]["answers"] == [row]
    wrong = [{**row, "story_id": "two"}, {**row, "answer": ""}, {**row, "mood": "glad"}]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in wrong))
    with pytest.raises(InputError) as caught:
        katha.load([("stories", stories), ("answers", path)])
    assert len(caught.value.problems) == 3

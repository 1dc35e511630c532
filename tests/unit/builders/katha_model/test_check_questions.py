"""What a model finds in questions: guesses, what cannot be drawn, halves in one scene, repetitions."""

from typing import Any

import pytest

from fabula.builders.katha.checks.questions import NOT_SHOWN
from fabula.builders.katha.checks.settling import depends_on_transition
from fabula.builders.katha.checks.verify_record import VerifySettings
from fabula.builders.katha.checks.verifying import check_draft
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.katha_model import KathaModel


@pytest.fixture
def draft(draft: Any) -> Any:
    """The draft of the hat with three more questions, the first two about transitions."""
    made = [
        ("causal", [1, 2], "Why did Mira run to the water?", "a gust tore her hat from her head", [1, 2]),
        ("consequence", [3, 4], "What came of the fisherman's swing?", "he hooked the hat", [4]),
        ("action_visibility", None, "What does Mira bring?", "a basket of fresh bread", [5]),
    ]
    first = draft["questions"][0]
    more = [
        {
            **first,
            "question_id": f"tale_1_q{number:02d}",
            "question_type": kind,
            "target_transition": pair,
            "target_scene": None if pair else 5,
            "question": question,
            "gold_answer": gold,
            "accepted_answers": [gold, f"{gold} indeed"],
            "evidence_scenes": evidence,
        }
        for number, (kind, pair, question, gold, evidence) in enumerate(made, start=1)
    ]
    return {**draft, "questions": more}


def guesses(answer: str, number: int = 1, *, blindly: bool = True, more: Any = None) -> Any:
    """The stand-in that guesses an answer, without any scene or with some; ``more`` changes other replies."""

    def handler(asked: Any) -> Any:
        reply = KathaModel()(asked)
        prompt = prompt_of(asked)
        if prompt == "katha/guess_answers" and (asked.text.count(NOT_SHOWN) == 5) is blindly:
            reply["answers"][number - 1] |= {"status": "guessed", "answer": answer}
        return more(prompt, reply) if more else reply

    return handler


def found(model: Any, hat: Any, draft: Any, handler: Any, code: str, **settings: Any) -> list[Any]:
    chosen = VerifySettings(model="openai:tested", **settings)
    checks = model.run(check_draft(hat.story, draft, model.tools(handler, chosen)))
    return [check for check in checks if check["code"] == code]


def test_question_when_an_accepted_answer_is_guessed_from_the_title_fails_with_the_guess(
    model, hat, draft
) -> None:
    gold = draft["questions"][0]["gold_answer"]
    first, *rest = found(model, hat, draft, guesses(gold.upper() + "!"), "question_not_guessable")
    assert first["passed"] is False
    assert first["path"] == "$.questions[0].question"
    assert "from title and characters alone" in first["note"]
    assert repr(gold.upper() + "!") in first["note"]
    assert {check["passed"] for check in rest} == {True}


def test_question_when_guessed_from_the_other_scenes_names_them(model, hat, draft) -> None:
    gold = draft["questions"][0]["gold_answer"]
    evidence = draft["questions"][0]["evidence_scenes"]
    handler = guesses(gold, blindly=False)
    first, *_ = found(model, hat, draft, handler, "question_not_guessable")
    others = ", ".join(str(number) for number in range(1, 6) if number not in evidence)
    assert first["passed"] is False
    assert f"the other scenes ({others})" in first["note"]


def test_guess_when_asked_for_never_sees_the_evidence_nor_the_answers(model, hat, draft) -> None:
    tools = model.tools()
    model.run(check_draft(hat.story, draft, tools))
    texts = [scene["scene_text"] for scene in draft["scenes"]]
    asked = [model.asked(ask.request) for ask in tools.asker.asks]
    guessing = [request.text for request in asked if prompt_of(request) == "katha/guess_answers"]
    assert all(text not in guessing[0] for text in texts)
    assert len(guessing) > 1
    for text in guessing[1:]:
        about = [part for part in draft["questions"] if part["question"] in text]
        (evidence,) = {tuple(part["evidence_scenes"]) for part in about}
        shown = tuple(number for number, scene in enumerate(texts, start=1) if scene in text)
        assert set(shown) == set(range(1, 6)) - set(evidence)
        assert text.count(NOT_SHOWN) == len(evidence)


@pytest.mark.parametrize(("wrong", "passed"), [(False, False), (True, True)])
def test_guess_when_in_other_words_is_judged_with_the_accepted_answers(
    model, hat, draft, wrong, passed
) -> None:
    # Behind the accepted answers and the one that the stand-in gave without having seen them.
    place = len(draft["questions"][0]["accepted_answers"]) + 1

    def judge(prompt: str | None, reply: Any) -> Any:
        if prompt == "katha/check_answers" and wrong:
            reply["questions"][0]["wrong_answers"] = [place]
        return reply

    handler = guesses("a strong gust had come", more=judge)
    first, *_ = found(model, hat, draft, handler, "question_not_guessable")
    assert first["passed"] is passed
    answerable, *_ = found(model, hat, draft, handler, "model_answerable")
    assert answerable["passed"] is True  # only the guess was another answer


def changed(number: int, **fields: Any) -> Any:
    def handler(asked: Any) -> Any:
        reply = KathaModel()(asked)
        if prompt_of(asked) == "katha/check_questions":
            reply["questions"][number - 1] |= fields
        return reply

    return handler


def test_question_when_no_picture_shows_it_fails_with_the_remark(model, hat, draft) -> None:
    handler = changed(2, drawable=False, remark="It asks for\na number.")
    checks = found(model, hat, draft, handler, "question_drawable")
    assert [check["passed"] for check in checks] == [True, False] + [True] * (len(checks) - 2)
    assert checks[1]["note"].endswith("It asks for a number.")


def test_question_when_both_halves_are_in_one_scene_does_not_depend_on_its_transition(
    model, hat, draft
) -> None:
    about = [n for n, part in enumerate(draft["questions"], start=1) if depends_on_transition(part)]
    assert all(draft["questions"][n - 1]["question_type"] != "moral" for n in about)
    handler = changed(about[0], earlier_scene=2, later_scene=2)
    checks = found(model, hat, draft, handler, "question_depends_on_transition")
    assert [check["path"] for check in checks] == [f"$.questions[{n - 1}].question" for n in about]
    assert [check["passed"] for check in checks] == [False] + [True] * (len(about) - 1)
    assert about == [1, 2]
    assert "in scene 2" in checks[0]["note"]
    with pytest.raises(model.BadReply, match="question 1: earlier_scene and later_scene must be scenes"):
        found(model, hat, draft, changed(1, later_scene=None), "question_drawable")

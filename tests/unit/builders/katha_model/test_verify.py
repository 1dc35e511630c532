"""What a model finds in a draft."""

from dataclasses import replace

import pytest

from fabula.builders.katha.checks.verifying import check_draft
from fabula.engine.stage import NoAnswer
from fabula.models.stand_ins import ANSWERED
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.katha_model import KathaModel


def verdicts(checks, code):
    return [check["passed"] for check in checks if check["code"] == code]


def wrong_numbers(reply):
    return {"questions": [{**entry, "wrong_answers": [9]} for entry in reply["questions"]]}


def altered(prompt_id, change):
    """The stand-in, with its replies to one prompt changed."""

    def handler(asked):
        reply = KathaModel()(asked)
        if prompt_of(asked) == f"katha/{prompt_id}":
            reply = change(reply)
        return reply

    return handler


def requests_of(model, tools, prompt_id):
    asked = [model.asked(ask.request) for ask in tools.asker.asks]
    return [request for request in asked if prompt_of(request) == prompt_id]


def checked(model, hat, draft, prompt_id, change):
    return model.run(check_draft(hat.story, draft, model.tools(altered(prompt_id, change))))


def test_draft_when_nothing_is_wrong_passes_every_check(model, hat, draft) -> None:
    tools = model.tools()
    checks = model.run(check_draft(hat.story, draft, tools))
    assert {check["passed"] for check in checks} == {True}
    prompts = [prompt_of(model.asked(ask.request)) for ask in tools.asker.asks]
    hidden = {tuple(question["evidence_scenes"]) for question in draft["questions"]}
    assert prompts.count("katha/guess_answers") == 1 + len(hidden - {(1, 2, 3, 4, 5)})
    assert len(prompts) == len(set(prompts)) + prompts.count("katha/guess_answers") - 1 == 7 + len(hidden)
    assert len(verdicts(checks, "model_answerable")) == len(draft["questions"])
    assert len(verdicts(checks, "model_consistent")) == 9
    assert len(verdicts(checks, "model_label_fits")) == 2


def test_question_when_the_text_is_unclear_fails(model, hat, draft) -> None:
    def unclear(reply):
        reply["answers"][1] |= {"status": "unclear", "answer": None}
        return reply

    checks = checked(model, hat, draft, "answer_questions", unclear)
    failed = [check for check in checks if check["passed"] is False]
    assert [check["path"] for check in failed] == ["$.questions[1].gold_answer"]
    assert failed[0]["code"] == "model_answerable"
    assert "unclear" in failed[0]["note"]


def test_question_when_answered_in_other_words_is_judged_among_the_accepted_answers(
    model, hat, draft
) -> None:
    def otherwise(reply):
        reply["answers"][0]["answer"] = "because of the strong gust"
        return reply

    tools = model.tools(altered("answer_questions", otherwise))
    checks = model.run(check_draft(hat.story, draft, tools))
    (judging,) = requests_of(model, tools, "katha/check_answers")
    assert "because of the strong gust" in judging.text
    assert "the same in other words" in checks[0]["note"]
    assert checks[0]["passed"] is True


def test_question_when_answered_by_another_answer_fails_with_the_remark(model, hat, draft) -> None:
    place = len(draft["questions"][0]["accepted_answers"])

    def handler(asked):
        reply = KathaModel()(asked)
        if prompt_of(asked) == "katha/answer_questions":
            reply["answers"][0]["answer"] = "she was hungry"
        if prompt_of(asked) == "katha/check_answers":
            reply["questions"][0] |= {"wrong_answers": [place], "remark": "Nobody is hungry."}
        return reply

    check, equivalent, *_ = model.run(check_draft(hat.story, draft, model.tools(handler)))
    assert (check["code"], check["passed"]) == ("model_answerable", False)
    assert "'she was hungry'" in check["note"]
    assert "Nobody is hungry." in check["note"]
    assert equivalent["passed"] is True  # the answer in question is not one of the accepted ones


def test_accepted_answer_when_judged_another_one_is_named(model, hat, draft) -> None:
    def wrong(reply):
        reply["questions"][0] |= {"wrong_answers": [1], "remark": "It says something else."}
        return reply

    checks = checked(model, hat, draft, "check_answers", wrong)
    failed = [check for check in checks if check["passed"] is False]
    assert [(check["code"], check["path"]) for check in failed] == [
        ("model_answers_equivalent", "$.questions[0].accepted_answers")
    ]
    assert repr(draft["questions"][0]["accepted_answers"][1]) in failed[0]["note"]


def test_gold_answer_when_the_text_does_not_support_it_fails(model, hat, draft) -> None:
    def unsupported(reply):
        reply["questions"][0]["gold_supported"] = False
        return reply

    assert checked(model, hat, draft, "check_answers", unsupported)[0]["passed"] is False


def test_variant_when_more_or_less_is_changed_fails(model, hat, draft) -> None:
    def wrong(reply):
        reply["variants"][0]["meaning_changed"] = False
        reply["variants"][1] |= {"rest_kept": False, "description_fits": False, "remark": "A new dog."}
        return reply

    checks = checked(model, hat, draft, "check_contrastives", wrong)
    failed = {(check["code"], check["path"]): check["note"] for check in checks if check["passed"] is False}
    assert set(failed) == {
        ("model_contrast_minimal", "$.variants[0].contrastive_scene_text"),
        ("model_contrast_minimal", "$.variants[1].contrastive_scene_text"),
        ("model_contrast_described", "$.variants[1].semantic_delta"),
    }
    assert "A new dog." in failed["model_contrast_minimal", "$.variants[1].contrastive_scene_text"]


def test_fields_when_contradicted_are_named_and_empty_ones_are_not(model, hat, draft) -> None:
    assert draft["scenes"][0]["emotion"] is None

    def wrong(reply):
        reply["scenes"][0] |= {
            "contradicted": ["state", "emotion"],
            "remark": "Not\nso.",
            "renderable": False,
        }
        reply["transitions"][2]["contradicted"] = ["causality"]
        reply |= {"moral_label_fits": False, "label_remark": "It is about luck."}
        return reply

    checks = checked(model, hat, draft, "check_record", wrong)
    failed = [(check["code"], check["path"]) for check in checks if check["passed"] is False]
    assert failed == [
        ("model_consistent", "$.scenes[0].state"),
        ("model_renderable", "$.scenes[0].visual_must_show"),
        ("model_consistent", "$.transitions[2].causality"),
        ("model_label_fits", "$.moral_label"),
    ]
    assert all("\n" not in check["note"] for check in checks)


@pytest.mark.parametrize(
    "prompt_id",
    ["answer_questions", "check_questions", "guess_answers", "check_answers", "check_contrastives",
     "check_record"],
)  # fmt: skip
def test_check_when_the_model_refuses_has_no_verdict_and_says_why(model, hat, draft, prompt_id) -> None:
    checks = checked(model, hat, draft, prompt_id, lambda _: NoAnswer("refused", "the model\nrefused"))
    unjudged = [check for check in checks if check["passed"] is None]
    assert unjudged
    assert all("refused: the model refused" in check["note"] for check in unjudged)
    assert all(check["passed"] is True for check in checks if check not in unjudged)


@pytest.mark.parametrize(
    ("prompt_id", "change"),
    [
        ("answer_questions", lambda reply: {"answers": reply["answers"][1:]}),
        ("answer_questions", lambda reply: {"answers": [{**e, "answer": None} for e in reply["answers"]]}),
        ("check_answers", wrong_numbers),
        ("check_questions", lambda reply: {"questions": reply["questions"][1:]}),
        ("check_questions", lambda reply: {"questions": [{**e, "repeats": 9} for e in reply["questions"]]}),
        ("guess_answers", lambda reply: {"answers": reply["answers"][1:]}),
        ("check_contrastives", lambda reply: {"variants": [{**e, "number": 1} for e in reply["variants"]]}),
        ("check_record", lambda reply: {**reply, "scenes": reply["scenes"][:2]}),
        ("check_record", lambda reply: {**reply, "transitions": []}),
    ],
)  # fmt: skip
def test_check_when_the_reply_is_about_something_else_goes_back(model, hat, draft, prompt_id, change) -> None:
    with pytest.raises(model.BadReply):
        checked(model, hat, draft, prompt_id, change)


@pytest.mark.parametrize(("notes", "judges"), [((), set()), ((ANSWERED,), {f"openai:tested, {ANSWERED}"})])
def test_checks_when_a_stand_in_answered_name_it_as_their_judge(model, hat, draft, notes, judges) -> None:
    tools = model.tools()
    ask = tools.asker.ask

    async def answered(asked):
        return replace(await ask(asked), notes=notes)

    tools.asker.ask = answered
    checks = model.run(check_draft(hat.story, draft, tools))
    assert {check["producer"] for check in checks if "producer" in check} == judges

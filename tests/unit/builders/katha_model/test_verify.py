"""What a model finds in a draft: blind readers first, then one judgement of the whole record."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fabula.builders.katha.checks.rules import depends_on_transition
from fabula.builders.katha.checks.verify_record import (
    MORAL,
    PROMPTS,
    READ,
    Case,
    VerifySettings,
    check_draft,
    guess,
    verifier_settings,
)
from fabula.builders.katha.repair_draft import RepairSettings
from fabula.builders.katha.write_contrastives import wanted_kinds
from fabula.engine.stage import REHEARSED, NoAnswer
from fabula.models.spec import ANSWERED
from fabula.schemas.values import vocabulary
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.katha_model import KathaModel


def altered(**changes: Any) -> Any:
    """The stand-in, with its replies to some prompts changed."""

    def handler(asked: Any) -> Any:
        reply, prompt = KathaModel()(asked), str(prompt_of(asked)).removeprefix("katha/")
        return changes[prompt](reply) if prompt in changes else reply

    return handler


def changed(part: str, number: int = 1, **values: Any) -> Any:
    """A judgement of the record in which one entry is otherwise."""

    def change(reply: Any) -> Any:
        reply[part][number - 1] |= values
        return reply

    return change


def checked(model: Any, hat: Any, draft: Any, **changes: Any) -> list[Any]:
    return model.run(check_draft(hat.story, draft, model.tools(altered(**changes)))).checks


def failed(checks: list[Any]) -> dict[tuple[str, str], str]:
    return {(check["code"], check["path"]): check["note"] for check in checks if check["passed"] is False}


def test_draft_when_nothing_is_wrong_passes_every_check_in_three_calls(model, hat, draft) -> None:
    tools = model.tools()
    checks = model.run(check_draft(hat.story, draft, tools)).checks
    assert {check["passed"] for check in checks} == {True}
    assert [prompt_of(model.asked(ask.request)) for ask in tools.asker.asks] == list(PROMPTS)
    assert {ask.repairs for ask in tools.asker.asks} == {0}, "a judge is asked once"
    counts = Counter(check["code"] for check in checks)
    assert counts["model_answerable"] == len(draft["questions"])
    assert counts["model_consistent"] == 9 and counts["model_label_fits"] == 2


@pytest.mark.parametrize(
    ("readers", "judged", "note"),
    [
        ({"status": "unclear", "short": None}, {}, "found no answer"),
        ({}, {"gold_supported": False, "remark": "Nobody\nsays so."}, "the answer: Nobody says so."),
        ({}, {"one_answer": False, "remark": "She also cries."}, "settle one answer: She"),
        ({"short": "she was hungry"}, {"wrong_answers": [2], "remark": "No."}, "'she was hungry', which is"),
    ],
)
def test_question_when_the_text_does_not_settle_its_answer_fails(model, hat, draft, readers, judged, note):
    def read(reply: Any) -> Any:
        reply["answers"][0] |= readers
        return reply

    gold = draft["questions"][0]["gold_answer"]
    draft["questions"][0]["accepted_answers"] = [gold, "in other words"]
    checks = checked(model, hat, draft, answer_questions=read, check_record=changed("questions", **judged))
    assert note in failed(checks)["model_answerable", "$.questions[0].gold_answer"]


def test_readers_when_one_of_them_says_another_thing_are_no_fault_of_the_question(model, hat, draft) -> None:
    def read(reply: Any) -> Any:
        reply["answers"][0] |= {"full": "she was hungry", "own_words": "a storm took it"}
        return reply

    accepted = len(draft["questions"][0]["accepted_answers"])
    wrong = changed("questions", wrong_answers=[accepted])
    tools = model.tools(altered(answer_questions=read, check_record=wrong))
    found = model.run(check_draft(hat.story, draft, tools))
    assert failed(found.checks) == {}
    assert [(one.answer, one.verdict) for one in found.readings if one.question == 0] == [
        ("she was hungry", False), ("a storm took it", True),
    ]  # fmt: skip


def test_accepted_answer_when_judged_another_one_is_named(model, hat, draft) -> None:
    wrong = changed("questions", wrong_answers=[1], remark="It says something else.")
    found = model.run(check_draft(hat.story, draft, model.tools(altered(check_record=wrong))))
    ((place, note),) = failed(found.checks).items()
    assert place == ("model_answers_equivalent", "$.questions[0].accepted_answers")
    assert repr(draft["questions"][0]["accepted_answers"][1]) in note
    assert found.wrong == {0: (draft["questions"][0]["accepted_answers"][1],)}


@pytest.mark.parametrize(
    ("values", "code", "note"),
    [
        (
            {"drawable": False, "remark": "It asks for\na number."},
            "question_drawable",
            "It asks for a number.",
        ),
        ({"earlier_scene": 2, "later_scene": 2}, "question_depends_on_transition", "in scene 2"),
        ({"repeats": 1}, "question_distinct", "it asks the same as question 1"),
    ],
)
def test_question_when_it_is_weak_fails_and_says_how(model, hat, draft, values, code, note) -> None:
    assert depends_on_transition(draft["questions"][1])
    checks = checked(model, hat, draft, check_record=changed("questions", 2, **values))
    ((place, said),) = failed(checks).items()
    assert place == (code, "$.questions[1].question") and note in said


def test_moral_question_when_the_label_does_not_fit_fails_with_it_and_no_reader_is_asked(model, hat, draft):
    def unfit(reply: Any) -> Any:
        reply["labels"] |= {"moral_label_fits": False, "remark": "It is about luck."}
        return reply

    tools = model.tools(altered(check_record=unfit))
    checks = model.run(check_draft(hat.story, draft, tools)).checks
    at = next(n for n, part in enumerate(draft["questions"]) if part["question_type"] == "moral")
    assert set(failed(checks)) == {
        ("model_label_fits", "$.moral_label"), ("model_answerable", f"$.questions[{at}].gold_answer"),
    }  # fmt: skip
    assert "(moral)" not in model.asked(tools.asker.asks[0].request).text.partition("The questions:")[2]


@pytest.mark.parametrize("weakness", ["told", "detail", "unclear"])
def test_question_when_weak_is_not_worth_asking_but_a_moral_one_is_judged_by_its_label(
    model, hat, draft, weakness
) -> None:
    weak = {"weakness": weakness, "drawable": False, "one_answer": False, "remark": "It says 'hat'."}
    found = failed(checked(model, hat, draft, check_record=changed("questions", **weak)))
    assert found["question_worth_asking", "$.questions[0].question"].endswith(": It says 'hat'.")

    def moral(reply: Any) -> Any:
        for part, entry in zip(draft["questions"], reply["questions"], strict=True):
            entry.update(weak if part["question_type"] == "moral" else {})
        return reply

    assert not failed(checked(model, hat, draft, check_record=moral))


def test_variant_when_more_or_less_is_changed_fails(model, hat, draft) -> None:
    def wrong(reply: Any) -> Any:
        reply["variants"][0]["meaning_changed"] = False
        reply["variants"][1] |= {"rest_kept": False, "description_fits": False, "remark": "A new dog."}
        return reply

    found = failed(checked(model, hat, draft, check_record=wrong))
    assert set(found) == {
        ("model_contrast_minimal", "$.variants[0].contrastive_scene_text"),
        ("model_contrast_minimal", "$.variants[1].contrastive_scene_text"),
        ("model_contrast_described", "$.variants[1].semantic_delta"),
    }
    assert "A new dog." in found["model_contrast_minimal", "$.variants[1].contrastive_scene_text"]


@pytest.mark.parametrize(
    ("seen", "judged", "fault"),
    [
        ({"change_types": []}, {}, "no change of meaning"),
        ({"change_types": ["replace_outcome"]}, {"description_fits": False}, "read as replace_outcome"),
        ({"change_types": ["replace_outcome"]}, {}, None),
        ({"contradicts": [1]}, {}, "it contradicts scene 1"),
        ({}, {"possible": False, "remark": "He is gone by then."}, "He is gone by then."),
        ({"others_changed": True}, {}, "more than one meaning"),
        ({"entities_kept": False}, {}, "not kept"),
        ({"fluent": False}, {}, "a broken sentence"),
    ],
)
def test_variant_when_read_whole_by_somebody_who_is_not_told_holds_or_says_why_not(
    model, hat, draft, seen, judged, fault
) -> None:
    checks = checked(
        model,
        hat,
        draft,
        read_variants=changed("variants", **seen),
        check_record=changed("variants", **judged),
    )
    (check,) = (one for one in checks if one["code"] == READ and one["path"].startswith("$.variants[0]"))
    assert check["passed"] is (fault is None)
    assert (fault or "what was read") in check["note"]


def test_variant_when_its_reader_finds_another_moral_than_it_names_fails(model, hat, draft) -> None:
    other = next(word for word in vocabulary("moral_label").values if word != "gratitude")
    draft["variants"][0]["contrastive_moral"] = other
    found = failed(checked(model, hat, draft))
    assert list(found) == [(MORAL, "$.variants[0].contrastive_moral")]
    draft["variants"][0]["contrastive_moral"] = None
    assert MORAL not in {check["code"] for check in checked(model, hat, draft)}


def test_reader_of_variants_when_asked_sees_whole_stories_and_no_description(model, hat, draft) -> None:
    tools = model.tools()
    model.run(check_draft(hat.story, draft, tools))
    text = model.asked(tools.asker.asks[1].request).text
    assert all(part["semantic_delta"] not in text for part in draft["variants"])
    kept = draft["scenes"][0]["scene_text"]
    told = [part for part in draft["variants"] if part["changed_scene_id"] != 1]
    assert text.count(f"] {kept}") == 1 + len(told)


def test_fields_when_contradicted_are_named_and_empty_ones_are_not(model, hat, draft) -> None:
    assert draft["scenes"][0]["emotion"] is None

    def wrong(reply: Any) -> Any:
        reply["scenes"][0] |= {
            "contradicted": ["state", "emotion"], "remark": "Not\nso.", "renderable": False,
        }  # fmt: skip
        reply["transitions"][2]["contradicted"] = ["causality"]
        return reply

    found = failed(checked(model, hat, draft, check_record=wrong))
    assert list(found) == [
        ("model_consistent", "$.scenes[0].state"),
        ("model_renderable", "$.scenes[0].visual_must_show"),
        ("model_consistent", "$.transitions[2].causality"),
    ]
    assert all("\n" not in note for note in found.values())


def test_narrative_when_its_source_is_shown_is_compared_with_it(model, hat, draft) -> None:
    def wrong(reply: Any) -> Any:
        reply["narrative"] = {
            "misplaced": "The bread comes last.", "missing": [{"sentence": 2, "remark": "The gust."}],
            "added": [{"scene": 1, "remark": "Nobody sings."}],
        }  # fmt: skip
        return reply

    tools = model.tools(altered(check_record=wrong))
    found = failed(model.run(check_draft(hat.story, draft, tools, ["A.", "B."])).checks)
    assert found["narrative_complete", "$.story_text"] == "missing of the source: sentence 2: The gust."
    assert found["narrative_adds_nothing", "$.story_text"] == "not in the source: scene 1: Nobody sings."
    assert "The bread comes last." in found["narrative_in_order", "$.story_text"]
    assert failed(checked(model, hat, draft, check_record=wrong)) == {}, "there is no source to compare with"


@pytest.mark.parametrize("prompt_id", [name.removeprefix("katha/") for name in PROMPTS])
def test_check_when_the_model_refuses_has_no_verdict_and_when_it_is_away_is_made_later(
    model, hat, draft, prompt_id
) -> None:
    refused = {prompt_id: lambda _: NoAnswer("refused", "the model\nrefused")}
    checks = checked(model, hat, draft, **refused)
    unjudged = [check for check in checks if check["passed"] is None]
    assert unjudged
    assert all("refused: the model refused" in check["note"] for check in unjudged)
    assert all(check["passed"] is True for check in checks if check not in unjudged)
    with pytest.raises(NoAnswer, match="unavailable"):
        checked(model, hat, draft, **{prompt_id: lambda _: NoAnswer("unavailable", "down")})


@pytest.mark.parametrize(
    ("prompt_id", "change"),
    [
        ("answer_questions", lambda reply: {"answers": [{**e, "short": None} for e in reply["answers"]]}),
        ("check_record", changed("questions", wrong_answers=[9])),
        ("check_record", changed("questions", 2, repeats=9)),
        ("check_record", changed("questions", later_scene=None)),
        ("check_record", changed("scenes", scene=2)),
        ("read_variants", lambda reply: {"variants": [{**e, "number": 1} for e in reply["variants"]]}),
    ],
)
def test_check_when_the_reply_is_about_something_else_is_malformed(model, hat, draft, prompt_id, change):
    with pytest.raises(model.BadReply):
        checked(model, hat, draft, **{prompt_id: change})


def test_settings_when_there_is_a_verifier_ask_it_and_make_the_same_request(model, hat, draft) -> None:
    settings = RepairSettings(model="openai:drafts", planner="model", verifier="google:checks")
    assert verifier_settings(settings).model == "google:checks"
    asked = []
    for chosen in (settings, model.settings(model="google:checks")):
        tools = model.tools(settings=chosen)
        model.run(check_draft(hat.story, draft, tools))
        asked.append([ask.request.key() for ask in tools.asker.asks])
    assert asked[0] == asked[1]


def test_draft_when_it_has_no_questions_or_variants_asks_about_the_rest(model, hat, draft) -> None:
    tools = model.tools()
    checks = model.run(check_draft(hat.story, {**draft, "questions": [], "variants": []}, tools)).checks
    assert len(tools.asker.asks) == 1
    assert checks


def test_rehearsal_when_nothing_is_answered_counts_every_call(model, hat, draft) -> None:
    tools = model.tools(lambda _: NoAnswer(REHEARSED, "nobody is asked"))
    model.run(check_draft(hat.story, draft, tools))
    assert [prompt_of(model.asked(ask.request)) for ask in tools.asker.asks] == list(PROMPTS)


@pytest.mark.parametrize(("notes", "judges"), [((), set()), ((ANSWERED,), {f"openai:tested, {ANSWERED}"})])
def test_checks_when_a_stand_in_answered_name_it_as_their_judge(model, hat, draft, notes, judges) -> None:
    tools = model.tools()
    ask = tools.asker.ask

    async def answered(asked: Any) -> Any:
        return replace(await ask(asked), notes=notes)

    tools.asker.ask = answered
    checks = model.run(check_draft(hat.story, draft, tools)).checks
    assert {check["producer"] for check in checks if "producer" in check} == judges


def test_guess_when_it_is_right_is_a_note_with_a_share_that_never_fails(model, hat, draft) -> None:
    gold = draft["questions"][1]["gold_answer"]

    def handler(asked: Any) -> Any:
        reply = KathaModel()(asked)
        if draft["questions"][1]["question"] in asked.text:
            reply = {"status": "guessed", "answer": f"{gold.upper()}!"}
        return reply

    tools = model.tools(handler, VerifySettings(model="openai:tested", guesses=2))
    notes = model.run(guess(Case(hat.story, draft, tools), 2))
    asked = [n for n, part in enumerate(draft["questions"]) if part["question_type"] != "moral"]
    assert [check["path"] for check in notes] == [f"$.questions[{n}].question" for n in asked]
    assert {check["passed"] for check in notes} == {True}
    said = "guessed right by {} of 2 who saw nothing but the question"
    assert [check["note"] for check in notes] == [said.format(2 * (n == 1)) for n in asked]
    texts = [model.asked(ask.request).text for ask in tools.asker.asks]
    assert len(texts) == 2 * len(asked)
    for text in texts:
        assert sum(part["question"] in text for part in draft["questions"]) == 1
        assert hat.story["title"] not in text


def test_kinds_of_change_over_many_stories_come_equally_often() -> None:
    counts = Counter(kind for number in range(3000) for kind in wanted_kinds(f"story_{number}", 2))
    assert set(counts) == set(vocabulary("change_type").values)
    assert all(900 < count < 1100 for count in counts.values())

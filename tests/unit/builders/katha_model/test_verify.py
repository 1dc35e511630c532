"""What a model finds in a draft: blind readers first, then one judgement of the whole record.

All that is found in a good draft is pinned whole once; each fault by what it changes of that.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fabula.builders.katha.checks import verify_record
from fabula.builders.katha.checks.rules import depends_on_transition
from fabula.builders.katha.repair_draft import RepairSettings
from fabula.builders.katha.write_contrastives import wanted_kinds
from fabula.engine.stage import REHEARSED, NoAnswer
from fabula.models.spec import ANSWERED
from fabula.schemas.values import vocabulary
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.katha_model import KathaModel

Reply = dict[str, Any]


def altered(**faults: Any) -> Any:
    """The stand-in, whose reply to some prompts is otherwise: part -> number of its entry -> values.

    A part that is no list is otherwise itself; a function gives the whole reply.
    """

    def handler(asked: Any) -> Any:
        reply, prompt = KathaModel()(asked), str(prompt_of(asked)).removeprefix("katha/")
        fault = faults.get(prompt, {})
        if callable(fault):
            return fault(reply)
        for part, values in fault.items():
            if not isinstance(reply[part], list):
                reply[part] = {**(reply[part] or {}), **values}
                continue
            for number, value in values.items():
                reply[part][number - 1] |= value
        return reply

    return handler


def check(model: Any, hat: Any, draft: Any, sentences: Any = (), **faults: Any) -> Any:
    return model.run(verify_record.check_draft(hat.story, draft, model.tools(altered(**faults)), sentences))


def said(found: Any) -> str:
    """Return all that is found in a draft, a check a line."""
    marks = {True: "passed", False: "FAILED", None: "nobody"}
    lines = [f"{marks[one['passed']]} {one['code']} {one['path']}: {one['note']}" for one in found.checks]
    read = [f"question {one.question}: {one.answer!r} {one.verdict}" for one in found.readings]
    return "\n".join([*lines, *read, *(f"wrong {place}: {texts}" for place, texts in found.wrong.items())])


WEAK = {"drawable": False, "one_answer": False, "remark": "It says 'hat'."}
REPLACED = {"change_types": ["replace_outcome"]}
CASES: dict[str, Reply] = {
    "no reader finds an answer": {"answer_questions": {"answers": {1: {"status": "unclear", "short": None}}}},
    "the answer is not supported": {
        "check_record": {"questions": {1: {"gold_supported": False, "remark": "Nobody\nsays so."}}},
    },
    "there are two answers": {
        "check_record": {"questions": {1: {"one_answer": False, "remark": "She also cries."}}},
    },
    "all readers say another thing": {
        "answer_questions": {"answers": {1: {"short": "she was hungry"}}},
        "check_record": {"questions": {1: {"wrong_answers": [2], "remark": "No."}}},
    },
    "one reader says another thing": {
        "answer_questions": {"answers": {1: {"full": "she was hungry", "own_words": "a storm took it"}}},
        "check_record": {"questions": {1: {"wrong_answers": [2]}}},
    },
    "an accepted answer is another one": {
        "check_record": {"questions": {1: {"wrong_answers": [1], "remark": "It says something else."}}},
    },
    "no picture shows it": {
        "check_record": {"questions": {2: {"drawable": False, "remark": "It asks for\na number."}}},
    },
    "one scene has both": {"check_record": {"questions": {2: {"earlier_scene": 2, "later_scene": 2}}}},
    "it asks the same": {"check_record": {"questions": {2: {"repeats": 1}}}},
    "the label does not fit": {
        "check_record": {"labels": {"moral_label_fits": False, "remark": "It is about luck."}},
    },
    **{f"weak, {weakness}": {"check_record": {"questions": {1: WEAK | {"weakness": weakness}}}}
       for weakness in ("told", "detail", "unclear")},
    # a moral question is judged by its label alone
    "moral and weak": {"check_record": {"questions": {4: WEAK | {"weakness": "told"}}}},
    "variants change nothing, and more": {
        "check_record": {"variants": {
            1: {"meaning_changed": False},
            2: {"rest_kept": False, "description_fits": False, "remark": "A new dog."},
        }},
    },
    # what a reader sees who is not told of the change
    "no change is seen": {"read_variants": {"variants": {1: {"change_types": []}}}},
    "another change is seen": {"read_variants": {"variants": {1: REPLACED}}},
    "another change is seen and it is described otherwise": {
        "read_variants": {"variants": {1: REPLACED}},
        "check_record": {"variants": {1: {"description_fits": False}}},
    },
    "it contradicts a scene": {"read_variants": {"variants": {1: {"contradicts": [1]}}}},
    "it cannot be": {
        "check_record": {"variants": {1: {"possible": False, "remark": "He is gone by then."}}},
    },
    "others changed": {"read_variants": {"variants": {1: {"others_changed": True}}}},
    "somebody is gone": {"read_variants": {"variants": {1: {"entities_kept": False}}}},
    "a broken sentence": {"read_variants": {"variants": {1: {"fluent": False}}}},
    "fields are contradicted": {  # of which emotion is empty
        "check_record": {
            "scenes": {1: {"contradicted": ["state", "emotion"], "remark": "Not\nso.", "renderable": False}},
            "transitions": {3: {"contradicted": ["causality"]}},
        },
    },
}  # fmt: skip
NARRATIVE = {
    "misplaced": "The bread comes last.", "missing": [{"sentence": 2, "remark": "The gust."}],
    "added": [{"scene": 1, "remark": "Nobody sings."}],
}  # fmt: skip


def test_draft_when_nothing_is_wrong_passes_every_check_in_three_calls(model, hat, draft, snapshot) -> None:
    tools = model.tools()
    assert draft["scenes"][0]["emotion"] is None and depends_on_transition(draft["questions"][1])
    assert said(model.run(verify_record.check_draft(hat.story, draft, tools))) == snapshot
    assert [prompt_of(model.asked(ask.request)) for ask in tools.asker.asks] == list(verify_record.PROMPTS)
    assert {ask.repairs for ask in tools.asker.asks} == {0}, "a judge is asked once"
    assert "(moral)" not in model.asked(tools.asker.asks[0].request).text.partition("The questions:")[2]


@pytest.fixture(scope="module")
def good(model: Any, hat: Any) -> str:
    """What is found in a draft in which nothing is wrong."""
    return said(check(model, hat, model.run(hat.drafted(model.planner()))))


@pytest.mark.parametrize("case", CASES)
def test_draft_when_something_is_wrong_fails_by_what_is_pinned(
    model, hat, draft, good, case, difference, snapshot
) -> None:
    assert difference(good, said(check(model, hat, draft, **CASES[case]))) == snapshot


def test_narrative_when_its_source_is_shown_is_compared_with_it(
    model, hat, draft, good, difference, snapshot
) -> None:
    faults = {"check_record": {"narrative": NARRATIVE}}
    plain, shown = (said(check(model, hat, draft, some, **faults)) for some in ((), ["A.", "B."]))
    assert plain == good, "there is no source to compare with"
    assert difference(plain, shown) == snapshot


def test_variant_when_its_reader_finds_another_moral_than_it_names_fails(model, hat, draft) -> None:
    other = next(word for word in vocabulary("moral_label").values if word != "gratitude")
    draft["variants"][0]["contrastive_moral"] = other
    (fault,) = (one for one in check(model, hat, draft).checks if not one["passed"])
    assert (fault["code"], fault["path"]) == (verify_record.MORAL, "$.variants[0].contrastive_moral")
    draft["variants"][0]["contrastive_moral"] = None
    assert verify_record.MORAL not in {one["code"] for one in check(model, hat, draft).checks}


def test_reader_of_variants_when_asked_sees_whole_stories_and_no_description(model, hat, draft) -> None:
    tools = model.tools()
    model.run(verify_record.check_draft(hat.story, draft, tools))
    text = model.asked(tools.asker.asks[1].request).text
    assert all(part["semantic_delta"] not in text for part in draft["variants"])
    kept = draft["scenes"][0]["scene_text"]
    told = [part for part in draft["variants"] if part["changed_scene_id"] != 1]
    assert text.count(f"] {kept}") == 1 + len(told)


@pytest.mark.parametrize("prompt_id", [name.removeprefix("katha/") for name in verify_record.PROMPTS])
def test_check_when_the_model_refuses_has_no_verdict_and_when_it_is_away_is_made_later(
    model, hat, draft, prompt_id
) -> None:
    refused = {prompt_id: lambda _: NoAnswer("refused", "the model\nrefused")}
    checks = check(model, hat, draft, **refused).checks
    unjudged = [one["note"] for one in checks if one["passed"] is None]
    assert unjudged and all("refused: the model refused" in note for note in unjudged)
    assert {one["passed"] for one in checks} <= {True, None}
    with pytest.raises(NoAnswer, match="unavailable"):
        check(model, hat, draft, **{prompt_id: lambda _: NoAnswer("unavailable", "down")})


@pytest.mark.parametrize(
    ("prompt_id", "fault"),
    [
        ("answer_questions", lambda reply: {"answers": [{**e, "short": None} for e in reply["answers"]]}),
        ("check_record", {"questions": {1: {"wrong_answers": [9]}}}),
        ("check_record", {"questions": {2: {"repeats": 9}}}),
        ("check_record", {"questions": {1: {"later_scene": None}}}),
        ("check_record", {"scenes": {1: {"scene": 2}}}),
        ("read_variants", lambda reply: {"variants": [{**e, "number": 1} for e in reply["variants"]]}),
    ],
)
def test_check_when_the_reply_is_about_something_else_is_malformed(model, hat, draft, prompt_id, fault):
    with pytest.raises(model.BadReply):
        check(model, hat, draft, **{prompt_id: fault})


def test_settings_when_there_is_a_verifier_ask_it_and_make_the_same_request(model, hat, draft) -> None:
    settings = RepairSettings(model="openai:drafts", planner="model", verifier="google:checks")
    assert verify_record.verifier_settings(settings).model == "google:checks"
    asked = []
    for chosen in (settings, model.settings(model="google:checks")):
        tools = model.tools(settings=chosen)
        model.run(verify_record.check_draft(hat.story, draft, tools))
        asked.append([ask.request.key() for ask in tools.asker.asks])
    assert asked[0] == asked[1]


def test_draft_when_it_has_no_questions_or_variants_asks_about_the_rest(model, hat, draft) -> None:
    tools = model.tools()
    checks = model.run(
        verify_record.check_draft(hat.story, {**draft, "questions": [], "variants": []}, tools)
    ).checks
    assert len(tools.asker.asks) == 1
    assert checks


def test_rehearsal_when_nothing_is_answered_counts_every_call(model, hat, draft) -> None:
    tools = model.tools(lambda _: NoAnswer(REHEARSED, "nobody is asked"))
    model.run(verify_record.check_draft(hat.story, draft, tools))
    assert [prompt_of(model.asked(ask.request)) for ask in tools.asker.asks] == list(verify_record.PROMPTS)


@pytest.mark.parametrize(("notes", "judges"), [((), set()), ((ANSWERED,), {f"openai:tested, {ANSWERED}"})])
def test_checks_when_a_stand_in_answered_name_it_as_their_judge(model, hat, draft, notes, judges) -> None:
    tools = model.tools()
    ask = tools.asker.ask

    async def answered(asked: Any) -> Any:
        return replace(await ask(asked), notes=notes)

    tools.asker.ask = answered
    checks = model.run(verify_record.check_draft(hat.story, draft, tools)).checks
    assert {one["producer"] for one in checks if "producer" in one} == judges


def test_guess_when_it_is_right_is_a_note_with_a_share_that_never_fails(model, hat, draft) -> None:
    gold = draft["questions"][1]["gold_answer"]

    def handler(asked: Any) -> Any:
        reply = KathaModel()(asked)
        if draft["questions"][1]["question"] in asked.text:
            reply = {"status": "guessed", "answer": f"{gold.upper()}!"}
        return reply

    tools = model.tools(handler, verify_record.VerifySettings(model="openai:tested", guesses=2))
    notes = model.run(verify_record.guess(verify_record.Case(hat.story, draft, tools), 2))
    asked = [n for n, part in enumerate(draft["questions"]) if part["question_type"] != "moral"]
    assert [note["path"] for note in notes] == [f"$.questions[{n}].question" for n in asked]
    assert {note["passed"] for note in notes} == {True}
    said = "guessed right by {} of 2 who saw nothing but the question"
    assert [note["note"] for note in notes] == [said.format(2 * (n == 1)) for n in asked]
    texts = [model.asked(ask.request).text for ask in tools.asker.asks]
    assert len(texts) == 2 * len(asked)
    for text in texts:
        assert sum(part["question"] in text for part in draft["questions"]) == 1
        assert hat.story["title"] not in text


def test_kinds_of_change_over_many_stories_come_equally_often() -> None:
    counts = Counter(kind for number in range(3000) for kind in wanted_kinds(f"story_{number}", 2))
    assert set(counts) == set(vocabulary("change_type").values)
    assert all(900 < count < 1100 for count in counts.values())

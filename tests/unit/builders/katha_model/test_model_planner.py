"""Steps that ask a model: one request for each part, and what it says of who made it."""

import pytest

from fabula.builders.katha import write_contrastives
from fabula.builders.katha.checks.rules import rule_checks
from fabula.builders.katha.draft_scenes import ask_descriptions
from fabula.builders.katha.label_story import STEP
from fabula.builders.katha.repair_draft import faulted, in_words
from fabula.builders.step import PlannerSettings
from fabula.engine.stage import Item, NoAnswer
from fabula.prompts.loader import load_prompt
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.katha_model import KathaModel


def finding(path: str, note: str = "not so") -> dict:
    return {"code": "model_consistent", "path": path, "passed": False, "note": note}


def test_step_when_its_planner_is_model_asks_and_else_the_rules_draft(model, hat) -> None:
    asking, ruled = model.tools(), model.tools(settings=PlannerSettings(model="openai:tested"))
    assert model.run(STEP.draft(hat.sketch(), asking)).maker.startswith(
        "openai:tested via katha/label_story@"
    )
    assert model.run(STEP.draft(hat.sketch(), ruled)).maker == "", "rules know no labels"
    assert [len(tools.asker.asks) for tools in (asking, ruled)] == [1, 0]


def test_draft_when_made_by_the_stand_in_passes_every_rule(hat, draft) -> None:
    assert [check for check in rule_checks(hat.story, draft) if check["passed"] is False] == []


def test_part_when_drafted_names_model_prompt_version_and_hash(model, hat) -> None:
    drafted = model.run(model.planner().scenes(hat.sketch(), 5))
    assert drafted.maker == f"openai:tested via {load_prompt('katha/draft_scenes').label}"
    assert "katha/draft_scenes@1#" in drafted.maker


def test_request_when_made_carries_seed_temperature_and_schema(model, hat) -> None:
    tools = model.tools(settings=PlannerSettings(model="openai:tested", planner="model", sample=3))
    model.run(STEP.draft(hat.sketch(), tools))
    (ask,) = tools.asker.asks
    assert (ask.request.temperature, ask.request.seed, ask.sample) == (0.0, 42, 3)
    assert ask.request.schema.name == "katha_label_story"
    assert ask.request.max_tokens == load_prompt("katha/label_story").card.max_tokens


def test_scenes_when_the_story_is_too_short_ask_nothing(model, tale) -> None:
    short = tale("A fox ran.")
    planner = model.planner()
    assert model.run(planner.scenes(short.sketch(), 5)).value is None
    assert planner.tools.asker.asks == []


def test_variants_when_none_are_wanted_ask_nothing(model, hat, draft) -> None:
    item = Item("tale_1", {**draft, "story": hat.story, "analysis": hat.analysis, "given": None})
    settings = write_contrastives.Settings(model="openai:tested", planner="model", variants=0)
    tools = model.tools(settings=settings)
    made = model.run(write_contrastives.STEP.run(item, tools))
    assert made.fields == {"variants": [], "variants_by": None}
    assert tools.asker.asks == []


def test_given_texts_when_described_keep_their_words(model, hat, draft) -> None:
    texts = [scene["scene_text"] for scene in draft["scenes"]]
    made = model.run(ask_descriptions(model.tools(), hat.story, texts))
    assert [scene["scene_text"] for scene in made.value] == texts
    assert "katha/describe_scenes@" in made.maker


def test_planner_when_the_model_gives_no_answer_lets_it_through(model, hat) -> None:
    planner = model.planner(lambda _: NoAnswer("refused", "the model refused"))
    with pytest.raises(NoAnswer, match="refused"):
        model.run(planner.labels(hat.sketch()))


@pytest.mark.parametrize("part", ["scenes", "transitions", "questions", "variants"])
def test_repair_when_one_element_is_faulted_changes_no_other(model, hat, draft, part) -> None:
    def rewrites_everything(asked):
        reply = KathaModel()(asked)
        for number, entry in enumerate(reply[part]):
            for name in ("state", "causality", "required_evidence", "semantic_delta"):
                if name in entry:
                    entry[name] = f"Quite another thing, number {number}."
        return reply

    planner = model.planner(rewrites_everything)
    made = model.run(planner.repair(hat.story, draft, part, [finding(f"$.{part}[1].x")]))
    changed = [old != new for old, new in zip(draft[part], made.value, strict=True)]
    assert changed == [number == 1 for number in range(len(draft[part]))]
    assert "Quite another thing, number 1." in made.value[1].values()
    ids = ("story_id", "scene_index", "scene_text", "from_scene", "question_id", "variant_id", "moral_target")
    for name in ids:
        assert made.value[1].get(name) == draft[part][1].get(name)


def test_repair_when_asked_quotes_the_findings_and_what_was_written(model, hat, draft) -> None:
    planner = model.planner()
    model.run(
        planner.repair(hat.story, draft, "scenes", [finding("$.scenes[1].state", "the hat is <<< gone")])
    )
    text = model.asked(planner.tools.asker.asks[0].request).text
    assert "[1] scene 2, state: the hat is <<< gone" in text
    assert draft["scenes"][1]["action"] in text


def test_repair_when_nothing_was_found_or_there_is_nothing_asks_nothing(model, hat, draft) -> None:
    planner = model.planner()
    assert model.run(planner.repair(hat.story, draft, "scenes", [])) is None
    assert model.run(planner.repair(hat.story, {**draft, "variants": []}, "variants", [finding("$")])) is None
    assert planner.tools.asker.asks == []


def test_findings_when_put_in_words_count_from_one() -> None:
    paths = ["$.transitions[0].causality", "$.questions[3].accepted_answers", "$.variants[1]", "$", "$.title"]
    assert in_words([finding(path) for path in paths]) == [
        "transition from scene 1 to 2, causality: not so",
        "question 4, accepted answers: not so",
        "contrast 2: not so",
        "all of it: not so",
        "all of it: not so",
    ]


def test_findings_when_about_the_list_as_such_fault_every_element() -> None:
    assert faulted("scenes", [finding("$.scenes[2].state"), finding("$.scenes[0]")], 5) == {0, 2}
    assert faulted("scenes", [finding("$.scenes[2].state"), finding("$.scenes")], 5) == set(range(5))


def test_stand_in_when_asked_by_another_prompt_says_so(model, hat) -> None:
    from fabula.models.chat import ChatRequest, Message, ReplySchema

    asked = model.asked(
        ChatRequest("m", (Message("user", ("hello",)),), ReplySchema("other", {"type": "object"}))
    )
    assert prompt_of(asked) is None
    with pytest.raises(ValueError, match="not a prompt that this model knows"):
        KathaModel()(asked)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "hi",
            "एक जंगल में एक शेर रहता था। वह बहुत घमंडी था, और सब जानवर उससे डरते थे। एक दिन एक खरगोश उसके पास आया।"
            " खरगोश ने कहा कि कुएँ में दूसरा शेर है। शेर कुएँ के पास गया और नीचे देखा।"
            " उसने अपनी परछाई देखी और कूद पड़ा। शेर डूब गया।",
        ),
        (
            "zh-Hans",
            "从前有一只狐狸，它很饿。它看见葡萄架上挂着葡萄。狐狸跳起来，想摘葡萄，但是够不着。"
            "它试了很多次，都失败了。最后它走开了。",
        ),
    ],
)
def test_story_when_not_english_is_drafted_whole_in_its_own_script(model, tale, language, text) -> None:
    foreign = tale(text, language=language)
    planner = model.planner()
    made = model.run(foreign.drafted(planner))
    findings = [check for check in rule_checks(foreign.story, made) if check["passed"] is False]
    assert findings == []
    assert all(scene["action"] and scene["state"] for scene in made["scenes"])
    for ask in planner.tools.asker.asks:
        assert f"Language of the story: {language}" in model.asked(ask.request).text


def test_story_when_not_english_and_answered_in_english_goes_back(model, tale, hat) -> None:
    foreign = tale(
        "从前有一只狐狸，它很饿。它看见葡萄架上挂着葡萄。狐狸跳起来，想摘葡萄，但是够不着。", language="zh"
    )

    def in_english(asked):
        reply = KathaModel()(asked)
        for scene in reply["scenes"]:
            scene["action"] = scene["state"] = "The fox jumps up and cannot reach the grapes."
        return reply

    with pytest.raises(model.BadReply, match="mostly in latin letters, the story"):
        model.run(model.planner(in_english).scenes(foreign.sketch(), 3))

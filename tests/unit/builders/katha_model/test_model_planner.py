"""Steps that ask a model: one request for each part, and what it says of who made it."""

import pytest

from fabula.builders.katha.checks.rules import rule_checks
from fabula.builders.katha.choosing.assess_story import STEP
from fabula.builders.katha.draft_scenes import ask_scenes
from fabula.builders.step import PlannerSettings
from fabula.testing.katha_model import KathaModel


def test_step_when_its_planner_is_model_asks_and_else_the_rules_draft(model, hat) -> None:
    asking, ruled = model.tools(), model.tools(settings=PlannerSettings(model="openai:tested"))
    assert model.run(STEP.draft(hat.sketch(), asking)).maker.startswith(
        "openai:tested via katha/assess_story@"
    )
    assert model.run(STEP.draft(hat.sketch(), ruled)).maker == "", "rules know no labels"
    assert [len(tools.asker.asks) for tools in (asking, ruled)] == [1, 0]


def test_draft_when_made_by_the_stand_in_passes_every_rule(hat, draft) -> None:
    assert [check for check in rule_checks(hat.story, draft) if check["passed"] is False] == []


def test_given_texts_when_described_keep_their_words(model, hat, draft) -> None:
    texts = [scene["scene_text"] for scene in draft["scenes"]]
    made = model.run(ask_scenes(model.tools(), hat.story, texts))
    assert [scene["scene_text"] for scene in made.value] == texts
    assert "katha/draft_scenes@" in made.maker


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

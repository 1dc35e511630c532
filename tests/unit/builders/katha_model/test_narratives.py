"""The narrative that a model writes from a source, and its judgement of the story before."""

import json

import pytest

from fabula.builders.katha.checks.rules import rule_checks
from fabula.builders.katha.choosing.screen_stories import ASSESS_STORY
from fabula.builders.katha.draft_scenes import STEP as SCENES
from fabula.builders.katha.draft_scenes import ask_scenes
from fabula.builders.katha.drafts import NORMALISE_STORY as NORMALISE
from fabula.builders.katha.drafts import NormaliseSettings as Settings
from fabula.builders.katha.drafts import Sketch, make_bundle, read_narrative, told_story
from fabula.builders.step import PlannerSettings
from fabula.builders.text.boundaries import analyze
from fabula.engine.stage import Item, Made, Rejected
from fabula.schemas.katha import KathaBundle, Narrative
from fabula.testing.katha_model import KathaModel

SCENES_OF_FOX = [
    "A hungry fox saw grapes on a high vine.",
    "The fox jumped at the grapes again and again.",
    "The grapes hung too high, and the fox fell on the grass.",
    "The fox gave up and turned away from the vine.",
    "The fox walked off with its nose in the air.",
]


def fitting(**changed):
    """A reply for a source of six sentences, of which the last is left out."""
    scenes = [{"from_sentences": [place], "text": text} for place, text in enumerate(SCENES_OF_FOX, start=1)]
    return {"scenes": scenes, "left_out": [{"sentences": [6], "reason": "moral"}], **changed}


STORY = {
    "id": "fox_1", "title": "The Fox", "language": "en", "text": "A  fox ...",
    "normalized_text": "A fox saw grapes. It jumped. It fell. It gave up. It left. So do fools.",
}  # fmt: skip


def read(model, reply):
    return read_narrative(reply, STORY, ["..."] * 6, 5)


def test_narrative_when_the_reply_fits_accounts_for_every_sentence(model) -> None:
    narrative = read(model, fitting())
    assert narrative["text"] == " ".join(SCENES_OF_FOX)
    assert narrative["alignment"] == [[1], [2], [3], [4], [5]]
    assert narrative["left_out"] == [{"sentences": [6], "reason": "moral"}]
    assert len(narrative["source_sha256"]) == 64


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"left_out": []}, "nothing is said of the sentences 6"),
        ({"left_out": [{"sentences": [6, 7], "reason": "moral"}]}, "there is no 7"),
        ({"scenes": fitting()["scenes"][:4]}, "expected exactly 5 scenes, found 4"),
        (
            {"scenes": [{"from_sentences": [], "text": SCENES_OF_FOX[0]}, *fitting()["scenes"][1:]]},
            "scene 1: from_sentences is empty",
        ),
        (
            {"scenes": [*fitting()["scenes"][:4], {"from_sentences": [5], "text": "It left."}]},
            "scene 5 has 2 words",
        ),
        (
            {
                "scenes": [
                    {"from_sentences": [n], "text": "Лиса увидела высоко виноград."} for n in range(1, 6)
                ]
            },
            "cyrillic",
        ),
    ],
)
def test_narrative_when_the_reply_does_not_fit_is_sent_back_with_the_fault(model, changed, fault) -> None:
    with pytest.raises(model.BadReply, match=fault):
        read(model, fitting(**changed))


def normalised(model, story, handler=None, **given):
    tools = model.tools(handler, Settings(model="openai:tested", planner="model"))
    fields = {"story": story, "analysis": analyze(story), "given": given or None, "narrative": None}
    item = Item(story["id"], {name: fields[name] for name in NORMALISE.SPEC.reads})
    return fields, model.run(NORMALISE.run(item, tools)), tools.asker


def test_story_when_a_narrative_was_written_is_told_by_it(model, hat) -> None:
    fields, outcome, asker = normalised(model, hat.story)
    assert isinstance(outcome, Made)
    assert [ask.prompt.partition("@")[0] for ask in asker.asks] == ["katha/normalise_story"]
    fields |= outcome.fields
    story = told_story(fields)
    assert story["text"] == hat.story["text"]
    assert story["narrative"]["producer"].startswith("openai:tested via katha/normalise_story@")
    sketch = Sketch.of(Item(story["id"], fields))
    assert list(sketch.narrated) == fields["narrative"]["scenes"]
    settings = SCENES.settings()
    scenes = SCENES.settle(SCENES.rules(sketch, settings), sketch, settings)
    assert [scene["scene_text"] for scene in scenes] == fields["narrative"]["scenes"]


def test_bundle_when_a_narrative_was_written_says_how(model, hat, draft) -> None:
    fields, outcome, _ = normalised(model, hat.story)
    story = told_story(fields | outcome.fields)
    bundle = make_bundle(story, draft, (), "train", "2026-01-01T00:00:00Z", None)
    kept = KathaBundle.model_validate_json(json.dumps(bundle)).narrative
    assert isinstance(kept, Narrative)
    assert bundle["record"]["provenance"]["normalised_by"] == kept.producer
    assert bundle["record"]["source_text"] == hat.story["text"]


def test_scenes_when_an_author_narrates_are_the_narrative_and_what_they_tell_is_not_said(model, hat) -> None:
    scenes = [{"scene_text": "A hat flies."}, {"scene_text": "A boy runs."}]
    fields, outcome, asker = normalised(model, hat.story, narrated=True, author="author:us", scenes=scenes)
    assert asker.asks == [] and outcome.fields["narrative_by"] == "author:us"
    story = told_story(fields | outcome.fields)
    assert story["normalized_text"] == "A hat flies. A boy runs." and story["text"] == hat.story["text"]
    assert story["narrative"]["alignment"] == [[], []] and story["narrative"]["left_out"] == []
    # Whoever gives parts of the story as scenes has it told in its own words.
    _, outcome, _ = normalised(model, hat.story, scenes=scenes)
    assert outcome.fields == {"narrative": None, "narrative_by": None}


def test_narrative_when_the_source_tells_a_flashback_may_follow_the_events(model) -> None:
    told = fitting()["scenes"]
    told[0]["from_sentences"], told[4]["from_sentences"] = [5], [1]
    assert read(model, fitting(scenes=told))["alignment"][0] == [5]


def assessed(model, story, verdicts, **labels):
    def handler(asked):
        reply = KathaModel()(asked) | labels
        for entry in reply["criteria"]:
            entry["verdict"] = verdicts.get(entry["criterion"], "fit")
        return reply

    tools = model.tools(handler, PlannerSettings(model="openai:tested", planner="model"))
    item = Item(story["id"], {"story": story, "given": None})
    return model.run(ASSESS_STORY.run(item, tools))


def test_story_when_unfit_by_a_criterion_is_turned_away_with_the_reason(model, hat) -> None:
    outcome = assessed(model, hat.story, {"no_wordplay": "unfit"})
    assert isinstance(outcome, Rejected)
    assert outcome.code == "wordplay"
    assert "On a windy morning" in outcome.reason


def test_labels_when_drafted_come_with_the_judgement_and_given_ones_stay(model, hat) -> None:
    said = {"narrative_type": "causal_transition", "morals": "one", "moral_label": "kindness"}
    fields = assessed(model, {**hat.story, "narrative_type": "moral_semantic"}, {}, **said).fields
    assert (fields["narrative_type"], fields["moral_label"], fields["moral"]) == (
        "moral_semantic", "kindness", None,
    )  # fmt: skip
    assert fields["labels_by"].startswith("openai:tested via katha/assess_story@")


@pytest.mark.parametrize(
    ("morals", "story", "moral"),
    [("none", {}, "not_applicable"), ("several", {}, None), ("none", {"moral_label": "wisdom"}, None),
     ("one", {"moral": "not_applicable"}, "not_applicable")],
)  # fmt: skip
def test_moral_when_the_story_supports_none_is_not_applicable(model, hat, morals, story, moral) -> None:
    label = "kindness" if morals == "one" else None
    fields = assessed(model, {**hat.story, **story}, {}, morals=morals, moral_label=label).fields
    assert (fields["moral_label"], fields["moral"]) == (story.get("moral_label"), moral)


def test_labels_when_they_do_not_agree_with_the_number_of_morals_go_back(model, hat) -> None:
    with pytest.raises(model.BadReply, match="moral_label must be a value of the list where morals is one"):
        assessed(model, hat.story, {}, morals="none", moral_label="kindness")


# -- Steps that ask a model: one request for each part, and what it says of who made it


def test_step_when_its_planner_is_model_asks_and_else_the_rules_draft(model, hat) -> None:
    asking, ruled = model.tools(), model.tools(settings=PlannerSettings(model="openai:tested"))
    assert model.run(ASSESS_STORY.draft(hat.sketch(), asking)).maker.startswith(
        "openai:tested via katha/assess_story@"
    )
    assert model.run(ASSESS_STORY.draft(hat.sketch(), ruled)).maker == "", "rules know no labels"
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

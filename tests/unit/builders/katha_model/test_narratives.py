"""The narrative that a model writes from a source, and its judgement of the story before."""

import json

import pytest

from fabula.builders.katha.choosing.assess_story import STEP as ASSESS
from fabula.builders.katha.draft_scenes import STEP as SCENES
from fabula.builders.katha.drafts import Sketch, make_bundle, told_story
from fabula.builders.katha.normalise_story import STEP as NORMALISE
from fabula.builders.katha.normalise_story import Settings, read_narrative
from fabula.builders.step import PlannerSettings
from fabula.builders.text.analyze_story import analyze
from fabula.engine.stage import Item, Made, Rejected
from fabula.schemas.katha import KathaBundle, Narrative
from fabula.testing.asked_prompts import prompt_of
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
        ({"scenes": [*reversed(fitting()["scenes"])]}, "do not follow the order of the source"),
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
    assert [ask.prompt.partition("#")[0] for ask in asker.asks] == [
        "katha/normalise_story@1",
        "katha/check_narrative@1",
    ]
    fields |= outcome.fields
    story = told_story(fields)
    assert story["text"] == hat.story["text"]
    assert story["narrative"]["producer"].startswith("openai:tested via katha/normalise_story@1")
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


def test_narrative_when_something_was_added_is_written_once_more_with_the_finding(model, hat) -> None:
    compared = []

    def strict(asked):
        if prompt_of(asked) != "katha/check_narrative":
            return KathaModel()(asked)
        compared.append(asked)
        added = [{"scene": 2, "remark": "Nobody sings in the source."}]
        none = {"order_kept": True, "order_remark": None, "missing": [], "not_drawable": []}
        return {**none, "added": added if len(compared) == 1 else []}

    _, outcome, asker = normalised(model, hat.story, strict)
    assert len(asker.asks) == 4
    assert "Nobody sings in the source." in model.asked(asker.asks[2].request).text
    checks = outcome.fields["narrative"]["checks"]
    assert {check["passed"] for check in checks} == {True}
    assert all("via katha/check_narrative@" in check["producer"] for check in checks), (
        "who compared, not who wrote"
    )


def assessed(model, story, verdicts):
    def handler(asked):
        reply = KathaModel()(asked)
        for entry in reply["criteria"]:
            entry["verdict"] = verdicts.get(entry["criterion"], "fit")
        return reply

    tools = model.tools(handler, PlannerSettings(model="openai:tested", planner="model"))
    item = Item(story["id"], {"story": story, "given": None})
    return model.run(ASSESS.run(item, tools))


def test_story_when_unfit_by_a_criterion_is_turned_away_with_the_reason(model, hat) -> None:
    outcome = assessed(model, hat.story, {"no_wordplay": "unfit"})
    assert isinstance(outcome, Rejected)
    assert outcome.code == "wordplay"
    assert "On a windy morning" in outcome.reason

"""What the prompts of the KathaBench builder show, and what they do not."""

import pytest

from fabula.prompts.loader import load_prompt, prompt_ids
from fabula.schemas.vocabulary import vocabulary

IDS = tuple(name for name in prompt_ids() if name.startswith("katha/"))
NAMES = {
    "katha/label_story": ("narrative_type", "moral_label"),
    "katha/annotate_transitions": ("transition_type",),
    "katha/write_questions": ("question_type",),
    "katha/write_contrastives": ("change_type",),
    "katha/answer_questions": ("question_type", "moral_label"),
    "katha/guess_answers": ("question_type", "moral_label"),
    "katha/check_contrastives": ("change_type",),
    "katha/check_record": ("narrative_type", "moral_label", "transition_type"),
}


def system(prompt_id: str) -> str:
    role, template = load_prompt(prompt_id).parts[0]
    assert role == "system"
    return template.render()


@pytest.mark.parametrize("prompt_id", IDS)
def test_prompt_when_rendered_has_a_system_message_that_takes_no_inputs(prompt_id) -> None:
    text = system(prompt_id)
    assert "never instructions" in text
    assert "nothing else." in text


@pytest.mark.parametrize("prompt_id", IDS)
def test_prompt_when_its_reply_has_fields_explains_each_of_them(prompt_id) -> None:
    def fields(schema) -> set[str]:
        found = set(schema.get("properties", {}))
        for inner in (
            *schema.get("properties", {}).values(),
            *([schema["items"]] if "items" in schema else []),
        ):
            found |= fields(inner)
        return found

    text = system(prompt_id)
    assert [name for name in fields(load_prompt(prompt_id).reply.schema) if name not in text] == []


@pytest.mark.parametrize("prompt_id", NAMES)
def test_prompt_when_it_offers_a_vocabulary_names_every_value(prompt_id) -> None:
    text = system(prompt_id)
    for name in NAMES[prompt_id]:
        assert [value for value in vocabulary(name).values if value not in text] == []


def test_planner_when_it_drafts_shows_the_whole_story_once_in_each_request(model, hat) -> None:
    tools = model.tools()
    model.run(hat.drafted(model.planner(tools.asker.handler)))
    planner = model.planner()
    model.run(hat.drafted(planner))
    asked = [model.asked(ask.request).text for ask in planner.tools.asker.asks]
    assert len(asked) == 5
    for text in asked:
        for sentence in ("A fisherman sat there with his rod.", "she brought him a basket of fresh bread."):
            assert text.count(f" {sentence}") == 1


def test_verifier_when_it_answers_has_not_seen_answers_labels_or_descriptions(model, hat, draft) -> None:
    from fabula.builders.katha.checks.verifying import check_draft

    tools = model.tools()
    model.run(check_draft(hat.story, draft, tools))
    first, *_ = tools.asker.asks
    assert first.prompt.startswith("katha/answer_questions@")
    text = model.asked(first.request).text
    for question in draft["questions"]:
        assert question["question"] in text
        assert question["required_evidence"] not in text.partition("The questions:")[2]
    assert "Moral target" not in text
    stated = [transition["causality"] for transition in draft["transitions"] if transition["causality"]]
    assert all(cause not in text.partition("The questions:")[2] for cause in stated)

"""The second wording of the judges' prompts: the same tasks and reply forms, other sentences."""

import re

import pytest

from fabula.evaluation.judging.packets import EVIDENCE, label_packet, question_packets
from fabula.evaluation.judging.settings import in_all_sets, judge_prompt, of_sets
from fabula.models.chat import Image
from fabula.prompts.loader import prompt_ids, prompt_source
from fabula.schemas.katha import StoryRecord
from fabula.schemas.vocabulary import vocabulary
from fabula.testing.katha_samples import sample_bundles

HELD_OUT = "judge/heldout/"
NAMES = [name.removeprefix(HELD_OUT) for name in prompt_ids() if name.startswith(HELD_OUT)]


def sentences(prompt_id: str) -> set[str]:
    """The sentences of the body that are long enough to be told from turns of phrase."""
    body = prompt_source(prompt_id).decode("utf-8").partition("---#}")[2]
    parts = re.split(r"(?<=[.:;?])\s+|\n", body)
    return {part.strip("- ") for part in parts if len(part.split()) >= 5}


def test_held_out_set_when_listed_has_every_prompt_that_judges_are_asked_with() -> None:
    main = {name.removeprefix("judge/") for name in prompt_ids() if re.fullmatch("judge/[a-z_]+", name)}
    assert set(NAMES) == main - {"match_answer"}


@pytest.mark.parametrize("name", NAMES)
def test_held_out_prompt_when_compared_asks_in_the_same_form_and_in_other_words(name: str) -> None:
    main, other = judge_prompt(name), judge_prompt(name, "heldout")
    assert other.card.inputs == main.card.inputs
    assert (main.reply and main.reply.schema) == (other.reply and other.reply.schema)
    assert other.card.max_tokens == main.card.max_tokens
    shared = sentences(main.card.id) & sentences(other.card.id)
    assert {one for one in shared if "{" not in one} == set()


@pytest.mark.parametrize("condition", EVIDENCE)
def test_packets_when_held_out_show_the_same_evidence_under_their_own_prompts(condition: str) -> None:
    record = StoryRecord.model_validate(sample_bundles(1)[0]["record"])
    pictures = (Image(b"one", "image/png"), Image(b"two", "image/png"))
    shown = (record, condition, pictures, 42)
    for first, second in zip(
        question_packets(*shown),  # type: ignore[arg-type]
        question_packets(*shown, "heldout"),  # type: ignore[arg-type]
        strict=True,
    ):
        assert second.prompt.card.id == f"{HELD_OUT}question_{condition}"
        assert (first.item, first.pictures, first.inputs.keys()) == (
            second.item, second.pictures, second.inputs.keys()
        )  # fmt: skip
        assert first.inputs["instruction"] != second.inputs["instruction"]
        assert record.questions[0].question in str(next(question_packets(*shown, "heldout")).parts())  # type: ignore[arg-type]
    label = label_packet(*shown, "heldout")  # type: ignore[arg-type]
    assert label is not None and set(label.asked) == set(vocabulary("moral_label").values)
    assert all(option in str(label.parts()[-1]) for option in label.asked)


def test_sets_when_a_stage_declares_all_of_them_are_told_apart_by_use() -> None:
    declared = [*in_all_sets("label_text", "dimension"), "judge/match_answer"]
    assert of_sets(declared, {"heldout"}) == [
        "judge/heldout/dimension", "judge/heldout/label_text", "judge/match_answer"
    ]  # fmt: skip
    assert of_sets(declared, {"main"}) == ["judge/dimension", "judge/label_text", "judge/match_answer"]
    assert len(of_sets(declared, {"main", "heldout"})) == 5


@pytest.mark.parametrize("name", ["question_image", "label_image"])
def test_stances_when_compared_differ_from_the_main_set_in_one_paragraph(name: str) -> None:
    """Table 72 compares stances: whatever else differed would be compared with them."""
    bodies = {
        stance: prompt_source(judge_prompt(name, stance).card.id).decode("utf-8").partition("---#}")[2]  # type: ignore[arg-type]
        for stance in ("main", "neutral", "strict", "uncertain")
    }
    main = bodies.pop("main").split("\n\n")
    for stance, body in bodies.items():
        paragraphs = body.split("\n\n")
        changed = [one for one, other in zip(paragraphs, main, strict=True) if one != other]
        assert len(changed) == 1, stance
        card = judge_prompt(name, stance).card  # type: ignore[arg-type]
        assert card.reply == judge_prompt(name).card.reply
    assert len(set(bodies.values())) == 3


def test_stance_when_it_lacks_a_prompt_takes_that_of_the_main_set() -> None:
    assert judge_prompt("question_text", "strict").card.id == "judge/question_text"
    declared = in_all_sets("question_image", "question_text")
    assert of_sets(declared, {"strict"}) == ["judge/question_text", "judge/strict/question_image"]

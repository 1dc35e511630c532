"""The judge that reads drawn frames: each rule by hand, errors and guesses at their shares."""

from collections.abc import Sequence
from typing import Any

import pytest
from scipy.stats import binom

from fabula.evaluation.judging.packets import contrast_packets, label_packet, question_packets
from fabula.generation.plans import plan_named
from fabula.models.chat import Image, Message
from fabula.models.generators.drawn.codes import code_of
from fabula.models.generators.drawn.drawing import draw_scene
from fabula.models.generators.drawn.png import encode_png
from fabula.models.generators.drawn.scene import DrawnScene
from fabula.schemas.katha import Question, StoryRecord, Variant
from fabula.schemas.text import normalize_answer
from fabula.testing.drawn_boards import Board, shown_record
from fabula.testing.drawn_judge import GUESSES, WRONG, DrawnJudge
from fabula.testing.gold_stories import gold_bundles, gold_records
from fabula.testing.model_server import Asked

SIDE = 256
PLAN = plan_named("transition-aware")
ANT = gold_records()[0]


def pictures(record: StoryRecord, without: Sequence[str] = (), order: Sequence[int] = ()) -> list[Image]:
    """Frames of a story, without marks of some texts, in another order of scenes."""
    panels = {panel.scene: panel.drawn for panel in PLAN.panels(record)}
    frames = []
    for index in order or panels:
        marks = tuple(mark for mark in panels[index].marks if mark.text not in without)
        drawing = draw_scene(DrawnScene(marks=marks), (SIDE, SIDE))
        frames.append(Image(encode_png(drawing.canvas.image), "image/png"))
    return frames


def asked(packet: Any, model: str = "drawn") -> Asked:
    """What the server reads of a judge's packet."""
    system, *rest = packet.messages()
    return Asked("openai", "/v1/chat/completions", model, "".join(map(str, system.parts)), tuple(rest))


def ask(
    judge: DrawnJudge, record: StoryRecord, frames: list[Image], condition: str = "image"
) -> dict[str, Any]:
    """Question id -> the reply."""
    packets = question_packets(record, condition, frames, 42)
    return {packet.item: judge(asked(packet)) for packet in packets}


def is_right(question: Question, reply: Any) -> bool:
    accepted = {normalize_answer(text) for text in question.accepted_answers}
    return normalize_answer(reply["answer"]) in accepted


def lost(record: StoryRecord, frames: list[Image]) -> dict[str, str]:
    """Type and answer of the questions that are answered wrongly, by the end of their ids."""
    replies = ask(DrawnJudge(gold_records()), record, frames)
    return {
        question.question_id[-3:]: replies[question.question_id]["answer"]
        for question in record.questions
        if not is_right(question, replies[question.question_id])
    }


def test_judge_when_everything_is_drawn_answers_every_question_rightly() -> None:
    for record in gold_records()[::6]:
        assert lost(record, pictures(record)) == {}


# The questions of the ant and the dove (scenes needed): q01 action (2), q02 causal (1, 2), q03 emotional
# (2, 3), q04 causal (3, 4), q05 consequence (4, 5), q06 temporal order (2, 3), q07 moral.


def test_judge_when_an_act_is_left_out_cannot_tell_what_is_done() -> None:
    assert ANT.scenes[1].action is not None
    assert lost(ANT, pictures(ANT, [ANT.scenes[1].action])) == {"q01": "unclear"}


def test_judge_when_a_cause_is_left_out_cannot_tell_why() -> None:
    cause = ANT.transitions[2].causality
    assert cause is not None
    assert lost(ANT, pictures(ANT, [cause])) == {"q04": "unclear"}


def test_judge_when_a_consequence_is_left_out_cannot_tell_what_comes_of_it() -> None:
    consequence = ANT.transitions[3].consequence
    assert consequence is not None
    assert lost(ANT, pictures(ANT, [consequence])) == {"q05": "unclear"}


@pytest.mark.parametrize("scene", [2, 3])
def test_judge_when_one_of_two_feelings_is_left_out_cannot_tell_how_they_change(scene: int) -> None:
    emotion = ANT.scenes[scene - 1].emotion
    assert emotion is not None
    assert lost(ANT, pictures(ANT, [emotion])) == {"q03": "unclear"}


def test_judge_when_two_frames_are_swapped_tells_the_other_event() -> None:
    assert lost(ANT, pictures(ANT, order=(1, 3, 2, 4, 5))) == {"q06": ANT.scenes[2].action}
    assert lost(ANT, pictures(ANT, order=(1, 2, 3, 5, 4))) == {}


def test_judge_when_a_frame_is_missing_loses_what_needs_its_scene() -> None:
    assert set(lost(ANT, pictures(ANT, order=(1, 3, 4, 5)))) == {"q01", "q02", "q03", "q06"}
    assert set(lost(ANT, pictures(ANT, order=(1, 2, 3, 4)))) == {"q05"}


def test_judge_when_label_and_a_cause_are_left_out_cannot_tell_the_moral() -> None:
    """The label alone gives it, and so do all four causes; with neither it is gone."""
    cause = str(ANT.transitions[0].causality)
    assert lost(ANT, pictures(ANT, ["gratitude"])) == {}
    assert lost(ANT, pictures(ANT, [cause])) == {"q02": "unclear"}
    assert set(lost(ANT, pictures(ANT, ["gratitude", cause]))) == {"q02", "q07"}


def test_label_when_asked_follows_the_rule_of_the_moral() -> None:
    cause = str(ANT.transitions[0].causality)
    judge = DrawnJudge(gold_records())
    for without, answer in (((), "gratitude"), (("gratitude", cause), "unclear")):
        packet = label_packet(ANT, "image", pictures(ANT, without), 42)
        assert judge(asked(packet))["answer"] == answer


def test_judge_when_it_has_the_text_answers_rightly_whatever_is_drawn() -> None:
    judge = DrawnJudge(gold_records())
    frames = pictures(ANT, [str(ANT.scenes[1].action)])
    for reply in ask(judge, ANT, [], "text").values():
        assert reply["evidence_status"] == "recoverable"
    both = ask(judge, ANT, frames, "text_image")
    for question in ANT.questions:
        reply = both[question.question_id]
        assert reply["final_answer"] == question.gold_answer
        support = "omitted" if question.question_id.endswith("q01") else "supported"
        assert reply["image_support"] == support


def test_contrast_when_its_scene_is_shown_is_the_source_and_unclear_without_it() -> None:
    bundle = gold_bundles()[0]
    judge = DrawnJudge(gold_records())
    variants = [Variant.model_validate(variant) for variant in bundle["variants"]]
    for variant in variants:
        changed = variant.changed_scene_id
        others = [scene.scene_index for scene in ANT.scenes if scene.scene_index != changed]
        for order, answer in (((), "source"), (others, "unclear")):
            packet = next(iter(contrast_packets(ANT, [variant], pictures(ANT, order=order), 42)))
            assert packet.read(judge(asked(packet)))["answer"] == answer


def test_judge_when_frames_show_another_story_tells_nothing_of_this_one() -> None:
    other = gold_records()[3]
    assert set(lost(ANT, pictures(other))) == {f"q0{number}" for number in range(1, 8)}
    panels = [frozenset(code_of(mark.text) for mark in panel.drawn.marks) for panel in PLAN.panels(other)]
    assert shown_record(gold_records(), panels) is other
    assert shown_record(gold_records(), [frozenset()]) is None


def question(kind: str, **given: Any) -> Question:
    fields = {"target_scene": None, "target_transition": None, "evidence_scenes": ()} | given
    return ANT.questions[0].model_copy(update={"question_type": kind, **fields})


def board(record: StoryRecord = ANT) -> Board:
    panels = PLAN.panels(record)
    return Board(record, tuple(frozenset(code_of(m.text) for m in panel.drawn.marks) for panel in panels))


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("action_visibility", {}), ("causal", {}), ("emotional", {}), ("temporal_order", {}),
        ("temporal_order", {"evidence_scenes": (2,)}), ("action_visibility", {"target_scene": 9}),
        ("causal", {"target_transition": (2, 4)}),
    ],
)  # fmt: skip
def test_question_when_it_names_no_scene_that_its_rule_needs_cannot_be_answered(
    kind: str, given: dict[str, Any]
) -> None:
    assert board().read(question(kind, **given)) == "unclear"


def test_question_when_its_field_is_null_cannot_be_answered() -> None:
    bare = ANT.model_copy(
        update={
            "transitions": tuple(
                each.model_copy(update={"causality": None, "consequence": None, "emotion": None})
                for each in ANT.transitions
            ),
            "scenes": tuple(scene.model_copy(update={"emotion": None}) for scene in ANT.scenes),
            "moral_label": None,
        }
    )
    seen = board(bare)
    assert seen.read(question("causal", target_transition=(1, 2))) == "unclear"
    assert seen.read(question("consequence", target_transition=(1, 2))) == "unclear"
    assert seen.read(question("emotional", target_scene=2)) == "unclear"
    assert seen.read(question("moral")) == "unclear"


def test_question_when_no_scene_has_a_feeling_is_answered_by_the_transition() -> None:
    bare = ANT.model_copy(
        update={"scenes": tuple(scene.model_copy(update={"emotion": None}) for scene in ANT.scenes)}
    )
    assert board(bare).read(question("emotional", target_scene=3)) == "right"


def test_question_when_no_act_is_annotated_is_answered_by_all_that_must_be_seen() -> None:
    scenes = tuple(
        scene.model_copy(update={"action": None}) if scene.scene_index == 2 else scene for scene in ANT.scenes
    )
    bare = ANT.model_copy(update={"scenes": scenes})
    whole = board(bare)
    assert whole.read(question("action_visibility", target_scene=2)) == "right"
    gone = code_of(bare.scenes[1].visual_must_show[0])
    partly = Board(bare, tuple(frame - {gone} for frame in whole.frames))
    assert partly.read(question("action_visibility", target_scene=2)) == "unclear"


def rates(judge: DrawnJudge, frames_of: Any, models: Sequence[str]) -> tuple[int, int]:
    """How many questions are answered rightly, of how many."""
    right = total = 0
    for record in gold_records()[:9]:
        packets = list(question_packets(record, "image", frames_of(record), 42))
        for model in models:
            for each, packet in zip(record.questions, packets, strict=True):
                right += is_right(each, judge(asked(packet, model)))
                total += 1
    return right, total


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Image]]:
    return {record.story_id: pictures(record) for record in gold_records()[:9]}


@pytest.mark.parametrize("error", [0.1, 0.3])
def test_judge_when_it_errs_is_wrong_as_often_as_said(error: float, drawn: dict[str, list[Image]]) -> None:
    """Everything is visible, so each question is answered wrongly with the error's chance; and of frames
    without any mark each is answered rightly with it. Both within 99.9% of the binomial."""
    judge = DrawnJudge(gold_records(), error)
    models = [f"judge {number}" for number in range(8)]
    right, total = rates(judge, lambda record: drawn[record.story_id], models)
    low, high = binom.ppf([0.0005, 0.9995], total, 1 - error)
    assert total > 500
    assert low <= right <= high
    blank = [Image(encode_png(draw_scene(DrawnScene(), (SIDE, SIDE)).canvas.image), "image/png")]
    right, total = rates(judge, lambda _: blank, models)
    low, high = binom.ppf([0.0005, 0.9995], total, error)
    assert low <= right <= high


def test_judge_when_it_guesses_is_right_by_chance_whatever_is_shown(drawn: dict[str, list[Image]]) -> None:
    judge = DrawnJudge(gold_records(), guessing=True)
    models = [f"judge {number}" for number in range(8)]
    right, total = rates(judge, lambda record: drawn[record.story_id], models)
    low, high = binom.ppf([0.0005, 0.9995], total, 1 / GUESSES)
    assert low <= right <= high


def test_judge_when_asked_twice_answers_alike_and_otherwise_of_other_frames() -> None:
    judge = DrawnJudge(gold_records(), 0.5)
    frames, others = pictures(ANT), pictures(ANT, ["leaf"])
    assert ask(judge, ANT, frames) == ask(judge, ANT, frames)
    assert ask(judge, ANT, frames) != ask(judge, ANT, others)


def test_judge_when_it_errs_never_says_what_is_accepted() -> None:
    replies = ask(DrawnJudge(gold_records(), 1.0), ANT, pictures(ANT))
    assert {reply["answer"] for reply in replies.values()} == {WRONG}


def test_judge_when_prompt_is_none_of_a_judge_refuses() -> None:
    request = Asked("openai", "/v1/chat/completions", "drawn", "You paint.", (Message("user", ("hello",)),))
    with pytest.raises(ValueError, match="not a prompt that this judge knows"):
        DrawnJudge(gold_records())(request)


OTHERS = (
    ("Does this appear in part 2 of 5 of the story: leaf? Answer yes or no.", "yes"),
    ("Does this appear in part 1 of 5 of the story: leaf? Answer yes or no.", "no"),
    ("Does this appear in part 2 of 5 of the story: pitcher? Answer yes or no.", "no"),
    ("Which of these things appears in part 4 of 5 of the story: pitcher; axe; heel; leaf. Answer with one "
     "of these.", "heel"),
    ("Which of these things appears in the story: pitcher; axe; leaf. Answer with one of these.", "leaf"),
    ("Which of these things appears in the story: pitcher; axe. Answer with one of these.", "unclear"),
    (f"Which of these happens in part 4 of 5 of the story: {ANT.scenes[1].action}; {ANT.scenes[3].action}. "
     "Answer with one of these.", str(ANT.scenes[3].action)),
    ("Who is dozing in the oak?", "the dozing dove in the oak"),
    ("Is it snowing hard?", "unclear"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), OTHERS)
def test_question_when_no_record_has_it_is_answered_by_what_it_names(text: str, answer: str) -> None:
    record = ANT.model_copy(update={"questions": (question("causal").model_copy(update={"question": text}),)})
    packet = next(iter(question_packets(record, "image", pictures(ANT), 42)))
    assert DrawnJudge(gold_records())(asked(packet))["answer"] == answer
    guessed = DrawnJudge(gold_records(), guessing=True)(asked(packet))["answer"]
    if "yes or no" in text:
        assert guessed in ("yes", "no")
        assert DrawnJudge(gold_records(), 1.0)(asked(packet))["answer"] == {"yes": "no", "no": "yes"}[answer]

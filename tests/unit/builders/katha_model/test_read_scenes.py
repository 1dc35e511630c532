"""Replies that divide a story and describe its scenes: what is taken, what goes back and with which words."""

import pytest

from fabula.builders.katha.annotate_transitions import read_transitions
from fabula.builders.katha.draft_scenes import read_descriptions, read_division
from fabula.builders.katha.write_contrastives import read_variants
from fabula.builders.katha.write_questions import (
    read_questions,
)
from fabula.builders.replies import main_script, script_problem
from fabula.builders.text.spans import scene_spans

TEXTS = (
    "On a windy morning Mira walked along the river with her new hat.",
    "A gust tore the hat from her head, and she ran after it to the edge of the water.",
)


def entry(first: int, **changes) -> dict:
    return {
        "first_segment": first,
        "characters": ["Mira"],
        "objects": ["hat"],
        "action": "Mira runs.",
        "state": "The hat is gone.",
        "emotion": None,
        "visual_evidence": None,
        "visual_must_show": ["Mira running"],
        **changes,
    }


def reply(*firsts: int, **changes) -> dict:
    return {"scenes": [entry(first, **changes) for first in firsts]}


def test_division_when_segments_rise_makes_scenes_that_cover_the_story(hat) -> None:
    scenes = read_division(reply(1, 2, 4, 6, 8), hat.story, hat.analysis, 5)
    texts = [scene["scene_text"] for scene in scenes]
    assert scene_spans(hat.story["normalized_text"], texts) is not None
    assert " ".join(texts) == hat.story["normalized_text"]
    assert [scene["scene_index"] for scene in scenes] == [1, 2, 3, 4, 5]
    assert {scene["story_id"] for scene in scenes} == {"tale_1"}
    assert "Draw scene 2 of 5" in scenes[1]["generation_prompt_long"]


@pytest.mark.parametrize(
    ("firsts", "problem"),
    [
        ((1, 2, 3), "expected exactly 5 scenes, found 3"),
        ((2, 3, 4, 5, 6), "scene 1 must have first_segment 1, not 2"),
        ((1, 3, 3, 5, 6), "scene 3: first_segment must be greater than 3"),
        ((1, 5, 3, 6, 7), "scene 3: first_segment must be greater than 5"),
        (
            (1, 2, 3, 4, 99),
            "scene 5: first_segment must be greater than 4, that of the scene before, and at most",
        ),
        ((1, 2, 3, 4, -1), "found -1"),
    ],
)
def test_division_when_segments_are_wrong_says_which_and_why(model, hat, firsts, problem) -> None:
    with pytest.raises(model.BadReply) as caught:
        read_division(reply(*firsts), hat.story, hat.analysis, 5)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"characters": ["Mira", "Captain Ahab"]}, "the story does not name 'Captain Ahab'"),
        ({"action": " . "}, "scene 1: action says nothing"),
        ({"state": "a" * 1001}, "scene 1: state has 1001 characters"),
        ({"visual_must_show": [" ", "!"]}, "scene 1: visual_must_show is empty"),
        ({"objects": [f"thing {n}" for n in range(31)]}, "scene 1: objects is too long"),
        (
            {"action": "米拉沿着河边跑去追她的帽子因为风把它吹走了真的很远很远"},
            "write every value in the language",
        ),
    ],
)
def test_description_when_a_field_cannot_be_right_goes_back(model, hat, changes, problem) -> None:
    bad = {"scenes": [{"scene": n, **entry(0, **changes)} for n in (1, 2)]}
    with pytest.raises(model.BadReply) as caught:
        read_descriptions(bad, hat.story, TEXTS)
    assert problem in str(caught.value)


def test_description_when_texts_are_untidy_is_tidied_and_otherwise_kept(hat) -> None:
    changes = {"characters": ["the Mira", "the  Mira", ""], "emotion": " - ", "action": "Mira\nruns\u0000."}
    scenes = read_descriptions(
        {"scenes": [{"scene": n, **entry(0, **changes)} for n in (2, 1)]}, hat.story, TEXTS
    )
    assert scenes[0]["characters"] == ["the Mira"]
    assert scenes[0]["emotion"] is None
    assert scenes[0]["action"] == "Mira runs."
    assert [scene["scene_text"] for scene in scenes] == list(TEXTS)


# Replies that hold questions.

WANTED = {"causal": 1, "moral": 1, "temporal_order": 1}


def question_entry(**changes) -> dict:
    return {
        "question_type": "causal",
        "target_scene": None,
        "target_from_scene": 2,
        "evidence_scenes": [3, 2],
        "question": "Why does the fisherman swing his rod?",
        "gold_answer": "the girl was afraid for her hat",
        "other_answers": ["the girl feared for her hat", "to save the hat"],
        "required_evidence": "The girl's face.",
        **changes,
    }


def read(draft, hat, *entries, moral="gratitude"):
    return read_questions({"questions": list(entries)}, hat.story, draft["scenes"], moral, WANTED)


def test_question_when_good_has_the_shape_of_the_format(draft, hat) -> None:
    (made,) = read(draft, hat, question_entry())
    assert made["question_id"] == "tale_1_q01"
    assert made["accepted_answers"][0] == made["gold_answer"]
    assert len(made["accepted_answers"]) == 3
    assert made["target_transition"] == [2, 3]
    assert made["evidence_scenes"] == [2, 3]
    assert made["answerability"] == "text_supported"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"evidence_scenes": [2, 9]}, "expected a scene of 1 to 5, found 9"),
        ({"evidence_scenes": []}, "there are no evidence scenes"),
        ({"target_from_scene": 5}, "expected neighbouring scenes of 1 to 5, found 5 to 6"),
        ({"target_scene": 2}, "question 1: exactly one of target_scene and target_from_scene"),
        ({"target_from_scene": None}, "question 1: exactly one of target_scene and target_from_scene"),
        ({"gold_answer": "..."}, "question 1: gold_answer says nothing"),
        ({"gold_answer": "Unclear"}, "would accept almost anything"),
        ({"gold_answer": "the fisherman"}, "the question contains 'the fisherman'"),
        ({"other_answers": []}, "question 1: other_answers must hold two to five"),
        ({"other_answers": ["The girl was afraid for her HAT!", "yes"]}, "question 1: other_answers"),
        ({"required_evidence": ""}, "question 1: required_evidence says nothing"),
        ({"question": "渔夫为什么要挥动他的鱼竿去抓住女孩被风吹走的帽子呢你知道吗"}, "write every value"),
    ],
)  # fmt: skip
def test_question_when_wrong_goes_back(model, draft, hat, changes, problem) -> None:
    with pytest.raises(model.BadReply) as caught:
        read(draft, hat, question_entry(**changes))
    assert problem in str(caught.value)


def test_other_answers_when_repeated_empty_or_leaked_are_left_out(draft, hat) -> None:
    others = ["to save the hat", "To save the hat.", "it", "his rod", "the girl was afraid for her hat"]
    (made,) = read(draft, hat, question_entry(other_answers=others))
    assert made["accepted_answers"] == ["the girl was afraid for her hat", "to save the hat"]


def test_questions_when_more_than_wanted_are_cut_to_what_was_wanted(draft, hat) -> None:
    made = read(
        draft,
        hat,
        question_entry(),
        question_entry(),
        question_entry(question_type="emotional"),
    )
    assert [part["question_type"] for part in made] == ["causal"]


def test_moral_question_when_no_answer_names_the_label_accepts_the_label(draft, hat) -> None:
    moral = question_entry(question_type="moral", question="Which value?", gold_answer="thankfulness")
    made = read(draft, hat, question_entry(), moral)[1]
    assert made["accepted_answers"][:2] == ["thankfulness", "gratitude"]


def test_temporal_question_when_its_answer_comes_last_goes_back(model, draft, hat) -> None:
    changes = {
        "question_type": "temporal_order",
        "question": "What happens before the gust?",
        "gold_answer": "she brought him a basket of fresh bread",
        "other_answers": ["the bread"],
        "evidence_scenes": [1, 2],
    }
    with pytest.raises(model.BadReply, match="the answer is first found in scene 5"):
        read(draft, hat, question_entry(**changes))


# Replies that describe transitions.


def transition_entry(first: int, **changes) -> dict:
    words = ("action", "causality", "consequence", "expected_change", "recoverability_target")
    return {
        "from_scene": first,
        "to_scene": first + 1,
        **{name: f"The {name} of {first}." for name in words},
        "intention": None,
        "emotion": "",
        "transition_type": "cause_effect",
        **changes,
    }


def transition_reply(bearer: int | None, *entries: dict) -> dict:
    return {
        "transitions": list(entries) or [transition_entry(1), transition_entry(2)],
        "moral_from_scene": bearer,
    }


def test_transitions_when_good_carry_the_moral_on_one_of_them(hat) -> None:
    made = read_transitions(transition_reply(2), hat.story, 3, "gratitude")
    assert [part["moral_target"] for part in made] == [None, "gratitude"]
    assert [(part["from_scene"], part["to_scene"]) for part in made] == [(1, 2), (2, 3)]
    assert made[0]["emotion"] is None
    assert {part["story_id"] for part in made} == {"tale_1"}


def test_transitions_when_the_story_has_no_moral_carry_none_whatever_the_reply_says(hat) -> None:
    assert {part["moral_target"] for part in read_transitions(transition_reply(2), hat.story, 3, None)} == {
        None
    }


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (
            (transition_entry(1), transition_entry(1)),
            "expected transitions from scene 1 to 2, each once",
        ),
        ((transition_entry(1), transition_entry(7)), "found 1, 7"),
        (
            (transition_entry(1), transition_entry(2, to_scene=9)),
            "leads to scene 3; found to_scene 9",
        ),
        (
            (transition_entry(1), transition_entry(2, causality="?")),
            "the transition from scene 2: causality says nothing",
        ),
    ],
)
def test_transitions_when_wrong_say_where(model, hat, entries, problem) -> None:
    with pytest.raises(model.BadReply) as caught:
        read_transitions(transition_reply(1, *entries), hat.story, 3, "gratitude")
    assert problem in str(caught.value)


def test_transitions_when_in_another_order_are_put_in_order(hat) -> None:
    made = read_transitions(
        transition_reply(1, transition_entry(2), transition_entry(1)),
        hat.story,
        3,
        "gratitude",
    )
    assert [part["from_scene"] for part in made] == [1, 2]


# Replies that hold contrastive variants.

LABELS = ("causal_transition", "gratitude")


def variant(draft, scene: int = 5, **changes) -> dict:
    text = draft["scenes"][scene - 1]["scene_text"] if 1 <= scene <= 5 else ""
    return {
        "changed_scene": scene,
        "change_type": "remove_consequence",
        "semantic_delta": "She thanked him; now she does not.",
        "contrastive_scene_text": f"{text} Nothing came of it.",
        "contrastive_moral": None,
        **changes,
    }


def read_variant_reply(draft, hat, *entries, count=1):
    return read_variants({"variants": list(entries)}, hat.story, draft["scenes"], LABELS, count)


def test_variant_when_good_changes_one_scene_and_nothing_else(draft, hat) -> None:
    (made,) = read_variant_reply(draft, hat, variant(draft, contrastive_moral="gratitude"))
    before = [scene["scene_text"] for scene in draft["scenes"]]
    expected = " ".join([*before[:4], made["contrastive_scene_text"]])
    assert made["contrastive_story_text"] == expected
    assert made["variant_kind"] == "semantic_contrast"
    assert made["original_moral"] == "gratitude"
    assert made["contrastive_moral"] is None  # the original label again is no other label
    assert (made["variant_id"], made["pair_id"]) == ("tale_1_v1", "tale_1_pair1")


def test_variant_when_events_change_places_is_a_temporal_contrast(draft, hat) -> None:
    (made,) = read_variant_reply(draft, hat, variant(draft, change_type="reorder_events"))
    assert made["variant_kind"] == "temporal_contrast"


def test_variant_when_a_character_is_lost_names_it(model, draft, hat) -> None:
    scene = next(n for n, part in enumerate(draft["scenes"], 1) if "fisherman" in part["characters"])
    changed = variant(draft, scene, contrastive_scene_text="The river was quiet and nobody was there at all.")
    with pytest.raises(model.BadReply, match="the new text must still name"):
        read_variant_reply(draft, hat, changed)


def test_variants_when_too_few_or_equal_go_back_and_surplus_ones_are_left_out(model, draft, hat) -> None:
    with pytest.raises(model.BadReply, match="expected exactly 2 contrasts, found 1"):
        read_variant_reply(draft, hat, variant(draft), count=2)
    with pytest.raises(model.BadReply, match="contrast 2 is the same as contrast 1"):
        read_variant_reply(draft, hat, variant(draft), variant(draft), count=2)
    assert len(read_variant_reply(draft, hat, variant(draft), variant(draft, 9), count=1)) == 1


# Telling scripts apart.

SCRIPTS = {
    "en": "A fox saw some grapes on a high vine and jumped as high as he could.",
    "hi": "एक जंगल में एक शेर रहता था। वह बहुत घमंडी था, और सब जानवर उससे डरते थे।",
    "zh": "从前有一只狐狸，它很饿。它看见葡萄架上挂着葡萄。狐狸跳起来，想摘葡萄，但是够不着。",
    "ja": "むかしむかし、あるところにキツネがいました。キツネは葡萄を見つけて、何度も跳びました。",
    "ru": "Лиса увидела виноград на высокой лозе и прыгнула так высоко, как только могла.",
    "ar": "كان هناك أسد نائم في الغابة. مر فأر صغير فوق أنفه، فاستيقظ الأسد غاضبا.",
    "ko": "여우가 높은 덩굴에 달린 포도를 보고 할 수 있는 한 높이 뛰어올랐습니다.",
}


@pytest.mark.parametrize("story", SCRIPTS)
@pytest.mark.parametrize("reply", SCRIPTS)
def test_reply_when_in_another_script_is_told(story, reply) -> None:
    problem = script_problem(SCRIPTS[story], story, SCRIPTS[reply])
    same = main_script(SCRIPTS[story]) == main_script(SCRIPTS[reply])
    assert (problem is None) == same
    if problem is not None:
        assert f"language {story}" in problem

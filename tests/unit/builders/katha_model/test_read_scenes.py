"""Replies that divide a story and describe its scenes: what is taken, what goes back and with which words."""

import pytest

from fabula.builders.katha.annotate_transitions import read_transitions
from fabula.builders.katha.draft_scenes import looks_in, read_division, read_scenes
from fabula.builders.katha.write_contrastives import read_variants
from fabula.builders.katha.write_questions import (
    questions_shown,
    questions_wanted,
    read_again,
    read_questions,
)
from fabula.builders.step import main_script, script_problem
from fabula.builders.text.boundaries import scene_spans

TEXTS = (
    "On a windy morning Mira walked along the river with her new hat.",
    "A gust tore the hat from her head, and she ran after it to the edge of the water.",
)


def entry(first: int, **changes) -> dict:
    return {
        "scene": 1,
        "first_segment": first,
        "characters": ["Mira"],
        "objects": ["hat"],
        "action": "Mira runs.",
        "state": "The hat is gone.",
        "emotion": None,
        "emotion_words": None,
        "visual_evidence": None,
        "visual_must_show": ["Mira running"],
        **changes,
    }


def reply(*firsts: int, **changes) -> dict:
    scenes = [entry(first, **{"scene": n, **changes}) for n, first in enumerate(firsts, start=1)]
    return described(*scenes)


def described(*scenes: dict) -> dict:
    return {"cast": [{"name": "the Mira", "look": "a girl in red (ten years old)."}], "scenes": list(scenes)}


def test_division_when_segments_rise_makes_scenes_that_cover_the_story(hat) -> None:
    scenes = read_division(reply(1, 2, 4, 6, 8), hat.story, hat.analysis, 5)
    texts = [scene["scene_text"] for scene in scenes]
    assert scene_spans(hat.story["normalized_text"], texts) is not None
    assert " ".join(texts) == hat.story["normalized_text"]
    assert [scene["scene_index"] for scene in scenes] == [1, 2, 3, 4, 5]
    assert {scene["story_id"] for scene in scenes} == {"tale_1"}
    assert "Draw scene 2 of 5" in scenes[1]["generation_prompt_long"]
    for scene in scenes:
        assert "Mira (a girl in red ten years old) runs" in scene["generation_prompt"]
        assert "in every scene: Mira (a girl in red ten years old)." in scene["generation_prompt_long"]
        assert ".." not in scene["generation_prompt_long"]


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
        ((None, 2, 3, 4, 5), "scene 1: first_segment is null; give the number of its first segment"),
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
        ({"characters": ["Mira", "wind"]}, "scene 1: 'wind' stands in characters, not in cast"),
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
    bad = described(*({**entry(0, **changes), "scene": n} for n in (1, 2)))
    with pytest.raises(model.BadReply) as caught:
        read_scenes(bad, hat.story, TEXTS, [1, 2])
    assert problem in str(caught.value)


def test_description_when_texts_are_untidy_is_tidied_and_otherwise_kept(hat) -> None:
    changes = {"characters": ["the Mira", "the  Mira", ""], "emotion": " - ", "action": "Mira\nruns\u0000."}
    reply_ = described(*({**entry(0, **changes), "scene": n} for n in (2, 1)))
    scenes = read_scenes(reply_, hat.story, TEXTS, [1, 2])
    assert scenes[0]["characters"] == ["the Mira"]
    assert scenes[0]["emotion"] is None
    assert scenes[0]["action"] == "Mira runs."
    assert [scene["scene_text"] for scene in scenes] == list(TEXTS)


def test_scene_when_alone_is_described_again_has_its_number_and_the_looks_that_it_had(hat) -> None:
    (made,) = read_scenes(described({**entry(0), "scene": 2}), hat.story, TEXTS, [2], {"mira": "a goat"})
    assert (made["scene_index"], made["scene_text"]) == (2, TEXTS[1])
    assert made["generation_prompt"].startswith("Mira (a goat) runs")
    assert looks_in([made]) == {"mira": "a goat"}


@pytest.mark.parametrize(
    ("words", "told"),
    [("ran after it", True), ("A gust ... the EDGE of the water!", True), ("she trembled", False),
     ("new hat", False), (None, False), ("", False)],
)  # fmt: skip
def test_feeling_when_its_words_do_not_stand_in_the_scene_is_not_told(hat, words, told) -> None:
    feeling = {"emotion": "Mira is in haste", "emotion_words": words, "scene": 2}
    (made,) = read_scenes(described({**entry(0), **feeling}), hat.story, TEXTS, [2])
    assert made["emotion"] == ("Mira is in haste" if told else None)


# Replies that describe transitions.


LINKED = ("Mira wept.", "She ran.", "She laughed aloud.")


def link(first: int, **changes) -> dict:
    words = ("action", "causality", "consequence", "expected_change", "recoverability_target")
    return {
        "from_scene": first,
        "to_scene": first + 1,
        **{name: f"The {name} of {first}." for name in words},
        "intention": None,
        "emotion": "",
        "emotion_words": None,
        "transition_type": "cause_effect",
        **changes,
    }


def links(bearer: int | None, *entries: dict) -> dict:
    return {"transitions": list(entries) or [link(1), link(2)], "moral_from_scene": bearer}


def test_transitions_when_good_carry_the_moral_on_one_of_them(hat) -> None:
    made = read_transitions(links(2), hat.story, LINKED, "gratitude")
    assert [part["moral_target"] for part in made] == [None, "gratitude"]
    assert [(part["from_scene"], part["to_scene"]) for part in made] == [(1, 2), (2, 3)]
    assert made[0]["emotion"] is None
    assert {part["story_id"] for part in made} == {"tale_1"}


def test_transitions_when_the_story_has_no_moral_carry_none_whatever_the_reply_says(hat) -> None:
    assert {part["moral_target"] for part in read_transitions(links(2), hat.story, LINKED, None)} == {None}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ((link(1), link(1)), "expected transitions from scene 1 to 2, each once"),
        ((link(1), link(7)), "found 1, 7"),
        ((link(1), link(2, to_scene=9)), "leads to scene 3; found to_scene 9"),
        ((link(1), link(2, consequence="?")), "the transition from scene 2: consequence says nothing"),
    ],
)
def test_transitions_when_wrong_say_where(model, hat, entries, problem) -> None:
    with pytest.raises(model.BadReply) as caught:
        read_transitions(links(1, *entries), hat.story, LINKED, "gratitude")
    assert problem in str(caught.value)


def test_transition_when_no_cause_is_told_has_none(hat) -> None:
    made = read_transitions(links(1, link(1, causality=None), link(2)), hat.story, LINKED, "gratitude")
    assert [part["causality"] for part in made] == [None, "The causality of 2."]


def test_transitions_when_in_another_order_are_put_in_order(hat) -> None:
    made = read_transitions(links(1, link(2), link(1)), hat.story, LINKED, "gratitude")
    assert [part["from_scene"] for part in made] == [1, 2]


def test_transition_when_alone_is_described_again_keeps_its_number_and_no_moral(hat) -> None:
    (made,) = read_transitions(links(None, link(2)), hat.story, LINKED, "gratitude", [2])
    assert (made["from_scene"], made["moral_target"]) == (2, None)


@pytest.mark.parametrize(("words", "told"), [("wept", True), ("wept ... laughed", False), ("ran", True)])
def test_feeling_when_the_two_scenes_do_not_have_its_words_is_not_told(hat, words, told) -> None:
    first = link(1, emotion="sorrow", emotion_words=words)
    made = read_transitions(links(1, first, link(2)), hat.story, LINKED, "gratitude")
    assert (made[0]["emotion"] == "sorrow") is told


# Replies that hold questions.


WANTED = {"causal": 1, "moral": 1, "temporal_order": 1}


def asked(**changes) -> dict:
    return {
        "question_type": "causal",
        "target_scene": None,
        "target_from_scene": 2,
        "evidence_scenes": [3, 2],
        "question": "Why does the fisherman swing his rod?",
        "gold_answer": "the girl was afraid for her hat",
        "told_by": "the girl was afraid for her hat",
        "other_answers": ["the girl feared for her hat", "to save the hat"],
        "required_evidence": "The girl's face.",
        **changes,
    }


def read_asked(draft, hat, *entries, moral="gratitude"):
    return read_questions({"questions": list(entries)}, hat.story, draft["scenes"], moral, WANTED)


def test_question_when_good_has_the_shape_of_the_format(draft, hat) -> None:
    (made,) = read_asked(draft, hat, asked())
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
        ({"other_answers": []}, "question 1: other_answers must hold answers"),
        ({"other_answers": ["The girl was afraid for her HAT!", "yes"]}, "question 1: other_answers"),
        ({"required_evidence": ""}, "question 1: required_evidence says nothing"),
        ({"question": "渔夫为什么要挥动他的鱼竿去抓住女孩被风吹走的帽子呢你知道吗"}, "write every value"),
    ],
)  # fmt: skip
def test_question_when_wrong_goes_back(model, draft, hat, changes, problem) -> None:
    with pytest.raises(model.BadReply) as caught:
        read_asked(draft, hat, asked(**changes))
    assert problem in str(caught.value)


def test_other_answers_when_repeated_empty_or_leaked_are_left_out(draft, hat) -> None:
    others = ["to save the hat", "To save the hat.", "it", "his rod", "the girl was afraid for her hat"]
    (made,) = read_asked(draft, hat, asked(other_answers=others))
    assert made["accepted_answers"] == ["the girl was afraid for her hat", "to save the hat"]


def test_questions_when_more_than_wanted_are_spare_those_of_new_types_first(draft, hat) -> None:
    made = read_asked(draft, hat, *[asked()] * 4, asked(question_type="emotional"))
    assert [part["question_type"] for part in made] == ["causal", "emotional", *["causal"] * 3]


def test_moral_question_when_no_answer_names_the_label_accepts_the_label(draft, hat) -> None:
    moral = asked(question_type="moral", question="Which value?", gold_answer="thankfulness")
    made = read_asked(draft, hat, asked(), moral)[1]
    assert made["accepted_answers"][:2] == ["thankfulness", "gratitude"]


def test_moral_question_when_it_names_no_place_is_about_the_last_transition_of_its_evidence(draft, hat):
    nowhere = {"target_scene": None, "target_from_scene": None, "evidence_scenes": [4, 2, 5]}
    moral = asked(question_type="moral", question="Which value?", gold_answer="gratitude", **nowhere)
    made = read_asked(draft, hat, asked(), moral)[1]
    assert (made["target_scene"], made["target_transition"]) == (None, [4, 5])


def test_temporal_question_when_its_answer_comes_last_goes_back(model, draft, hat) -> None:
    changes = {
        "question_type": "temporal_order",
        "question": "What happens before the gust?",
        "gold_answer": "she brought him a basket of fresh bread",
        "other_answers": ["the bread"],
        "evidence_scenes": [1, 2],
    }
    with pytest.raises(model.BadReply, match="the answer is first found in scene 5"):
        read_asked(draft, hat, asked(**changes))


def test_questions_when_written_again_keep_numbers_and_types(model, draft, hat) -> None:
    before = draft["questions"]
    shown = [{**part, "told_by": hat.story["text"]} for part in questions_shown(before, None)]
    made = read_again({"questions": shown[1:3]}, hat.story, draft["scenes"], before, [2, 3])
    assert made == before[1:3]
    for wrong in (shown[:1], [*shown[2:3], shown[1]]):
        with pytest.raises(model.BadReply):
            read_again({"questions": wrong}, hat.story, draft["scenes"], before, [2, 3])


def test_question_about_a_feeling_when_the_text_does_not_tell_it_is_left_out(draft, hat) -> None:
    feeling = {"question_type": "emotional", "question": "How does Mira feel in the end?"}
    felt = {"gold_answer": "happy", "other_answers": ["glad", "full of joy"], "evidence_scenes": [4]}
    wanted = {"causal": 1, "emotional": 1}

    def made(told_by):
        entries = [asked(), asked(**feeling, **felt, told_by=told_by)]
        found = read_questions({"questions": entries}, hat.story, draft["scenes"], "gratitude", wanted)
        return [part["question_type"] for part in found]

    assert made("Mira was happy") == ["causal", "emotional"]
    assert made("she danced") == made(None) == ["causal"]


def test_question_about_an_act_when_a_type_is_not_borne_takes_its_place(draft, hat) -> None:
    act = {"question_type": "action_visibility", "question": "What does the man do with his rod?"}
    seen = asked(**act, gold_answer="hooked the hat", other_answers=["he catches it", "it hangs there"])
    wanted = {"causal": 1, "emotional": 1}
    entries = {"questions": [asked(), seen, seen]}
    found = read_questions(entries, hat.story, draft["scenes"], "gratitude", wanted)
    assert [part["question_type"] for part in found] == ["causal", *["action_visibility"] * 2]


def test_wanted_questions_when_a_count_is_named_take_each_type_in_turn() -> None:
    assert questions_wanted("x", "wisdom", 8) == {
        "causal": 2, "emotional": 2, "moral": 1, "consequence": 1, "action_visibility": 1,
        "temporal_order": 1,
    }  # fmt: skip
    assert questions_wanted("x", None, 5) == dict.fromkeys(
        ("causal", "emotional", "consequence", "action_visibility", "temporal_order"), 1
    )
    assert sum(questions_wanted("x", "wisdom", 24).values()) == 24


def test_wanted_questions_when_no_count_is_named_are_five_at_least_beside_the_moral_one() -> None:
    mixes = [questions_wanted(f"story_{number}", "wisdom") for number in range(300)]
    beside = [sum(mix.values()) - mix["moral"] for mix in mixes]
    assert {mix["moral"] for mix in mixes} == {1} and min(beside) == 5
    assert 0.2 < sum(mix["causal"] == 2 for mix in mixes) / 300 < 0.33  # Table 14: 26.5 %
    assert questions_wanted("story_1", None) == {
        **{key: number for key, number in mixes[1].items() if key != "moral"}, "action_visibility": 1
    }  # fmt: skip


# Replies that hold contrastive variants.


LABELS = ("causal_transition", "gratitude")


def contrast(draft, scene: int = 5, **changes) -> dict:
    text = draft["scenes"][scene - 1]["scene_text"] if 1 <= scene <= 5 else ""
    return {
        "changed_scene": scene,
        "change_type": "remove_consequence",
        "later_scene": 5 if scene < 5 else None,
        "depends": "Now she owes him nothing.",
        "semantic_delta": "She thanked him; now she does not.",
        "contrastive_scene_text": f"{text} Nothing came of it.",
        "contrastive_moral": None,
        "questions": [],
        **changes,
    }


def read_contrast(draft, hat, *entries, count=1):
    return read_variants({"variants": list(entries)}, hat.story, draft["scenes"], LABELS, range(1, count + 1))


def test_variant_when_good_changes_one_scene_and_nothing_else(draft, hat) -> None:
    (made,) = read_contrast(draft, hat, contrast(draft, contrastive_moral="gratitude"))
    before = [scene["scene_text"] for scene in draft["scenes"]]
    expected = " ".join([*before[:4], made["contrastive_scene_text"]])
    assert made["contrastive_story_text"] == expected
    assert made["variant_kind"] == "semantic_contrast"
    assert made["semantic_delta"] == "She thanked him; now she does not. Now she owes him nothing."
    assert made["original_moral"] == "gratitude"
    assert made["contrastive_moral"] is None  # the original label again is no other label
    assert (made["variant_id"], made["pair_id"]) == ("tale_1_v1", "tale_1_pair1")


def test_variant_when_events_change_places_is_a_temporal_contrast(draft, hat) -> None:
    (made,) = read_contrast(draft, hat, contrast(draft, change_type="reorder_events"))
    assert made["variant_kind"] == "temporal_contrast"


def test_variant_when_a_character_is_lost_names_it(model, draft, hat) -> None:
    scene = next(n for n, part in enumerate(draft["scenes"], 1) if "fisherman" in part["characters"])
    changed = contrast(draft, scene, contrastive_scene_text="The river was quiet and nobody was there.")
    with pytest.raises(model.BadReply, match="the new text must still name"):
        read_contrast(draft, hat, changed)


def test_variants_when_another_number_or_equal_go_back(model, draft, hat) -> None:
    with pytest.raises(model.BadReply, match="expected exactly 2 contrasts, found 1"):
        read_contrast(draft, hat, contrast(draft), count=2)
    with pytest.raises(model.BadReply, match="contrast 2 is the same as contrast 1"):
        read_contrast(draft, hat, contrast(draft), contrast(draft), count=2)


def test_variant_when_written_again_keeps_its_number(draft, hat) -> None:
    reply = {"variants": [contrast(draft, 2)]}
    (made,) = read_variants(reply, hat.story, draft["scenes"], LABELS, [2])
    assert made["variant_id"] == "tale_1_v2"


@pytest.mark.parametrize("later", [None, 2, 1, 6])
def test_variant_when_no_later_scene_depends_on_it_goes_back(model, draft, hat, later) -> None:
    with pytest.raises(model.BadReply, match="contrast 1: later_scene must be a scene after 2, up to 5"):
        read_contrast(draft, hat, contrast(draft, 2, later_scene=later))


ABOUT_CHANGE = {
    "question_type": "consequence",
    "target_from_scene": 4,
    "evidence_scenes": [4, 5],
    "question": "What comes of her thanks?",
    "story_answer": "she brings bread",
    "gold_answer": "nothing came of it",
    "told_by": "Nothing came of it",
    "other_answers": ["nothing at all comes of it", "they lead to nothing"],
}


@pytest.mark.parametrize(
    "fault",
    [
        {"gold_answer": "a basket of fresh bread from her", "told_by": "a basket of cakes"},
        {"story_answer": "They lead to nothing"},
        {"question_type": "moral", "gold_answer": "gratitude"},
        {"target_from_scene": 7},
        {"gold_answer": "unclear"},
        {"question": "Is it so that nothing came of it?"},
    ],
)
def test_question_about_a_variant_when_the_variant_does_not_answer_it_is_left_out(draft, hat, fault) -> None:
    good, bad = asked(**ABOUT_CHANGE), asked(**ABOUT_CHANGE) | fault
    (made,) = read_contrast(draft, hat, contrast(draft, questions=[bad, good]))
    (question,) = made["questions"]
    assert (question["question_id"], question["story_id"]) == ("tale_1_v1_q01", "tale_1_v1")
    assert question["accepted_answers"] == [ABOUT_CHANGE["gold_answer"], *ABOUT_CHANGE["other_answers"]]
    (none,) = read_contrast(draft, hat, contrast(draft, questions=[bad]))
    assert "questions" not in none


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

"""Replies that hold questions."""

import pytest

from fabula.builders.katha.write_questions import (
    questions_shown,
    questions_wanted,
    read_corrected_questions,
    read_questions,
)

WANTED = {"causal": 1, "moral": 1, "temporal_order": 1}


def entry(**changes) -> dict:
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
    (made,) = read(draft, hat, entry())
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
        read(draft, hat, entry(**changes))
    assert problem in str(caught.value)


def test_other_answers_when_repeated_empty_or_leaked_are_left_out(draft, hat) -> None:
    others = ["to save the hat", "To save the hat.", "it", "his rod", "the girl was afraid for her hat"]
    (made,) = read(draft, hat, entry(other_answers=others))
    assert made["accepted_answers"] == ["the girl was afraid for her hat", "to save the hat"]


def test_questions_when_more_than_wanted_are_cut_to_what_was_wanted(draft, hat) -> None:
    made = read(draft, hat, entry(), entry(), entry(question_type="emotional"))
    assert [part["question_type"] for part in made] == ["causal"]


@pytest.mark.parametrize("kinds", [(), ("moral",), ("emotional",)])
def test_questions_when_none_is_about_the_events_go_back(model, draft, hat, kinds) -> None:
    entries = [entry(question_type=kind) for kind in kinds]
    with pytest.raises(model.BadReply, match="expected questions of the types causal, temporal_order"):
        read(draft, hat, *entries)


def test_moral_question_when_no_answer_names_the_label_accepts_the_label(draft, hat) -> None:
    moral = entry(question_type="moral", question="Which value?", gold_answer="thankfulness")
    made = read(draft, hat, entry(), moral)[1]
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
        read(draft, hat, entry(**changes))


def test_corrected_questions_when_types_or_number_change_go_back(model, draft, hat) -> None:
    before = draft["questions"]
    shown = questions_shown(before)
    made = read_corrected_questions({"questions": shown}, hat.story, draft["scenes"], "gratitude", before)
    assert made == before
    for wrong in (shown[:-1], [*shown[1:], shown[0]]):
        with pytest.raises(model.BadReply):
            read_corrected_questions({"questions": wrong}, hat.story, draft["scenes"], "gratitude", before)


def test_wanted_questions_when_counted_over_many_stories_come_out_as_published() -> None:
    total = {}
    for number in range(5000):
        for kind, count in questions_wanted(f"kb25k_{number:04d}", "wisdom").items():
            total[kind] = total.get(kind, 0) + count
    # Table 14: 6,325 causal, 6,237 emotional, 1,150 about a visible action, 5,000 of each other.
    assert abs(total["causal"] - 6325) < 150
    assert abs(total["emotional"] - 6237) < 150
    assert abs(total["action_visibility"] - 1150) < 150
    assert total["moral"] == total["consequence"] == total["temporal_order"] == 5000
    assert "moral" not in questions_wanted("kb25k_0001", None)

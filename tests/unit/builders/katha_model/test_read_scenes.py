"""Replies that divide a story and describe its scenes: what is taken, what goes back and with which words.

What is made of a good reply is pinned whole once; each other reply by what it changes of that, or by the
words with which it goes back.
"""

from collections.abc import Callable
from typing import Any

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
from fabula.engine.stage import BadReply
from fabula.schemas.canonical import canonical_text

TEXTS = (
    "On a windy morning Mira walked along the river with her new hat.",
    "A gust tore the hat from her head, and she ran after it to the edge of the water.",
)
CHINESE = "渔夫为什么要挥动他的鱼竿去抓住女孩被风吹走的帽子呢你知道吗"
Reader = Callable[..., list[dict[str, Any]]]


def said(read: Reader, *given: Any) -> str:
    """Return what is made of a reply, a field a line; or the words with which it goes back."""
    try:
        made = read(*given)
    except BadReply as problem:
        return f"goes back: {problem}"
    return "\n".join(
        f"{key}: {value if isinstance(value, str) else canonical_text(value)}"
        for part in made for key, value in part.items()
    )  # fmt: skip


@pytest.fixture
def changes(difference: Any, snapshot: Any) -> Callable[[str, str], bool]:
    """Whether a reply is read as pinned: what differs from a good one, or why it goes back."""
    return lambda good, text: (text if text.startswith("goes back") else difference(good, text)) == snapshot


def entry(scene: int, **changes: Any) -> dict[str, Any]:
    return {
        "scene": scene, "first_segment": 0, "characters": ["Mira"], "objects": ["hat"],
        "action": "Mira runs.", "state": "The hat is gone.", "emotion": None, "emotion_words": None,
        "visual_evidence": None, "visual_must_show": ["Mira running"], **changes,
    }  # fmt: skip


def described(*scenes: dict[str, Any]) -> dict[str, Any]:
    return {"cast": [{"name": "the Mira", "look": "a girl in red (ten years old)."}], "scenes": list(scenes)}


def divided(hat: Any, firsts: tuple[int | None, ...]) -> list[dict[str, Any]]:
    scenes = [entry(number, first_segment=first) for number, first in enumerate(firsts, 1)]
    return read_division(described(*scenes), hat.story, hat.analysis, 5)


def test_division_when_segments_rise_makes_scenes_that_cover_the_story(hat, snapshot) -> None:
    scenes = divided(hat, (1, 2, 4, 6, 8))
    texts = [scene["scene_text"] for scene in scenes]
    assert scene_spans(hat.story["normalized_text"], texts) is not None
    assert " ".join(texts) == hat.story["normalized_text"]
    assert said(lambda: scenes[1:2]) == snapshot
    for number, scene in enumerate(scenes, 1):
        differs = {key for key, value in scene.items() if value != scenes[1][key]}
        assert differs <= {"scene_index", "scene_text", "generation_prompt_long"}
        assert scene["scene_index"] == number and f"scene {number} of 5" in scene["generation_prompt_long"]


@pytest.mark.parametrize(
    "firsts",
    [(1, 2, 3), (2, 3, 4, 5, 6), (1, 3, 3, 5, 6), (1, 5, 3, 6, 7), (1, 2, 3, 4, 99), (1, 2, 3, 4, -1),
     (None, 2, 3, 4, 5)],
)  # fmt: skip
def test_division_when_segments_are_wrong_says_which_and_why(hat, firsts, snapshot) -> None:
    assert said(divided, hat, firsts) == snapshot


@pytest.mark.parametrize(
    "change",
    [
        {"characters": ["Mira", "Captain Ahab"]}, {"characters": ["Mira", "wind"]}, {"action": " . "},
        {"state": "a" * 1001}, {"visual_must_show": [" ", "!"]}, {"action": CHINESE},
        {"objects": [f"thing {n}" for n in range(31)]},
        {"characters": ["the Mira", "the  Mira", ""], "emotion": " - ", "action": "Mira\nruns\u0000."},
        # a feeling is told where its words stand in the second scene
        *({"emotion": "Mira is in haste", "emotion_words": words} for words in
          ("ran after it", "A gust ... the EDGE of the water!", "she trembled", "new hat", None, "")),
    ],
    ids=["unknown name", "thing as character", "no action", "long state", "nothing to show", "Chinese",
         "many objects", "untidy", "felt", "felt with a gap", "not felt", "felt elsewhere", "no words",
         "empty words"],
)  # fmt: skip
def test_description_when_a_field_is_otherwise_is_taken_without_it_or_goes_back(hat, change, changes) -> None:
    good, text = (
        said(read_scenes, described(entry(2, **more)), hat.story, TEXTS, [2]) for more in ({}, change)
    )
    assert changes(good, text)


def test_scenes_when_in_another_order_are_put_in_order(hat) -> None:
    scenes = read_scenes(described(entry(2), entry(1)), hat.story, TEXTS, [1, 2])
    assert [scene["scene_text"] for scene in scenes] == list(TEXTS)


def test_scene_when_alone_is_described_again_has_its_number_and_the_looks_that_it_had(hat) -> None:
    (made,) = read_scenes(described(entry(2)), hat.story, TEXTS, [2], {"mira": "a goat"})
    assert (made["scene_index"], made["scene_text"]) == (2, TEXTS[1])
    assert made["generation_prompt"].startswith("Mira (a goat) runs")
    assert looks_in([made]) == {"mira": "a goat"}


# Replies that describe transitions.

LINKED = ("Mira wept.", "She ran.", "She laughed aloud.")


def link(first: int, **changes: Any) -> dict[str, Any]:
    words = ("action", "causality", "consequence", "expected_change", "recoverability_target")
    return {
        "from_scene": first, "to_scene": first + 1, **{name: f"The {name} of {first}." for name in words},
        "intention": None, "emotion": "", "emotion_words": None, "transition_type": "cause_effect", **changes,
    }  # fmt: skip


def linked(hat: Any, *entries: dict[str, Any], bearer: int | None = 2, **more: Any) -> str:
    reply = {"transitions": list(entries or (link(1), link(2))), "moral_from_scene": bearer}
    given = {"moral": "gratitude", **more}
    return said(read_transitions, reply, hat.story, LINKED, *given.values())


def test_transitions_when_good_carry_the_moral_on_one_of_them(hat, snapshot) -> None:
    assert linked(hat) == snapshot


@pytest.mark.parametrize(
    ("entries", "more"),
    [
        ((), {"moral": None}), ((), {"bearer": 1}), ((link(2), link(1)), {}),
        ((link(2),), {"bearer": None, "numbers": [2]}), ((link(1, causality=None), link(2)), {}),
        ((link(1), link(1)), {}), ((link(1), link(7)), {}), ((link(1), link(2, to_scene=9)), {}),
        ((link(1), link(2, consequence="?")), {}),
        *(((link(1, emotion="sorrow", emotion_words=words), link(2)), {}) for words in
          ("wept", "wept ... laughed", "ran")),
    ],
    ids=["no moral", "another bearer", "in another order", "one again", "no cause", "one twice", "unknown",
         "leads elsewhere", "says nothing", "felt", "felt in no two scenes", "felt in the next"],
)  # fmt: skip
def test_transitions_when_otherwise_are_read_so_or_say_where_they_are_wrong(hat, entries, more, changes):
    assert changes(linked(hat), linked(hat, *entries, **more))


# Replies that hold questions.

WANTED = {"causal": 1, "moral": 1, "temporal_order": 1}


def asked(**changes: Any) -> dict[str, Any]:
    return {
        "question_type": "causal", "target_scene": None, "target_from_scene": 2, "evidence_scenes": [3, 2],
        "question": "Why does the fisherman swing his rod?",
        "gold_answer": "the girl was afraid for her hat", "told_by": "the girl was afraid for her hat",
        "other_answers": ["the girl feared for her hat", "to save the hat"],
        "required_evidence": "The girl's face.", **changes,
    }  # fmt: skip


def questions(draft: Any, hat: Any, *entries: dict[str, Any], wanted: Any = None) -> str:
    reply = {"questions": list(entries)}
    return said(read_questions, reply, hat.story, draft["scenes"], "gratitude", wanted or WANTED)


MORAL = {"question_type": "moral", "question": "Which value?"}
FELT = {
    "question_type": "emotional", "question": "How does Mira feel in the end?", "gold_answer": "happy",
    "other_answers": ["glad", "full of joy"], "evidence_scenes": [4],
}  # fmt: skip
SEEN = {
    "question_type": "action_visibility", "question": "What does the man do with his rod?",
    "gold_answer": "hooked the hat", "other_answers": ["he catches it", "it hangs there"],
}  # fmt: skip
FEELINGS = {"causal": 1, "emotional": 1}


def test_question_when_good_has_the_shape_of_the_format(draft, hat, snapshot) -> None:
    assert questions(draft, hat, asked()) == snapshot


@pytest.mark.parametrize(
    "change",
    [
        {"evidence_scenes": [2, 9]}, {"evidence_scenes": []}, {"target_from_scene": 5}, {"target_scene": 2},
        {"target_from_scene": None}, {"gold_answer": "..."}, {"gold_answer": "Unclear"},
        {"gold_answer": "the fisherman"}, {"other_answers": []},
        {"other_answers": ["The girl was afraid for her HAT!", "yes"]}, {"required_evidence": ""},
        {"question": CHINESE},
        # those that are repeated, empty or leaked are left out
        {"other_answers": ["to save the hat", "To save the hat.", "it", "his rod",
                           "the girl was afraid for her hat"]},
        # the answer to what came before comes last
        {"question_type": "temporal_order", "question": "What happens before the gust?",
         "gold_answer": "she brought him a basket of fresh bread", "other_answers": ["the bread"],
         "evidence_scenes": [1, 2]},
    ],
    ids=["unknown scene", "no scene", "no neighbour", "two places", "no place", "no answer", "unclear",
         "leaked", "no other", "only the same", "no evidence", "Chinese", "some others", "comes last"],
)  # fmt: skip
def test_question_when_a_field_is_otherwise_is_read_so_or_goes_back(draft, hat, change, changes) -> None:
    assert changes(questions(draft, hat, asked()), questions(draft, hat, asked(**change)))


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ([asked(), asked(**MORAL, gold_answer="thankfulness")], None),
        ([asked(), asked(**MORAL, gold_answer="gratitude", target_scene=None, target_from_scene=None,
                         evidence_scenes=[4, 2, 5])], None),
        ([asked(), asked(**FELT, told_by="Mira was happy")], FEELINGS),
        ([asked(), asked(**FELT, told_by="she danced")], FEELINGS),
        ([asked(), asked(**FELT, told_by=None)], FEELINGS),
        ([asked(), asked(**SEEN)], FEELINGS),
    ],
    ids=["moral without label", "moral without place", "feeling told", "feeling not told",
         "feeling without words", "act in place of a feeling"],
)  # fmt: skip
def test_questions_when_several_are_taken_or_left_out_by_what_is_wanted(draft, hat, entries, wanted, changes):
    assert changes(questions(draft, hat, asked()), questions(draft, hat, *entries, wanted=wanted))


def test_questions_when_more_than_wanted_are_spare_those_of_new_types_first(draft, hat) -> None:
    made = questions(draft, hat, *[asked()] * 4, asked(question_type="emotional"))
    types = [line for line in made.splitlines() if line.startswith("question_type")]
    assert types == [f"question_type: {kind}" for kind in ("causal", "emotional", *["causal"] * 3)]


def test_questions_when_written_again_keep_numbers_and_types(draft, hat) -> None:
    before = draft["questions"]
    shown = [{**part, "told_by": hat.story["text"]} for part in questions_shown(before, None)]
    made = read_again({"questions": shown[1:3]}, hat.story, draft["scenes"], before, [2, 3])
    assert made == before[1:3]
    for wrong in (shown[:1], [*shown[2:3], shown[1]]):
        with pytest.raises(BadReply):
            read_again({"questions": wrong}, hat.story, draft["scenes"], before, [2, 3])


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
ABOUT_CHANGE = {
    "question_type": "consequence", "target_from_scene": 4, "evidence_scenes": [4, 5],
    "question": "What comes of her thanks?", "story_answer": "she brings bread",
    "gold_answer": "nothing came of it", "told_by": "Nothing came of it",
    "other_answers": ["nothing at all comes of it", "they lead to nothing"],
}  # fmt: skip


def contrast(draft: Any, scene: int = 5, **changes: Any) -> dict[str, Any]:
    text = draft["scenes"][scene - 1]["scene_text"]
    return {
        "changed_scene": scene, "change_type": "remove_consequence", "later_scene": 5 if scene < 5 else None,
        "depends": "Now she owes him nothing.", "semantic_delta": "She thanked him; now she does not.",
        "contrastive_scene_text": f"{text} Nothing came of it.", "contrastive_moral": None, "questions": [],
        **changes,
    }  # fmt: skip


def variants(draft: Any, hat: Any, *entries: dict[str, Any], numbers: Any = (1,)) -> str:
    return said(read_variants, {"variants": list(entries)}, hat.story, draft["scenes"], LABELS, numbers)


def test_variant_when_good_changes_one_scene_and_nothing_else(draft, hat, snapshot) -> None:
    assert variants(draft, hat, contrast(draft)) == snapshot


@pytest.mark.parametrize(
    ("scene", "change"),
    [
        (5, {"contrastive_moral": "gratitude"}),  # the original label again is no other label
        (5, {"contrastive_moral": "kindness"}), (5, {"change_type": "reorder_events"}), (2, {}),
        (4, {"contrastive_scene_text": "The river was quiet and nobody was there."}),
        *((2, {"later_scene": later}) for later in (None, 2, 1, 6)),
        (5, {"questions": [asked(**ABOUT_CHANGE)]}),
    ],
    ids=["same moral", "other moral", "other order", "second scene", "character lost", "no later scene",
         "later is the same", "later is before", "later is unknown", "with a question"],
)  # fmt: skip
def test_variant_when_otherwise_is_read_so_or_goes_back(draft, hat, scene, change, changes) -> None:
    assert changes(
        variants(draft, hat, contrast(draft)), variants(draft, hat, contrast(draft, scene, **change))
    )


def test_variants_when_another_number_or_equal_go_back_and_alone_keep_their_number(draft, hat, snapshot):
    one = contrast(draft)
    told = [variants(draft, hat, *entries, numbers=(1, 2)) for entries in ([one], [one, one])]
    assert [*told, variants(draft, hat, contrast(draft, 2), numbers=[2]).splitlines()[:3]] == snapshot


@pytest.mark.parametrize(
    "fault",
    [
        {"gold_answer": "a basket of fresh bread from her", "told_by": "a basket of cakes"},
        {"story_answer": "They lead to nothing"}, {"question_type": "moral", "gold_answer": "gratitude"},
        {"target_from_scene": 7}, {"gold_answer": "unclear"},
        {"question": "Is it so that nothing came of it?"},
    ],
)  # fmt: skip
def test_question_about_a_variant_when_the_variant_does_not_answer_it_is_left_out(draft, hat, fault) -> None:
    good, bad = asked(**ABOUT_CHANGE), asked(**ABOUT_CHANGE) | fault
    alone, both, none = (contrast(draft, questions=some) for some in ([good], [bad, good], [bad]))
    assert variants(draft, hat, both) == variants(draft, hat, alone)
    assert variants(draft, hat, none) == variants(draft, hat, contrast(draft))


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

"""Replies that divide a story and describe its scenes: what is taken, what goes back and with which words."""

import copy

import pytest

from fabula.builders.katha.draft_scenes import read_descriptions, read_division
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


@pytest.mark.parametrize("numbers", [(1, 1), (1, 3), (1,), (0, 1), (1, 2, 3)])
def test_description_when_scenes_are_missing_or_strange_names_the_numbers(model, hat, numbers) -> None:
    with pytest.raises(model.BadReply, match=r"the values of scene must be 1, 2; found"):
        read_descriptions({"scenes": [{"scene": n, **entry(0)} for n in numbers]}, hat.story, TEXTS)


def test_reply_when_read_is_left_as_it_was(hat) -> None:
    given = reply(1, 2, 4, 6, 8)
    before = copy.deepcopy(given)
    read_division(given, hat.story, hat.analysis, 5)
    assert given == before

"""Replies that describe transitions."""

import pytest

from fabula.builders.katha.annotate_transitions import read_transitions


def entry(first: int, **changes) -> dict:
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


def reply(bearer: int | None, *entries: dict) -> dict:
    return {"transitions": list(entries) or [entry(1), entry(2)], "moral_from_scene": bearer}


def test_transitions_when_good_carry_the_moral_on_one_of_them(hat) -> None:
    made = read_transitions(reply(2), hat.story, 3, "gratitude")
    assert [part["moral_target"] for part in made] == [None, "gratitude"]
    assert [(part["from_scene"], part["to_scene"]) for part in made] == [(1, 2), (2, 3)]
    assert made[0]["emotion"] is None
    assert {part["story_id"] for part in made} == {"tale_1"}


def test_transitions_when_the_story_has_no_moral_carry_none_whatever_the_reply_says(hat) -> None:
    assert {part["moral_target"] for part in read_transitions(reply(2), hat.story, 3, None)} == {None}


@pytest.mark.parametrize("bearer", [None, 0, 3])
def test_transitions_when_the_moral_stands_nowhere_go_back(model, hat, bearer) -> None:
    with pytest.raises(model.BadReply, match="moral_from_scene must be one of 1 to 2"):
        read_transitions(reply(bearer), hat.story, 3, "gratitude")


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ((entry(1), entry(1)), "expected transitions from scene 1 to 2, each once"),
        ((entry(1), entry(7)), "found 1, 7"),
        ((entry(1), entry(2, to_scene=9)), "leads to scene 3; found to_scene 9"),
        ((entry(1), entry(2, causality="?")), "the transition from scene 2: causality says nothing"),
    ],
)
def test_transitions_when_wrong_say_where(model, hat, entries, problem) -> None:
    with pytest.raises(model.BadReply) as caught:
        read_transitions(reply(1, *entries), hat.story, 3, "gratitude")
    assert problem in str(caught.value)


def test_transitions_when_in_another_order_are_put_in_order(hat) -> None:
    made = read_transitions(reply(1, entry(2), entry(1)), hat.story, 3, "gratitude")
    assert [part["from_scene"] for part in made] == [1, 2]

"""Each rule of layouts, broken once."""

import pytest

from fabula.generation.memory.shots.check_layout import MOST_KEYFRAMES, layout_faults
from fabula.generation.memory.shots.layout import Beside, Keyframe, ShotCast, ShotLayout, standing_at
from fabula.generation.memory.shots.staging import read_staging

ACTION = "Ana holds the cup. Ben enters from the left."
HALL = {"location": "Hall"}


def cast(before: Keyframe | None = None) -> ShotCast:
    return ShotCast("1:1", ACTION, ("Ana", "Ben"), ("Hall",), ("the cup",), before)


def good(**changed: object) -> Keyframe:
    fields = {
        "characters": standing_at({"Ben": 1, "Ana": 3}), "objects": (Beside(name="the cup", user="Ana"),),
        **HALL,
    }  # fmt: skip
    return Keyframe(**{**fields, **changed})


def faults(*keyframes: Keyframe, before: Keyframe | None = None) -> list[str]:
    layout = ShotLayout(shot="1:1", continues=before is not None, keyframes=keyframes)
    return layout_faults(layout, cast(before), read_staging(ACTION, ("Ana", "Ben")))


def test_layout_when_it_keeps_the_rules_has_no_fault() -> None:
    assert faults(good()) == []
    before = Keyframe(characters=standing_at({"Ana": 3, "Cleo": 5}), **HALL)
    assert faults(good(), before=before) == []
    assert faults(good(objects=(Beside(name="the cup"),))) == []


@pytest.mark.parametrize(
    ("keyframe", "words"),
    [
        (good(characters=(*standing_at({"Ana": 1}), *standing_at({"Ben": 1}))), "Ana and Ben are both left"),
        (good(characters=standing_at({"Ana": 3, "Ben": 1, "Cleo": 5})), "Cleo is no character of this shot"),
        (
            good(characters=(*standing_at({"Ana": 1}), *standing_at({"Ana": 2, "Ben": 0}))),
            "Ana is there 2 times",
        ),
        (good(characters=standing_at({"Ana": 3})), "Ben is in no keyframe"),
        (good(objects=()), "the cup is in no keyframe"),
        (good(objects=(Beside(name="the cup", user="Cleo"),)), "stands beside Cleo, who is not there"),
        (good(objects=(Beside(name="a hat"), Beside(name="the cup"))), "a hat is no object of this shot"),
        (good(location="Yard"), "Yard is no place of this shot; there is: Hall"),
        (good(location=None), "none is no place of this shot"),
        (
            good(characters=standing_at({"Ana": 3, "Ben": 4})),
            "Ben comes from the left and is first centre-right",
        ),
    ],
)
def test_layout_when_it_breaks_a_rule_is_told_which(keyframe: Keyframe, words: str) -> None:
    assert any(words in fault for fault in faults(keyframe)), faults(keyframe)


def test_layout_when_it_has_too_many_keyframes_is_told_so() -> None:
    assert faults(*[good()] * MOST_KEYFRAMES) == []
    assert faults(*[good()] * (MOST_KEYFRAMES + 1)) == ["there are 9 keyframes; at most 8"]


def test_shot_when_it_goes_on_has_who_stays_where_they_were() -> None:
    before = Keyframe(characters=standing_at({"Ana": 4}), **HALL)
    assert any("Ana was centre-right and is centre" in fault for fault in faults(good(), before=before))
    late = Keyframe(characters=standing_at({"Ben": 1}), **HALL)
    assert any("Ana was there" in fault for fault in faults(late, good(), before=before))


def test_entry_when_more_come_from_a_side_than_it_has_cells_may_be_anywhere() -> None:
    names = ("Ana", "Ben", "Cleo", "Dan")
    action = "Ana, Ben, Cleo and Dan enter from the left."
    keyframe = Keyframe(characters=standing_at(dict(zip(names, range(4), strict=True))))
    layout = ShotLayout(shot="1:1", continues=False, keyframes=(keyframe,))
    assert layout_faults(layout, ShotCast("1:1", action, names), read_staging(action, names)) == []

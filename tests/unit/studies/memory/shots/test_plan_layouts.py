"""Each rule of layouts, broken once."""

import pytest

from fabula.studies.memory.shots.layout import (
    Angle,
    Beside,
    Keyframe,
    Pan,
    ShotCast,
    ShotLayout,
    standing_at,
)
from fabula.studies.memory.shots.plan_layouts import MOST_KEYFRAMES, layout_faults, pan_faults

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
    return layout_faults(layout, cast(before))


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


def keyframe(places: dict[str, int], angle: Angle = "front", pan: Pan = "none", at: str = "Hall") -> Keyframe:
    return Keyframe(characters=standing_at(places), location=at, angle=angle, pan=pan)


def test_faults_when_a_pan_is_physical_are_none() -> None:
    before = keyframe({"Ana": 2, "Ben": 4})
    assert pan_faults(before, keyframe({"Ana": 2, "Ben": 4}), ["Ana", "Ben"]) == []
    assert pan_faults(before, keyframe({"Ana": 0, "Ben": 2}, "right", "right"), ["Ana", "Ben"]) == []
    assert pan_faults(before, keyframe({"Ana": 2, "Ben": 4}, "right", "right"), ["Ana", "Ben"]) == []
    assert pan_faults(before, keyframe({"Ana": 4, "Ben": 6}, "left", "left"), ["Ana", "Ben"]) == []
    # Another place has views of its own.
    assert pan_faults(before, keyframe({"Ana": 2, "Ben": 4}, "left", "none", "Yard"), ["Ana", "Ben"]) == []


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            keyframe({"Ana": 3, "Ben": 4}),
            "Ana was centre-left and is centre, though the camera does not turn",
        ),
        (keyframe({"Ana": 3, "Ben": 4}, "right", "right"), "who stays moves left"),
        (keyframe({"Ana": 1, "Ben": 4}, "left", "left"), "who stays moves right"),
        (keyframe({"Ana": 1, "Ben": 0}, "right", "right"), "stood in this order from left to right"),
        (
            keyframe({"Ana": 2, "Ben": 4}, "right"),
            "the view was front and is right, though the camera does not",
        ),
        (
            keyframe({"Ana": 2, "Ben": 4}, "left", "right"),
            "the view was front and is left, though the camera turns",
        ),
    ],
)
def test_faults_when_a_pan_is_not_physical_name_it(after: Keyframe, words: str) -> None:
    faults = pan_faults(keyframe({"Ana": 2, "Ben": 4}), after, ["Ana", "Ben"])
    assert any(words in fault for fault in faults), faults

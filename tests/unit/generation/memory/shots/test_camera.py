"""What a turn of the camera does to a frame, on sequences worked by hand."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.generation.memory.shots.camera import (
    drawn_together,
    is_free,
    lone_side,
    pan_faults,
    roomier_side,
    shifted,
    turned,
)
from fabula.generation.memory.shots.layout import ANGLES, Angle, Keyframe, Pan, standing_at

# Cells: far-left 0, left 1, centre-left 2, centre 3, centre-right 4, right 5, far-right 6.


def keyframe(places: dict[str, int], angle: Angle = "front", pan: Pan = "none", at: str = "Hall") -> Keyframe:
    return Keyframe(characters=standing_at(places), location=at, angle=angle, pan=pan)


@pytest.mark.parametrize(
    ("before", "pan", "after"),
    [
        ({"Ana": 3, "Ben": 5}, "right", {"Ana": 1, "Ben": 3}),  # 3 - 2, 5 - 2
        ({"Ana": 3, "Ben": 5}, "left", {"Ana": 5, "Ben": 6}),  # 3 + 2; 5 + 2 is 7, and the edge is 6
        ({"Ana": 0, "Ben": 1, "Cy": 2}, "right", {"Ana": 0, "Ben": 1, "Cy": 2}),  # already at the edge
        ({"Ana": 1, "Ben": 2}, "right", {"Ana": 0, "Ben": 1}),  # -1 and 0: drawn together at the edge
        ({"Ana": 3}, "none", {"Ana": 3}),
        ({}, "left", {}),
    ],
)
def test_shift_when_the_camera_pans_moves_two_cells_against_it(
    before: dict[str, int], pan: Pan, after: dict[str, int]
) -> None:
    assert shifted(before, pan) == after


def test_shift_when_the_camera_follows_somebody_keeps_them_unless_another_would_stand_there() -> None:
    assert shifted({"Ana": 1, "Ben": 5}, "right", {"Ben"}) == {"Ana": 0, "Ben": 5}
    # Cy at 4 would pass Ben at 3, whom the camera follows: nobody is followed then.
    assert shifted({"Ben": 3, "Cy": 4}, "right", {"Ben"}) == {"Ben": 1, "Cy": 2}


@given(
    st.dictionaries(st.sampled_from("ABCDEFG"), st.integers(0, 6), max_size=7).filter(
        lambda places: len(set(places.values())) == len(places)
    ),
    st.sampled_from(("none", "left", "right")),
    st.sets(st.sampled_from("ABCDEFG")),
)
def test_shift_when_anybody_stands_anywhere_keeps_order_cells_and_direction(
    places: dict[str, int], pan: Pan, followed: set[str]
) -> None:
    after = shifted(places, pan, followed)
    names = sorted(places, key=places.__getitem__)
    assert (list(after) and set(after) == set(places)) or not places
    assert all(0 <= cell <= 6 for cell in after.values())
    assert all(after[left] < after[right] for left, right in pairwise(names))
    way = {"none": 0, "left": 1, "right": -1}[pan]
    assert all((after[name] - places[name]) * way >= 0 for name in names)
    assert pan != "none" or after == places


def test_view_when_the_camera_pans_moves_by_a_third_and_stays_at_the_end() -> None:
    assert [turned(angle, "right") for angle in ANGLES] == ["front", "right", "right"]
    assert [turned(angle, "left") for angle in ANGLES] == ["left", "left", "front"]
    assert [turned(angle, "none") for angle in ANGLES] == list(ANGLES)


def test_crowd_when_newcomers_need_the_edge_is_drawn_together() -> None:
    # Three stay, two come on the right: at most 6 - 2 = 4 for the last of them, 3 and 2 for the others.
    assert drawn_together({"A": 0, "B": 4, "C": 5}, "right", 2) == {"A": 0, "B": 3, "C": 4}
    assert drawn_together({"A": 1, "B": 2, "C": 6}, "left", 2) == {"A": 2, "B": 3, "C": 6}
    assert drawn_together({"A": 1}, "none", 3) == {"A": 1}


def test_sides_when_compared_say_where_there_is_room() -> None:
    assert is_free({"A": 3, "B": 6}, "left") and not is_free({"A": 3, "B": 6}, "right")
    assert roomier_side({"A": 4}, "front") == "left" and roomier_side({"A": 2}, "front") == "right"
    # Of equals, the side to which the panorama goes on.
    assert roomier_side({"A": 3}, "front") == "right" and roomier_side({"A": 3}, "right") == "left"
    assert lone_side({"A": 5, "B": 6}) == "right" and lone_side({"A": 0}) == "left"
    assert (
        lone_side({"A": 3}) == "centre"
        and lone_side({}) == "centre"
        and lone_side({"A": 0, "B": 6}) == "centre"
    )


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

"""Layouts by rules: sequences of shots worked by hand, and any schedule at all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.generation.memory.shots.check_layout import layout_faults
from fabula.generation.memory.shots.layout import Keyframe, ShotCast, ShotLayout, places_of, standing_at
from fabula.generation.memory.shots.plan_layout import SPREAD, plan_layout, spread
from fabula.generation.memory.shots.staging import read_staging

PEOPLE = tuple("ABCDEFGHIJ")
NAMES = tuple(f"Person{letter}" for letter in PEOPLE)


def cells(layout: ShotLayout) -> list[dict[str, int]]:
    return [places_of(keyframe) for keyframe in layout.keyframes]


def cameras(layout: ShotLayout) -> list[tuple[str, str]]:
    return [(keyframe.pan, keyframe.angle) for keyframe in layout.keyframes]


def follow(actions: list[tuple[str, tuple[str, ...]]], location: str = "Hall") -> list[ShotLayout]:
    layouts: list[ShotLayout] = []
    for number, (action, characters) in enumerate(actions, 1):
        before = layouts[-1].state if layouts else None
        cast = ShotCast(f"1:{number}", action, characters, (location,), (), before)
        layouts.append(plan_layout(cast))
        assert layout_faults(layouts[-1], cast, read_staging(action, characters)) == []
    return layouts


def test_shot_when_it_begins_anew_spreads_its_characters_in_the_order_of_the_text() -> None:
    cast = ShotCast("1:1", "Ben talks to Ana while Cleo listens.", ("Ana", "Ben", "Cleo"), ("Hall",))
    layout = plan_layout(cast)
    # Three are spread over cells 1, 3 and 5.
    assert cells(layout) == [{"Ben": 1, "Ana": 3, "Cleo": 5}]
    assert cameras(layout) == [("none", "front")] and not layout.continues
    assert layout.retained == layout.entering == layout.leaving == ()


def test_shot_when_the_text_puts_people_on_sides_has_them_there() -> None:
    action = "On the right, Ana stands by the door. Ben sits on the left."
    (layout,) = follow([(action, ("Ana", "Ben"))])
    # Of two, cells 2 and 4: 2 is on the left side and 4 on the right.
    assert cells(layout) == [{"Ben": 2, "Ana": 4}]


def test_camera_when_somebody_comes_to_a_full_side_pans_there_and_who_stays_shifts_against_it() -> None:
    one, two, three = follow(
        [
            ("Ana and Ben talk.", ("Ana", "Ben")),
            ("Cleo is there, too.", ("Ana", "Ben", "Cleo")),
            ("Ana and Ben talk on.", ("Ana", "Ben")),
        ]
    )
    assert cells(one) == [{"Ana": 2, "Ben": 4}]
    # Both sides have one; the panorama goes on to the right; that side is not free, so the camera pans there:
    # Ana 2 - 2 = 0, Ben 4 - 2 = 2, and Cleo takes the best cell on the right, 5.
    assert cells(two) == [{"Ana": 0, "Ben": 2, "Cleo": 5}] and cameras(two) == [("right", "right")]
    assert (two.retained, two.entering, two.leaving) == (("Ana", "Ben"), ("Cleo",), ())
    # Who stays is on the left alone, so the camera turns back to them: 0 + 2 and 2 + 2.
    assert cells(three) == [{"Ana": 2, "Ben": 4}] and cameras(three) == [("left", "front")]
    assert three.leaving == ("Cleo",)


def test_newcomer_when_the_side_is_free_stands_there_and_the_camera_rests() -> None:
    _, two = follow([("Ana waits.", ("Ana",)), ("Ben is beside Ana.", ("Ana", "Ben"))])
    assert cells(two) == [{"Ana": 3, "Ben": 5}] and cameras(two) == [("none", "front")]


def test_newcomer_when_the_text_names_a_side_comes_from_it_in_a_keyframe_of_its_own() -> None:
    _, two = follow([("Ana waits.", ("Ana",)), ("Ana waits. Ben enters from the left.", ("Ana", "Ben"))])
    assert cells(two) == [{"Ana": 3}, {"Ana": 3, "Ben": 1}]
    assert two.keyframes[1].shows == "Ben comes in"


def test_camera_when_the_text_has_it_pan_follows_the_text() -> None:
    _, two = follow([("Ana and Ben talk.", ("Ana", "Ben")), ("The camera pans left.", ("Ana", "Ben"))])
    # 2 + 2 = 4 and 4 + 2 = 6; the view goes from front to left.
    assert cells(two) == [{"Ana": 4, "Ben": 6}] and cameras(two) == [("left", "left")]


def test_camera_when_it_pans_to_somebody_after_a_cut_reveals_them() -> None:
    (layout,) = follow([("The view pans left across the room to settle on Ben. Ana reads.", ("Ana", "Ben"))])
    assert cells(layout) == [{"Ana": 3}, {"Ben": 1, "Ana": 5}]
    assert cameras(layout) == [("none", "front"), ("left", "left")]


def test_leaver_when_others_stay_is_in_the_first_keyframe_only() -> None:
    (layout,) = follow([("Ana exits the frame. Ben stays.", ("Ana", "Ben"))])
    assert cells(layout) == [{"Ana": 2, "Ben": 4}, {"Ben": 4}]
    (alone,) = follow([("Ana exits the frame.", ("Ana",))])
    assert cells(alone) == [{"Ana": 3}]


def test_crosser_when_the_text_says_from_where_to_where_is_on_both_sides() -> None:
    (layout,) = follow([("Ana runs from left to right across the frame.", ("Ana",))])
    # The centre is on neither side; the best cell on the left is 1, on the right 5.
    assert cells(layout) == [{"Ana": 1}, {"Ana": 5}]


def test_bodies_when_they_are_more_than_cells_get_a_further_keyframe() -> None:
    (layout,) = follow([("A crowd.", NAMES[:9])])
    assert [len(frame) for frame in cells(layout)] == [7, 2]
    assert sorted(cells(layout)[0].values()) == [0, 1, 2, 3, 4, 5, 6]


def test_places_when_a_shot_has_two_are_behind_one_after_the_other() -> None:
    cast = ShotCast("1:1", "From the Yard Ana walks to the Hall.", ("Ana",), ("Hall", "Yard"))
    layout = plan_layout(cast)
    assert [frame.location for frame in layout.keyframes] == ["Yard", "Hall"]
    assert cells(layout) == [{"Ana": 3}, {"Ana": 3}]
    before = Keyframe(characters=standing_at({"Ana": 3}), location="Hall", angle="left")
    going = plan_layout(ShotCast("1:2", "From the Yard.", ("Ana",), ("Hall", "Yard"), (), before))
    assert [(frame.location, frame.angle) for frame in going.keyframes] == [
        ("Hall", "left"),
        ("Yard", "front"),
    ]


def test_object_when_somebody_uses_it_is_where_they_are() -> None:
    action = "Ana sits. Ben enters with the cup."
    layout = plan_layout(ShotCast("1:1", action, ("Ana", "Ben"), (), ("the cup", "the lamp")))
    things = [[(thing.name, thing.user) for thing in frame.objects] for frame in layout.keyframes]
    assert things == [[("the lamp", None)], [("the cup", "Ben"), ("the lamp", None)]]


def test_spread_when_sides_are_given_keeps_them_and_the_others_apart() -> None:
    assert [sorted(spread(NAMES[:count], {}).values()) for count in range(8)] == [
        sorted(row) for row in SPREAD
    ]
    places = spread(("A", "B", "C"), {"A": "right", "B": "right", "C": "right"})
    assert sorted(places.values()) == [4, 5, 6]
    assert spread(("A",), {"A": "left"}) == {"A": 1}


SCRAPS = (
    "{0} enters from the left.", "{0} enters from the right.", "{0} walks out of the frame.",
    "{0} and {1} enter.",
    "The camera pans left.", "The camera pans right, following {0}.", "{0} runs from left to right.",
    "On the left, {0} stands with {1}.", "{0} holds the cup.", "The camera pans to the right to reveal {0}.",
    "{1} exits the frame.", "Nothing moves.", "{0} stands in the centre.", "In the Yard, {0} joins {1}.",
)  # fmt: skip
shots = st.tuples(
    st.lists(st.sampled_from(NAMES), max_size=10, unique=True),
    st.lists(st.sampled_from(("Hall", "Yard", "Attic")), max_size=3, unique=True),
    st.lists(st.sampled_from(("the cup", "the lamp", "the car")), max_size=3, unique=True),
    st.lists(st.tuples(st.sampled_from(SCRAPS), st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=5),
    st.booleans(),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(shots, min_size=1, max_size=5))
def test_layouts_when_anything_is_scheduled_keep_every_rule(
    episode: list[tuple[list[str], list[str], list[str], list[tuple[str, str, str]], bool]],
) -> None:
    state: Keyframe | None = None
    for number, (people, locations, things, scraps, cut) in enumerate(episode, 1):
        action = " ".join(scrap.format(first, second) for scrap, first, second in scraps)
        before = None if cut else state
        cast = ShotCast(f"1:{number}", action, tuple(people), tuple(locations), tuple(things), before)
        layout = plan_layout(cast)
        assert layout_faults(layout, cast, read_staging(action, cast.characters)) == []
        state = layout.state

"""The plain layout: schedules worked by hand, and any schedule at all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.generation.memory.shots.check_layout import layout_faults
from fabula.generation.memory.shots.layout import Keyframe, ShotCast, places_of, plain_layout, standing_at

NAMES = tuple(f"Person{letter}" for letter in "ABCDEFGHIJ")


def cells(cast: ShotCast) -> list[dict[str, int]]:
    return [places_of(keyframe) for keyframe in plain_layout(cast).keyframes]


def test_shot_when_it_begins_anew_spreads_its_characters_as_they_are_scheduled() -> None:
    # Three are spread over cells 1, 3 and 5, whatever the action says.
    cast = ShotCast("1:1", "Ben talks to Ana from the left.", ("Ana", "Ben", "Cleo"), ("Hall",), ("the cup",))
    assert cells(cast) == [{"Ana": 1, "Ben": 3, "Cleo": 5}]
    (keyframe,) = plain_layout(cast).keyframes
    assert (keyframe.pan, keyframe.angle, keyframe.location) == ("none", "front", "Hall")
    assert [(thing.name, thing.user) for thing in keyframe.objects] == [("the cup", None)]


def test_shot_when_it_goes_on_keeps_who_stays_and_gives_others_the_free_cells() -> None:
    before = Keyframe(characters=standing_at({"Ana": 3, "Ben": 4}), location="Hall", angle="left")
    cast = ShotCast("1:2", "", ("Cleo", "Ana", "Dan"), ("Yard", "Hall"), (), before)
    layout = plain_layout(cast)
    # The best cells after the centre are 2 and 4; Ben, who was in 4, has gone.
    assert cells(cast)[0] == {"Ana": 3, "Cleo": 2, "Dan": 4}
    assert [(frame.location, frame.angle) for frame in layout.keyframes] == [
        ("Hall", "left"),
        ("Yard", "front"),
    ]
    assert (layout.retained, layout.entering, layout.leaving) == (("Ana",), ("Cleo", "Dan"), ("Ben",))


def test_bodies_when_they_are_more_than_cells_get_a_further_keyframe() -> None:
    assert [sorted(frame.values()) for frame in cells(ShotCast("1:1", "A crowd.", NAMES[:9]))] == [
        [0, 1, 2, 3, 4, 5, 6],
        [2, 4],
    ]


shots = st.tuples(
    st.lists(st.sampled_from(NAMES), max_size=10, unique=True),
    st.lists(st.sampled_from(("Hall", "Yard", "Attic")), max_size=3, unique=True),
    st.lists(st.sampled_from(("the cup", "the lamp", "the car")), max_size=3, unique=True),
    st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(shots, min_size=1, max_size=5))
def test_layouts_when_anything_is_scheduled_keep_every_rule(
    episode: list[tuple[list[str], list[str], list[str], bool]],
) -> None:
    state: Keyframe | None = None
    for number, (people, locations, things, cut) in enumerate(episode, 1):
        before = None if cut else state
        cast = ShotCast(f"1:{number}", "", tuple(people), tuple(locations), tuple(things), before)
        layout = plain_layout(cast)
        assert layout_faults(layout, cast) == []
        state = layout.state

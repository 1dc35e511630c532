"""The compositor: boxes and edges by hand, and small pictures that must stay as they are, pixel by pixel.

After a change that is meant: UPDATE_GOLDEN=1 make test PYTEST_ARGS="-k test_compose"
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from fabula.studies.memory.shots.compose import Cutout, compose, soft
from fabula.studies.memory.shots.layout import (
    Beside,
    Keyframe,
    ShotCast,
    places_of,
    plain_layout,
    standing_at,
)
from fabula.studies.memory.shots.plan_layouts import layout_faults

SIZE = (140, 80)
"""Seven cells of 20 pixels."""


def figure(width: int, height: int, colour: tuple[int, int, int], height_of: float = 1.0) -> Cutout:
    """A rectangle of one colour with 10 pixels of nothing around it."""
    image = Image.new("RGBA", (width + 20, height + 20), (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle((10, 10, 9 + width, 9 + height), fill=(*colour, 255))
    return Cutout(image, height=height_of)


CAST = {
    "character:Ana": figure(30, 90, (200, 40, 40)), "character:Ben": figure(40, 90, (40, 60, 200)),
    "object:the cup": figure(20, 20, (235, 180, 40)), "object:the lamp": figure(10, 40, (250, 250, 250)),
}  # fmt: skip


def keyframe(places: dict[str, int], *things: Beside) -> Keyframe:
    return Keyframe(characters=standing_at(places), objects=things, location="Hall")


def test_edge_when_softened_loses_a_pixel_and_falls_off_in_two() -> None:
    alpha = np.zeros((7, 7), np.uint8)
    alpha[1:6, 1:6] = 255
    # One pixel less leaves 3 x 3; the mean of nine at its corner has 4 of 9, on its side 6 of 9, inside all.
    row = [(255 * count + 4) // 9 for count in (1, 2, 3, 2, 1)]
    middle = [(255 * count + 4) // 9 for count in (3, 6, 9, 6, 3)]
    assert soft(alpha)[1].tolist() == [0, *row, 0]
    assert soft(alpha)[3].tolist() == [0, *middle, 0]


def test_boxes_when_figures_stand_in_cells_are_those_worked_by_hand() -> None:
    made = compose(keyframe({"Ana": 1, "Ben": 5}), CAST, None, SIZE)
    # Height 0.72 * 80 = 57.6, so 58; width 57.6 * 30 / 90 = 19.2, so 19, and 57.6 * 40 / 90 = 25.6, so 26.
    # Middles of cells 1 and 5: 30 and 110. Feet at 0.95 * 80 = 76, tops at 76 - 58 = 18.
    assert made.boxes == {"character:Ana": (21, 18, 40, 76), "character:Ben": (97, 18, 123, 76)}
    assert made.image.getpixel((30, 50)) == (200, 40, 40) and made.image.getpixel((2, 2)) == (128, 128, 128)


def test_height_when_a_file_gives_it_scales_the_figure_and_no_other() -> None:
    small = {**CAST, "character:Ana": figure(30, 90, (200, 40, 40), 0.5)}
    made = compose(keyframe({"Ana": 1, "Ben": 5}), small, None, SIZE)
    # 0.36 * 80 = 28.8, so 29, and 28.8 / 3 = 9.6, so 10.
    assert made.boxes["character:Ana"] == (25, 47, 35, 76)
    assert made.boxes["character:Ben"] == (97, 18, 123, 76)
    tall = {"character:Ana": figure(30, 90, (200, 40, 40), 3.0)}
    left, top, right, bottom = compose(keyframe({"Ana": 3}), tall, None, SIZE).boxes["character:Ana"]
    assert (bottom - top, right - left) == (74, 25)  # at most 0.93 * 80 = 74.4


def test_figures_when_they_would_hide_each_other_are_smaller_in_one_measure() -> None:
    made = compose(keyframe({"Ana": 2, "Ben": 3}), CAST, None, SIZE)
    # The widest, Ben, has 26 pixels; the room between neighbours is 20, and 1.3 * 20 = 26: as before.
    assert made.boxes["character:Ben"][3] - made.boxes["character:Ben"][1] == 58
    wide = {name: figure(60, 60, (9, 9, 9)) for name in ("character:Ana", "character:Ben")}
    boxes = compose(keyframe({"Ana": 2, "Ben": 3}), wide, None, SIZE).boxes
    # 58 wide: 26 / 58 = 0.448, but never below 0.6: 0.6 * 57.6 = 34.56.
    assert [box[3] - box[1] for box in boxes.values()] == [35, 35]


def test_object_when_somebody_uses_it_stands_beside_them_where_the_next_cell_is_free() -> None:
    cup = Beside(name="the cup", user="Ana")
    ana, cup_box = (
        compose(keyframe({"Ana": 3}, cup), CAST, None, SIZE).boxes[key]
        for key in ("character:Ana", "object:the cup")
    )
    # 0.3 * 80 = 24 high and wide. Its middle: 70 + 9 + 12 - 6 = 85.
    assert cup_box == (73, 52, 97, 76) and ana == (61, 18, 80, 76)
    left = compose(keyframe({"Ana": 3, "Ben": 4}, cup), CAST, None, SIZE).boxes["object:the cup"]
    assert left[0] < ana[0], "the cell on the right is taken"
    free = compose(keyframe({}, Beside(name="the cup"), Beside(name="the lamp")), CAST, None, SIZE).boxes
    # Two that nobody uses are at a third and two thirds: 46 and 93.
    assert free["object:the cup"][0] == 46 - 12 and free["object:the lamp"][0] == 93 - 3


# The plain layout: schedules worked by hand, and any schedule at all.

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


# The storyboard of layouts: what it shows, and that texts of episodes stay texts.

"""What actions say of the frame, read off sentences written by hand."""

import pytest

from fabula.generation.memory.shots.staging import Coming, find_name, read_staging, user_of

PEOPLE = ("Ana", "Ben", "Cleo")


def test_order_when_a_text_names_some_puts_these_first() -> None:
    assert read_staging("Cleo waves at Ana.", PEOPLE).order == ("Cleo", "Ana", "Ben")


@pytest.mark.parametrize(
    ("action", "coming"),
    [
        ("Ben sits. Ana enters the room from the left.", [Coming("Ana", "in", "left")]),
        ("Ana walks into the frame from the right to join Ben.", [Coming("Ana", "in", "right")]),
        ("Ana and Ben enter the room.", [Coming("Ana", "in"), Coming("Ben", "in")]),
        ("Ben watches as Ana walks out of the frame to the right.", [Coming("Ana", "out", "right")]),
        ("Ana exits the frame. Ben immediately enters.", [Coming("Ana", "out"), Coming("Ben", "in")]),
        ("Ana leaves the cup on the table.", []),
        (
            "The camera pans left across the room to settle on Ben, awake in bed.",
            [Coming("Ben", "in", "left")],
        ),
        ("A hand enters the drawer.", []),
    ],
)
def test_coming_when_a_text_says_so_is_read_with_its_side(action: str, coming: list[Coming]) -> None:
    assert list(read_staging(action, PEOPLE).coming) == coming


@pytest.mark.parametrize(
    ("action", "sides"),
    [
        ("On the left, Ana stands by the door; Ben sits on the right.", {"Ana": "left", "Ben": "right"}),
        ("Cleo stands in the centre of the hall.", {"Cleo": "centre"}),
        ("Ana raises the glass in the right hand.", {}),
        ("Ana looks to the left.", {}),
        ("Ana holds her bag, staring off-screen to the right.", {}),
    ],
)
def test_sides_when_a_text_puts_somebody_there_are_read_and_looks_are_not(
    action: str, sides: dict[str, str]
) -> None:
    assert read_staging(action, PEOPLE).sides == sides


def test_camera_when_it_pans_has_a_direction_and_whom_it_follows() -> None:
    staging = read_staging("The camera pans slightly to the right, following Ana. Ben stays.", PEOPLE)
    assert (staging.pan, staging.followed) == ("right", frozenset({"Ana"}))
    assert read_staging("The camera pans smoothly from left to right along the table.", PEOPLE).pan == "right"
    assert read_staging("Ana pans for gold on the left.", PEOPLE).pan == "none"


def test_crossing_when_somebody_goes_from_side_to_side_has_both() -> None:
    staging = read_staging("Ana runs quickly from left to right across the frame.", PEOPLE)
    assert staging.crossing == {"Ana": ("left", "right")} and staging.sides == {}


def test_object_when_its_sentence_names_characters_stands_beside_the_last_before_it() -> None:
    action = "Ana gives Ben the red cup. Cleo waits. A ladder leans on the wall."
    assert user_of(action, "the red cup", PEOPLE) == "Ben"
    assert user_of("The red cup is passed to Ana.", "the red cup", PEOPLE) == "Ana"
    assert user_of(action, "the ladder", PEOPLE) is None and user_of(action, "the piano", PEOPLE) is None


def test_name_when_it_is_part_of_another_word_is_not_there() -> None:
    assert find_name("Anabel smiles.", "Ana") is None
    assert find_name("Then ANA smiles.", "Ana") == 5
    assert find_name("小明走进房间。", "小明") == 0
    assert find_name("anything", "") is None


def test_text_when_it_is_in_another_language_says_nothing() -> None:
    staging = read_staging("小明从左边走进房间。", ("小明",))
    assert (staging.order, staging.coming, staging.sides, staging.pan) == (("小明",), (), {}, "none")

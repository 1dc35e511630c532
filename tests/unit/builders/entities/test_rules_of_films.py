"""Colours, places and names by rules, and what holds of every script in the end."""

import pytest
from PIL import Image

from fabula.builders.entities.drafts import Entity, Repair, Script, ScriptShot
from fabula.builders.entities.guarantees import settle
from fabula.builders.entities.list_entities import places_of
from fabula.builders.entities.pictures import colour_word, distance, histogram, word_of


def plain(colour: tuple[int, int, int]) -> Image.Image:
    return Image.new("RGB", (64, 36), colour)


def test_distance_when_colours_are_equal_or_other_is_zero_or_one() -> None:
    red, blue = histogram([plain((200, 0, 0))]), histogram([plain((0, 0, 200))])
    assert distance(red, red) == 0
    assert distance(red, blue) == 1
    assert distance(red, histogram([plain((200, 0, 0)), plain((0, 0, 200))])) == 0.5
    assert distance(red, ()) == 1


@pytest.mark.parametrize(
    ("colour", "word"),
    [
        ((10, 10, 10), "black"), ((240, 240, 240), "white"), ((120, 120, 120), "grey"),
        ((210, 20, 20), "red"),
        ((250, 150, 20), "orange"), ((120, 70, 20), "brown"), ((240, 230, 40), "yellow"),
        ((30, 160, 60), "green"), ((40, 60, 200), "blue"), ((130, 40, 190), "purple"),
        ((240, 90, 180), "pink"),
    ],
)  # fmt: skip
def test_colour_when_named_is_a_plain_word(colour: tuple[int, int, int], word: str) -> None:
    assert word_of(*colour) == word
    assert colour_word(plain(colour)) == word


def bins(*filled: int) -> list[int]:
    return [1000 // len(filled) if place in filled else 0 for place in range(64)]


def test_places_when_colours_come_back_are_the_same() -> None:
    shots = [bins(1), bins(2), bins(1), [], bins(2, 3), bins(1)]
    assert places_of(shots, 0.6) == [1, 2, 1, 1, 2, 1]
    assert places_of(shots, 0.4) == [1, 2, 1, 1, 3, 1]
    assert places_of([], 0.5) == []


MIRA = Entity(label="Character 1", kind="character", name="Mira", description="A woman.", shots=(1, 2))
TOM = Entity(label="Character 2", kind="character", name="Tom", description="A man.", shots=(2,))
KEY = Entity(label="Object 1", kind="object", name="the brass key", shots=(2,), aliases=("the old key",))


def script(*actions: str) -> Script:
    shots = [
        ScriptShot(number=number, scene=1, cut=number == 1, action=action)
        for number, action in enumerate(actions, 1)
    ]
    return Script(overview="", shots=tuple(shots))


def done(repairs: tuple[Repair, ...]) -> list[tuple[str, int | None, str]]:
    return [(one.code, one.shot, one.done) for one in repairs]


def test_script_when_settled_mentions_every_slot_and_notes_the_rest() -> None:
    made = settle(script("Mira walks.", "Mira lifts an old key."), [MIRA, TOM, KEY])
    assert [one.name for one in made.entities] == ["Mira", "the brass key"]
    assert [one.label for one in made.entities] == ["Character 1", "Object 1"]
    assert made.script.shots[1].action == "Mira lifts the brass key."
    assert made.entities[1].description == "A thing of this story, called the brass key."
    assert done(made.script.repairs) == [
        ("other-name", 2, "rewritten"), ("unmentioned", 2, "dropped"), ("no-description", None, "added"),
        ("never-scheduled", None, "dropped"),
    ]  # fmt: skip
    assert made.script.repairs[1].found == "Tom is not named in the action"
    assert made.script.repairs[1].entity is None  # it is in the registry no more


def test_script_when_it_names_who_is_not_scheduled_says_so() -> None:
    made = settle(script("Mira waves at Tom.", "Tom goes, and Mira."), [MIRA, TOM])
    assert done(made.script.repairs) == [("unscheduled-mention", 1, "left")]
    assert made.script.repairs[0].entity == "Character 2"


def test_script_when_it_names_who_is_in_no_shot_says_so() -> None:
    made = settle(script("Mira waves at Tom.", "Mira goes."), [MIRA, TOM.model_copy(update={"shots": ()})])
    assert [one.name for one in made.entities] == ["Mira"]
    assert done(made.script.repairs) == [
        ("never-scheduled", None, "dropped"), ("unscheduled-mention", 1, "left"),
    ]  # fmt: skip
    assert (made.script.repairs[1].found, made.script.repairs[1].entity) == (
        "Tom is named and not scheduled",
        None,
    )


def test_script_when_a_sentence_begins_with_a_thing_says_that_its_name_is_written_otherwise() -> None:
    key = KEY.model_copy(update={"description": "A key.", "shots": (1,)})
    made = settle(
        script("The brass key falls.", "Mira walks."), [MIRA.model_copy(update={"shots": (2,)}), key]
    )
    assert made.script.shots[0].action == "The brass key falls."
    assert done(made.script.repairs) == [("other-name", 1, "left")]
    assert made.script.repairs[0].found == "the brass key is not named letter for letter"


def test_script_when_two_are_described_alike_says_so() -> None:
    twin = TOM.model_copy(update={"description": MIRA.description})
    made = settle(script("Mira walks.", "Mira waves at Tom."), [MIRA, twin])
    assert done(made.script.repairs) == [("same-description", None, "left")]
    assert made.script.repairs[0].found == "Tom is described as Mira is"


def test_script_when_a_shot_loses_all_its_slots_says_so() -> None:
    made = settle(script("Mira walks.", "Rain."), [MIRA])
    assert made.entities[0].shots == (1,)
    assert done(made.script.repairs) == [("unmentioned", 2, "dropped"), ("empty-shot", 2, "left")]

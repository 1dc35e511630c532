"""Replies of a model about films and episodes: what is taken of them, what is noted, what is sent back."""

from typing import Any

import pytest
from PIL import Image

from fabula.builders.entities.list_entities import Local, places_of, read_registry
from fabula.builders.entities.merge_entities import Merged, read_identities
from fabula.builders.entities.names import Entity, Person, Repair, Script, ScriptShot, settle
from fabula.builders.entities.pictures import colour_word, distance, histogram, word_of
from fabula.builders.entities.script_parts import around, read_actions, read_descriptions, read_script
from fabula.builders.entities.verify_script import read_settled
from fabula.engine.stage import BadReply

CHINESE = "米拉走过长长的石桥，风吹走了她的帽子，她跑到河边去找它，可是没有找到。"


def listed(**more: Any) -> dict[str, Any]:
    reply = {
        "shots": [{"shot": 1, "account": "p001 sits."}, {"shot": 2, "account": "p001 stands."}],
        "persons": [{"person": "p001", "looks": "A woman."}],
        "locations": [{"name": "The Hall", "looks": "Long.", "shots": [1, 2]}],
        "objects": [{"name": "the key", "looks": "Brass.", "shots": [2]}],
    }
    return {**reply, **more}


def codes(repairs: Any) -> list[tuple[str, int | None, str]]:
    return [(one.code, one.shot, one.done) for one in repairs]


def test_registry_when_sound_is_taken_as_it_is() -> None:
    made = read_registry(listed(), 3, [1, 2], ["p001"])
    assert [one.local_id for one in made.entities] == ["c03.location1", "c03.object1"]
    assert made.entities[0].shots == (1, 2)
    assert [one.text for one in made.accounts] == ["p001 sits.", "p001 stands."]
    assert made.repairs == ()


@pytest.mark.parametrize(
    ("wrong", "noted"),
    [
        ({"objects": [{"name": "the key", "looks": "", "shots": [2, 9]}]}, ("unknown-shot", None, "dropped")),
        ({"objects": [{"name": "the key", "looks": "", "shots": []}]}, ("no-shot", None, "dropped")),
        ({"objects": [{"name": " . ", "looks": "", "shots": [1]}]}, ("no-name", None, "dropped")),
        (
            {"objects": [{"name": name, "looks": "", "shots": [1]} for name in ("the key", "The Key")]},
            ("named-twice", None, "merged"),
        ),
        ({"persons": [{"person": "p009", "looks": "A man."}]}, ("unknown-person", None, "dropped")),
        ({"persons": [{"person": "p001", "looks": "A."}] * 2}, ("named-twice", None, "dropped")),
        ({"persons": [{"person": "p001", "looks": None}]}, ("unseen-person", None, "dropped")),
        ({"shots": [{"shot": 1, "account": "p001 sits."}]}, ("no-account", 2, "left")),
        (
            {"shots": [{"shot": n, "account": "p001 sits."} for n in (1, 2, 7)]},
            ("unknown-shot", None, "dropped"),
        ),
        (
            {"objects": [{"name": f"key {n}", "looks": "", "shots": [1]} for n in range(25)]},
            ("too-many", None, "dropped"),
        ),
    ],
)
def test_registry_when_a_part_cannot_be_is_taken_without_it_and_noted(wrong, noted):
    assert codes(read_registry(listed(**wrong), 1, [1, 2], ["p001"]).repairs) == [noted]


CAST = [
    Person(person_id="p001", tracklets=(), shots=(1, 2)),
    Person(person_id="p002", tracklets=(), shots=(2, 3)),
    Person(person_id="p003", tracklets=(), shots=(4,)),
]
LOCALS = [
    Local(local_id="c01.location1", kind="location", name="The Hall", shots=(1, 2)),
    Local(local_id="c02.location1", kind="location", name="The Hall", shots=(3, 4)),
    Local(local_id="c01.object1", kind="object", name="the key", shots=(2,)),
]


def entry(name: str, ids: list[str], key: str = "members") -> dict[str, Any]:
    return {key: ids, "name": name, "aliases": [], "looks": f"Looks of {name}."}


def merge(**more: Any) -> Merged:
    reply = {
        "characters": [entry(f"Name {one.person_id}", [one.person_id], "persons") for one in CAST],
        "locations": [entry("The Hall", ["c01.location1", "c02.location1"])],
        "objects": [entry("key", ["c01.object1"])],
    }
    return read_identities({**reply, **more}, CAST, LOCALS, "openai:tested", [1, 2, 3, 4])


def test_identities_when_sound_have_the_shots_of_their_members() -> None:
    made = merge()
    by_name = {one.name: one for one in made.entities}
    assert by_name["The Hall"].shots == (1, 2, 3, 4)
    assert by_name["the key"].shots == (2,)
    assert by_name["Name p002"].persons == ("p002",)
    assert made.members["c01.location1"] == ("c01.location1", "c02.location1")
    assert made.repairs == () and made.merges == ()


def test_people_when_seen_together_stay_apart_and_the_merge_is_refused() -> None:
    made = merge(characters=[entry("Mira", ["p001", "p002", "p003"], "persons")])
    people = [one for one in made.entities if one.kind == "character"]
    assert [(one.name, one.persons) for one in people] == [("Mira", ("p001", "p003")), ("", ("p002",))]
    assert [(one.one, one.other, one.refused) for one in made.merges] == [
        ("p001", "p002", "both are seen in shot 2"), ("p001", "p003", None),
    ]  # fmt: skip
    assert made.merges[1].by == "openai:tested"
    assert codes(made.repairs) == [("left-out", None, "added")]


def test_people_when_some_shots_are_not_of_the_episode_have_the_others_listed_or_left_out() -> None:
    reply = {"characters": [entry("Mira", ["p001"], "persons")], "locations": [], "objects": []}
    made = read_identities(reply, CAST, [], "openai:tested", [2, 3, 4])
    assert [(one.persons, one.shots) for one in made.entities] == [
        (("p001",), (2,)), (("p002",), (2, 3)), (("p003",), (4,)),
    ]  # fmt: skip
    assert [one.code for one in made.repairs] == ["left-out"] * 2


@pytest.mark.parametrize(
    ("wrong", "noted"),
    [
        ({"objects": []}, [("left-out", None, "added")]),
        ({"objects": [entry("key", ["c01.object1", "c09.object9"])]}, [("unknown-id", None, "dropped")]),
        ({"objects": [entry("key", ["c01.object1"])] * 2}, [("named-twice", None, "dropped")]),
        (
            {"locations": [entry("Hall", ["c01.location1"]), entry("hall", ["c02.location1"])]},
            [("named-twice", None, "merged")],
        ),
        (
            {"locations": [entry("The Hall", ["c01.location1", "c02.location1", "c01.object1"])]},
            [("unknown-id", None, "dropped")],
        ),
    ],
)
def test_identities_when_a_part_cannot_be_lose_nothing(wrong, noted):
    made = merge(**wrong)
    assert codes(made.repairs) == noted
    assert sorted(name for ids in made.members.values() for name in ids) == sorted(
        [*(one.person_id for one in CAST), *(one.local_id for one in LOCALS)]
    )
    assert {shot for one in made.entities for shot in one.shots} == {1, 2, 3, 4}


def test_texts_when_shots_are_missing_or_empty_are_sent_back() -> None:
    told = [{"shot": n, "action": "Mira walks.", "new_scene": False, "goes_on": True} for n in (1, 2)]
    assert read_script({"shots": told}, [1, 2]) == [(False, True, "Mira walks.")] * 2
    assert read_actions({"shots": told[::-1]}, [1, 2]) == ["Mira walks."] * 2
    for read in (read_script, read_actions):
        with pytest.raises(BadReply, match="each once"):
            read({"shots": told}, [1, 2, 3])
        with pytest.raises(BadReply, match="says nothing"):
            read({"shots": [told[0], {**told[1], "action": " ``. "}]}, [1, 2])
        with pytest.raises(BadReply, match="121 words"):
            read({"shots": [told[0], {**told[1], "action": "on " * 121}]}, [1, 2])
        with pytest.raises(BadReply, match="not in English"):
            read({"shots": [{**one, "action": CHINESE} for one in told]}, [1, 2])


HALL = Entity(label="Location 1", kind="location", name="The Hall", shots=(1,))
KEY = Entity(label="Object 1", kind="object", name="the key", shots=(1,))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["A hall.", "A hall"], "same description"),
        (["A hall as the camera sees it.", "A key."], "leave camera and footage out"),
        (["A hall.", ""], "says nothing"),
        (["A hall.", "A close-up of a key."], "leave camera and footage out"),
        (["A hall.", "old " * 61], "61 words"),
        (["A hall."], "each once"),
    ],
)
def test_descriptions_when_wrong_are_sent_back(texts: list[str], said: str) -> None:
    reply = {"entities": [{"number": n, "description": text} for n, text in enumerate(texts, 1)]}
    with pytest.raises(BadReply, match=said):
        read_descriptions(reply, [HALL, KEY])


def test_settled_when_it_names_others_takes_only_what_was_in_question() -> None:
    reply = {
        "shots": [
            {"shot": 4, "action": "Mira goes.", "dropped": ["Key", "the moon"], "scheduled": ["The Hall"]}
        ]
    }
    made, repairs = read_settled(reply, {4: ([KEY], [HALL])})
    assert (made[4].dropped, made[4].scheduled) == (("Object 1",), ("Location 1",))
    assert codes(repairs) == [("unknown-entity", 4, "dropped")]


# Colours, places and names by rules, and what holds of every script in the end.


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
FILM_KEY = Entity(label="Object 1", kind="object", name="the brass key", shots=(2,), aliases=("the old key",))


def script(*actions: str) -> Script:
    shots = [
        ScriptShot(number=number, scene=1, cut=number == 1, action=action)
        for number, action in enumerate(actions, 1)
    ]
    return Script(overview="", shots=tuple(shots))


def done(repairs: tuple[Repair, ...]) -> list[tuple[str, int | None, str]]:
    return [(one.code, one.shot, one.done) for one in repairs]


def test_script_when_settled_mentions_every_slot_and_notes_the_rest() -> None:
    made = settle(script("Mira walks.", "Mira lifts an old key."), [MIRA, TOM, FILM_KEY])
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
    key = FILM_KEY.model_copy(update={"description": "A key.", "shots": (1,)})
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


@pytest.mark.parametrize(
    ("part", "context", "parts"),
    [
        (range(2, 4), 1, ([1], [2, 3], [4])),
        (range(2), 3, ([], [0, 1], [2, 3, 4])),
        (range(4, 6), 9, ([0, 1, 2, 3], [4, 5], [])),
        (range(2, 4), 0, ([], [2, 3], [])),
    ],
)
def test_part_when_its_neighbours_are_told_has_so_many_on_each_side(part, context, parts):
    assert around(list(range(6)), part, context) == parts

"""Replies of a model about films and episodes: what is taken of them, what is noted, what is sent back.

What is made of a sound reply is pinned whole; of others, what differs from it.
"""

from typing import Any

import pytest
from PIL import Image

from fabula.builders.entities.list_entities import Local, places_of, read_registry
from fabula.builders.entities.merge_entities import Merged, read_identities
from fabula.builders.entities.names import Entity, Person, Script, ScriptShot, settle
from fabula.builders.entities.pictures import colour_word, distance, histogram, word_of
from fabula.builders.entities.script_parts import around, read_actions, read_descriptions, read_script
from fabula.builders.entities.verify_script import Settled, read_settled
from fabula.engine.stage import BadReply
from fabula.schemas.canonical import canonical_text

CHINESE = "米拉走过长长的石桥，风吹走了她的帽子，她跑到河边去找它，可是没有找到。"


def listed(**more: Any) -> dict[str, Any]:
    reply = {
        "shots": [{"shot": 1, "account": "p001 sits."}, {"shot": 2, "account": "p001 stands."}],
        "persons": [{"person": "p001", "looks": "A woman."}],
        "locations": [{"name": "The Hall", "looks": "Long.", "shots": [1, 2]}],
        "objects": [{"name": "the key", "looks": "Brass.", "shots": [2]}],
    }
    return {**reply, **more}


def rows(*parts: Any) -> str:
    """Return records, a line each."""
    return "\n".join(canonical_text(one.as_json()) for part in parts for one in part)


UNSEEN = {"name": "the key", "looks": ""}
REGISTRIES: dict[str, dict[str, Any]] = {
    "unknown shot": {"objects": [{**UNSEEN, "shots": [2, 9]}]},
    "no shot": {"objects": [{**UNSEEN, "shots": []}]},
    "no name": {"objects": [{"name": " . ", "looks": "", "shots": [1]}]},
    "named twice": {"objects": [{**UNSEEN, "shots": [1]}, {**UNSEEN, "name": "The Key", "shots": [1]}]},
    "unknown person": {"persons": [{"person": "p009", "looks": "A man."}]},
    "person twice": {"persons": [{"person": "p001", "looks": "A."}] * 2},
    "unseen person": {"persons": [{"person": "p001", "looks": None}]},
    "no account": {"shots": [{"shot": 1, "account": "p001 sits."}]},
    "account of another": {"shots": [{"shot": n, "account": "p001 sits."} for n in (1, 2, 7)]},
}  # fmt: skip


def registry(**wrong: Any) -> str:
    made = read_registry(listed(**wrong), 3, [1, 2], ["p001"])
    return rows(made.persons, made.entities, made.accounts, made.repairs)


def test_registry_when_sound_is_taken_as_it_is(snapshot) -> None:
    assert registry() == snapshot


@pytest.mark.parametrize("case", REGISTRIES)
def test_registry_when_a_part_cannot_be_is_taken_without_it_and_noted(case, difference, snapshot) -> None:
    assert difference(registry(), registry(**REGISTRIES[case])) == snapshot


def test_registry_when_there_are_more_things_than_may_be_drops_the_last() -> None:
    things = [{"name": f"key {n}", "looks": "", "shots": [1]} for n in range(25)]
    made = read_registry(listed(objects=things), 3, [1, 2], ["p001"])
    assert [one.name for one in made.entities] == ["The Hall", *(f"key {n}" for n in range(24))]
    assert [(one.code, one.done) for one in made.repairs] == [("too-many", "dropped")]


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


HALLS = ["c01.location1", "c02.location1"]
IDENTITIES: dict[str, dict[str, Any]] = {
    "nothing": {"objects": []}, "unknown id": {"objects": [entry("key", ["c01.object1", "c09.object9"])]},
    "twice": {"objects": [entry("key", ["c01.object1"])] * 2},
    "one name": {"locations": [entry("Hall", HALLS[:1]), entry("hall", HALLS[1:])]},
    "another kind": {"locations": [entry("The Hall", [*HALLS, "c01.object1"])]},
    # two of them are seen together, so that they stay apart
    "one person": {"characters": [entry("Mira", ["p001", "p002", "p003"], "persons")]},
}  # fmt: skip


def identities(made: Merged) -> str:
    return rows(made.entities, made.merges, made.repairs) + f"\n{canonical_text(made.members)}"


def test_identities_when_sound_have_the_shots_of_their_members(snapshot) -> None:
    assert identities(merge()) == snapshot


@pytest.mark.parametrize("case", IDENTITIES)
def test_identities_when_a_part_cannot_be_lose_nothing(case, difference, snapshot) -> None:
    made = merge(**IDENTITIES[case])
    assert difference(identities(merge()), identities(made)) == snapshot
    assert sorted(name for ids in made.members.values() for name in ids) == sorted(
        [*(one.person_id for one in CAST), *(one.local_id for one in LOCALS)]
    )
    assert {shot for one in made.entities for shot in one.shots} == {1, 2, 3, 4}


def test_people_when_some_shots_are_not_of_the_episode_have_the_others_listed_or_left_out(snapshot):
    reply = {"characters": [entry("Mira", ["p001"], "persons")], "locations": [], "objects": []}
    made = read_identities(reply, CAST, [], "openai:tested", [2, 3, 4])
    assert rows(made.entities, made.repairs) == snapshot


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


def test_settled_when_it_names_others_takes_only_what_was_in_question(snapshot) -> None:
    shot = {"shot": 4, "action": "Mira goes.", "dropped": ["Key", "the moon"], "scheduled": ["The Hall"]}
    made, repairs = read_settled({"shots": [shot]}, {4: ([KEY], [HALL])})
    assert made[4] == Settled("Mira goes.", ("Object 1",), ("Location 1",))
    assert rows(repairs) == snapshot


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


def of(entity: Entity, **changes: Any) -> Entity:
    return entity.model_copy(update=changes)


SCRIPTS: dict[str, tuple[Script, list[Entity]]] = {
    "every slot": (script("Mira walks.", "Mira lifts an old key."), [MIRA, TOM, FILM_KEY]),
    "names who is not scheduled": (script("Mira waves at Tom.", "Tom goes, and Mira."), [MIRA, TOM]),
    "names who is in no shot": (script("Mira waves at Tom.", "Mira goes."), [MIRA, of(TOM, shots=())]),
    "begins with a thing": (
        script("The brass key falls.", "Mira walks."),
        [of(MIRA, shots=(2,)), of(FILM_KEY, description="A key.", shots=(1,))],
    ),
    "described alike": (
        script("Mira walks.", "Mira waves at Tom."), [MIRA, of(TOM, description=MIRA.description)],
    ),
    "loses all slots": (script("Mira walks.", "Rain."), [MIRA]),
}  # fmt: skip


@pytest.mark.parametrize("case", SCRIPTS)
def test_script_when_settled_mentions_every_slot_and_notes_the_rest(case, snapshot) -> None:
    made = settle(*SCRIPTS[case])
    assert rows(made.entities, made.script.shots, made.script.repairs) == snapshot


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

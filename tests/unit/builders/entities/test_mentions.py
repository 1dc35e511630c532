"""Whether a text mentions an entity, and names letter for letter."""

import pytest

from fabula.builders.entities.drafts import Entity
from fabula.builders.entities.names import (
    mentions,
    spelled,
    tidy_name,
    unmentioned,
    with_unique_names,
    without_article,
)

LEO = Entity(label="Character 1", kind="character", name="Leo", aliases=("the old sailor",))
MUG = Entity(label="Object 1", kind="object", name="the red mug")
NOTE = Entity(label="Object 2", kind="object", name="the message from Leo")
CAFE = Entity(label="Location 1", kind="location", name="The Café")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Leo waits.", {"Character 1": "exact"}),
        ("LEO waits.", {"Character 1": "folded"}),
        ("The old sailor waits.", {"Character 1": "alias"}),
        ("Leonard waits.", {}),
        ("Leonard waits for LEO.", {"Character 1": "folded"}),
        ("Leo's hand takes the red mug.", {"Character 1": "exact", "Object 1": "exact"}),
        ("The Red Mug stands there.", {"Object 1": "folded"}),
        ("A red mug stands there.", {"Object 1": "alias"}),
        ("The reddish mug stands there.", {}),
        ("Somebody reads the message from Leo.", {"Object 2": "exact"}),
        ("Leo reads the message from Leo.", {"Object 2": "exact", "Character 1": "exact"}),
        ("In The Café.", {"Location 1": "exact"}),
        ("In the cafe\u0301.", {"Location 1": "folded"}),
        ("", {}),
    ],
)
def test_mentions_when_looked_for_are_found_by_name_case_and_alias(text: str, found: dict[str, str]) -> None:
    assert mentions(text, [LEO, MUG, NOTE, CAFE]) == found


def test_unmentioned_when_asked_for_keeps_the_order_of_the_schedule() -> None:
    registry = [LEO, MUG, NOTE, CAFE]
    assert unmentioned("Leo is in The Café.", [MUG, CAFE, NOTE], registry) == [MUG, NOTE]


def test_article_when_it_is_a_part_of_a_word_stays() -> None:
    assert [without_article(name) for name in ("the mug", "An Owl", "Theo", "A")] == [
        "mug", "Owl", "Theo", "A",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "entity", "made"),
    [
        ("She takes a red mug.", MUG, "She takes the red mug."),
        ("He drops The Red Mug here.", MUG, "He drops the red mug here."),
        ("He lifts his red mug and a red mug.", MUG, "He lifts the red mug and a red mug."),
        ("Red mug in hand, he goes.", MUG, "The red mug in hand, he goes."),
        ("The red mug falls.", MUG, "The red mug falls."),
        ("There the old sailor sits.", LEO, "There Leo sits."),
        ("Nobody is there.", LEO, "Nobody is there."),
        ("Leonard waits for LEO.", LEO, "Leonard waits for Leo."),
    ],
)
def test_name_when_another_one_stands_there_is_spelled_as_registered(
    text: str, entity: Entity, made: str
) -> None:
    assert spelled(text, entity) == made


@pytest.mark.parametrize(
    ("kind", "name", "made"),
    [
        ("object", "Red Mug", "the Red Mug"),
        ("object", "The red mug", "the red mug"),
        ("location", "harbour office.", "Harbour office"),
        ("character", "`mira`", "Mira"),
        ("character", " : ", ""),
        ("object", "mug: green", "the mug green"),
        ("character", "Character 3", ""),
        ("object", "the object 12", ""),
        ("location", "Hall of location_2", ""),
        ("character", "Gen_Leo", ""),
        ("object", "object lesson", "the object lesson"),
    ],
)
def test_name_when_tidied_has_the_form_of_its_kind(kind: str, name: str, made: str) -> None:
    assert tidy_name(kind, name) == made  # type: ignore[arg-type]


def test_names_when_taken_or_within_others_are_given_anew_and_noted() -> None:
    given = [
        Entity(label="Character 1", kind="character", name="Leo", aliases=("Captain", "Leo", "xy")),
        Entity(label="Character 2", kind="character", name="leo", aliases=("captain",)),
        Entity(label="Object 1", kind="object", name="the coat of Leo"),
        Entity(label="Object 2", kind="object", name=""),
        Entity(label="Object 3", kind="object", name="the coat"),
    ]
    made, repairs = with_unique_names(given, lambda one: f"Spare {one.label[-1]}")
    names = [one.name for one in made]
    assert names[0] == "Leo"
    assert len({name.casefold() for name in names}) == 5
    assert not any(a != b and a.casefold() in b.casefold() for a in names for b in names)
    # Both captains could be meant: neither alias stays. Two letters are no name.
    assert [one.aliases for one in made[:2]] == [(), ()]
    assert [repair.code for repair in repairs] == ["name-taken"] * 3
    assert all(repair.done == "rewritten" for repair in repairs)

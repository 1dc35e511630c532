"""Words: head nouns, sorts of things, colours and styles."""

import copy
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.schemas.entities import EntityEpisode
from fabula.studies.memory.keying import (
    KEYS,
    CheckLimits,
    CutOut,
    Subject,
    check_cut,
    composition,
    cut_by_colour,
    cut_by_mask,
    passes,
    rgb_of,
)
from fabula.studies.memory.scripts import MemoryScript, ScriptEntity, ScriptShot, script_of
from fabula.studies.memory.words import (
    classify_by_rules,
    colours_worn,
    head_phrase,
    singulars,
    sort_of,
    style_in,
)
from fabula.testing.drawn_portraits import FAULTS, Fault, draw_portrait
from fabula.testing.written_episodes import written_episode


@pytest.mark.parametrize(
    ("name", "sort"),
    [
        ("the striped t-shirt", "wearable"),
        ("a pair of muddy boots", "wearable"),
        ("the blue and white fedora", "wearable"),
        ("the dark tattoo on his arm", "mark"),
        ("the wooden benches", "fixture"),
        ("the 'OPEN ALL NIGHT' neon sign", "fixture"),
        ("the old sheepdog's puppies", "creature"),
        ("the horse-drawn carriage", "vehicle"),
        ("the glass of milk", "prop"),
        ("the bouquet of flowers", "prop"),
    ],
)
def test_sort_when_the_head_noun_is_listed_goes_by_it(name: str, sort: str) -> None:
    found = sort_of(name)
    assert found is not None and found[0] == sort


def test_head_phrase_when_there_is_more_than_the_head_ends_with_it() -> None:
    assert head_phrase("the mannequin in a robe") == ("the", "mannequin")
    assert head_phrase("stacks of old books") == ("old", "books")
    assert head_phrase("the bag of white paste") == ("the", "bag")


def test_singulars_when_an_ending_may_be_a_plural_gives_every_reading() -> None:
    assert {"puppy", "puppie"} <= set(singulars("puppies"))
    assert "knife" in set(singulars("knives"))
    assert list(singulars("s")) == ["s"]


def test_colours_worn_when_words_or_their_parts_are_listed() -> None:
    assert colours_worn("Man in an olive coat with blue-grey eyes.") == {"green", "blue"}
    assert colours_worn("Woman in red.") == frozenset()
    assert colours_worn("Greenland's evergreens") == frozenset()


def test_style_when_the_text_names_one_is_that_and_else_none() -> None:
    style = style_in("An anime about a thief.")
    assert style is not None and style.startswith("anime")
    assert style_in("A thief animates a crowd in Rome.") is None


# Objects by rules: what stands alone, and whose picture shows the rest.


def entity(kind: str, name: str, shots: tuple[int, ...], description: str = "") -> ScriptEntity:
    return ScriptEntity.model_validate(
        {
            "type": kind, "name": name, "label": None, "shots": shots, "description": description or name,
            "described_by": "registry",
        }
    )  # fmt: skip


def script(*entities: ScriptEntity, actions: tuple[str, ...] = ("", "", "")) -> MemoryScript:
    shots = tuple(ScriptShot(key=f"1:{number}", action=text) for number, text in enumerate(actions, 1))
    return MemoryScript(episode_id="e", overview="", shots=shots, entities=entities, unscheduled=())


ANA = entity("character", "Ana", (0, 1, 2), "Woman with a long grey scarf.")
BEN = entity("character", "Ben", (0, 1), "Tall boy.")
HALL = entity("location", "The Hall", (0, 1))
YARD = entity("location", "The Yard", (2,))


def test_creature_vehicle_and_prop_when_classified_stand_alone() -> None:
    for name in ("the brown horse", "the police car", "the brass lantern", "the quux"):
        thing = entity("object", name, (0,))
        assert classify_by_rules(thing, script(ANA, HALL, thing)).owner is None


def test_clothes_when_a_description_has_them_are_its_characters() -> None:
    # Ben shares both shots with it as Ana does; only Ana's description has a scarf.
    scarf = entity("object", "the grey scarf", (0, 1), "Long woollen scarf.")
    owner = classify_by_rules(scarf, script(BEN, ANA, HALL, scarf)).owner
    assert owner is not None and (owner.type, owner.name) == ("character", "Ana")


def test_clothes_when_their_name_has_a_character_are_theirs() -> None:
    coat = entity("object", "Ben's coat", (0,))
    owner = classify_by_rules(coat, script(ANA, BEN, coat)).owner
    assert owner is not None and owner.name == "Ben"


def test_clothes_when_nothing_else_tells_belong_to_whom_the_action_names_before_them() -> None:
    hat = entity("object", "the felt hat", (0, 1))
    actions = ("Ana greets Ben, who lifts the felt hat.", "Ana waits. Ben drops the felt hat.", "")
    ana = entity("character", "Ana", (0, 1), "Woman.")
    owner = classify_by_rules(hat, script(ana, BEN, hat, actions=actions)).owner
    assert owner is not None and owner.name == "Ben"


def test_fixture_when_it_shares_shots_with_places_belongs_to_the_one_with_most() -> None:
    door = entity("object", "the oak door", (0, 1, 2))
    owner = classify_by_rules(door, script(ANA, YARD, HALL, door)).owner
    assert owner is not None and (owner.type, owner.name) == ("location", "The Hall")


def test_part_when_nobody_shares_a_shot_with_it_stands_alone_and_says_why() -> None:
    door = entity("object", "the oak door", (2,))
    row = classify_by_rules(door, script(ANA, HALL, door))
    assert row.owner is None and "no location shares a shot" in row.reason and row.by == "rules@1"


# Scripts: which entities an episode has, and where their descriptions are from.


def read(document: dict[str, Any]) -> MemoryScript:
    return script_of("ep_a", EntityEpisode.model_validate(document))


def test_script_when_read_has_the_scheduled_entities_by_type_and_appearance() -> None:
    script = read(written_episode())
    assert [entity.key for entity in script.entities] == [
        "character:Ana", "character:Ben", "location:The Kitchen", "location:The Garden",
        "object:the red cup", "object:the old ladder",
    ]  # fmt: skip
    ana = script.entities[0]
    assert (ana.label, ana.shots, ana.described_by) == ("Character 1", (0, 1, 3, 4), "header")
    assert ana.description.startswith("Woman of forty")
    assert [script.shots[place].key for place in ana.shots] == ["1:1", "1:2", "2:2", "2:3"]


def test_description_when_no_header_introduces_is_the_registrys_and_the_header_goes_first() -> None:
    document = copy.deepcopy(written_episode())
    first = document["scenes"][0]["video_prompts"][0]
    document["scenes"][0]["video_prompts"][0] = first.replace("Woman of forty", "Woman of fifty")
    second = document["scenes"][0]["video_prompts"][1]
    document["scenes"][0]["video_prompts"][1] = second.partition("\n\n")[2]  # Ben's line is gone
    script = read(document)
    by_name = {entity.name: entity for entity in script.entities}
    assert by_name["Ana"].description.startswith("Woman of fifty") and by_name["Ana"].described_by == "header"
    assert by_name["Ben"].described_by == "registry" and by_name["Ben"].description.startswith("Tall boy")


def test_entity_when_no_shot_schedules_it_is_told_and_gets_no_reference() -> None:
    document = copy.deepcopy(written_episode())
    document["entity_descriptions"]["Object 9"] = {
        "name": "the spare key", "label": "Object 9", "description": "Key.",
    }  # fmt: skip
    script = read(document)
    assert script.unscheduled == ("object:the spare key",)
    assert "the spare key" not in {entity.name for entity in script.entities}


# Checks by rules: each planted fault is found by its check and by no other.

GREEN = rgb_of(KEYS["green"])
CHECKED_ANA = Subject("character", "Ana")


def cut_of(mask: np.ndarray) -> CutOut:  # type: ignore[type-arg]
    return cut_by_mask(Image.new("RGB", mask.shape[::-1], (90, 60, 50)), mask, "test")


def failed(cut: CutOut, subject: Subject = CHECKED_ANA) -> list[str]:
    return [check.code for check in check_cut(cut, subject, CheckLimits()) if check.passed is False]


@pytest.mark.parametrize("key", KEYS)
def test_checks_when_a_portrait_is_sound_all_pass(key: str) -> None:
    ground = rgb_of(KEYS[key])  # type: ignore[index]
    checks = check_cut(cut_by_colour(draw_portrait(ground), ground), CHECKED_ANA, CheckLimits())
    assert [check.code for check in checks] == ["ground", "area", "holes", "pieces", "border", "key_left"]
    assert passes(checks) and all(check.by == "rules" for check in checks)


@pytest.mark.parametrize("fault", FAULTS)
def test_checks_when_a_fault_is_planted_find_it(fault: Fault) -> None:
    assert failed(cut_by_colour(draw_portrait(GREEN, fault), GREEN)) == [FAULTS[fault]]


def test_checks_when_clothes_of_one_ground_stand_before_another_pass() -> None:
    magenta = rgb_of(KEYS["magenta"])
    image = draw_portrait(magenta)
    image.paste(GREEN, (40, 42, 80, 102))
    assert failed(cut_by_colour(image, magenta)) == []
    assert failed(cut_by_colour(draw_portrait(GREEN, "key-coloured clothes"), GREEN)) == ["pieces"]


def test_pieces_when_an_object_hovers_or_is_two_tells_them_apart() -> None:
    above = np.zeros((100, 100), dtype=bool)
    above[20:40, 40:60] = above[50:70, 40:60] = True
    beside = above.T.copy()
    assert failed(cut_of(above), Subject("object", "the lamp")) == []
    assert failed(cut_of(beside), Subject("object", "the lamp")) == ["pieces"]
    assert failed(cut_of(above), CHECKED_ANA) == ["pieces"]
    many = check_cut(cut_of(beside), Subject("object", "the metal keys"), CheckLimits())
    assert next(check for check in many if check.code == "pieces").passed is None and passes(many)


def test_composition_when_a_figure_is_right_is_one_and_falls_with_each_part() -> None:
    # 90 of 100 high, in the middle, 30 wide: height over width is 3, which is usual.
    good = np.zeros((100, 100), dtype=bool)
    good[5:95, 35:65] = True
    assert composition(cut_of(good), "character") == pytest.approx(1.0)
    # Half as high: size 0.5; 45 over 30 is 1.5 of the least 1.6, 0.9375; the middle is kept: 1.
    small = np.zeros((100, 100), dtype=bool)
    small[27:72, 35:65] = True
    assert composition(cut_of(small), "character") == pytest.approx((0.5 + 0.99 + 0.9375) / 3)
    # Moved to the left by 20 of 100: place 1 - 2 * 0.2.
    moved = np.roll(good, -20, axis=1)
    assert composition(cut_of(moved), "character") == pytest.approx((1 + 0.6 + 1) / 3)
    assert composition(cut_of(np.zeros((9, 9), dtype=bool)), "character") == 0.0

"""Words: head nouns, sorts of things, colours and styles."""

import asyncio
import copy
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from PIL import Image

from fabula.engine.stage import Answer, Ask, Item, Made, NoAnswer, Tools
from fabula.models.chat import Image as ChatImage
from fabula.models.generators.request import PictureRequest
from fabula.schemas.entities import EntityEpisode
from fabula.studies.memory.candidates import QUESTIONS, DrawSettings, draw_references
from fabula.studies.memory.pictures import (
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
from fabula.studies.memory.references import Reference
from fabula.studies.memory.scripts import (
    MemoryScript,
    ScriptEntity,
    ScriptShot,
    classify_by_rules,
    colours_worn,
    head_phrase,
    script_of,
    singulars,
    sort_of,
    style_in,
)
from fabula.studies.pictures import LABEL
from fabula.testing.drawn_portraits import FAULTS, Fault, draw_portrait, reply_of
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


# -- Drawing references: planted bad portraits are rejected, retried on the stated grounds, and counted

T = TypeVar("T")
Plan = Callable[[str, int], Fault | str | None]
"""Ground and number of a candidate -> the fault that it has, or ``refused``; None for a sound one."""
VIEWER = "openai:viewer"
RIGHT = {name: True for name in QUESTIONS}


@dataclass
class Desk:
    """An asker that draws what a plan says, chooses the last candidate, and finds what it is told to find."""

    plan: Plan = lambda _key, _number: None
    verdicts: list[dict[str, Any] | str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)

    async def ask(self, ask: Ask[T]) -> Answer[T]:
        self.requests.append(ask.request)
        if ask.prompt == LABEL:
            return Answer(ask.read(self._picture(PictureRequest.of(ask.request))))
        pictures = [part for part in ask.request.messages[-1].parts if isinstance(part, ChatImage)]
        assert len(pictures) == 1 and pictures[0].media_type == "image/png"
        text = str(ask.request.messages[-1].parts[-1])
        if ask.prompt.startswith("memory/choose_candidate@"):
            numbers = [int(number) for number in re.findall(r"chosen: ([\d, ]+)", text)[0].split(",")]
            self.asked.append(("choice", ",".join(map(str, numbers))))
            return Answer(ask.read({"reason": "It is whole.", "number": numbers[-1]}))
        assert ask.prompt.startswith("memory/verify_picture@")
        self.asked.append(("verification", ""))
        verdict = self.verdicts.pop(0) if self.verdicts else {}
        if isinstance(verdict, str):
            raise NoAnswer(verdict, "no answer")
        return Answer(ask.read({"seen": "A figure.", "wrong": "", **RIGHT, **verdict}))

    def _picture(self, request: PictureRequest) -> str:
        key = next(key for key, code in KEYS.items() if code in request.prompt)
        number = sum(kind == "picture" and ground == key for kind, ground in self.asked) + 1
        self.asked.append(("picture", key))
        fault = self.plan(key, number)
        if fault == "refused":
            raise NoAnswer("refused", "the generator declined")
        if fault is not None and fault not in FAULTS:
            raise NoAnswer(fault, "it is not there")
        return reply_of(draw_portrait(rgb_of(KEYS[key]), fault))  # type: ignore[index,arg-type]

    @property
    def counts(self) -> Counter[str]:
        return Counter(kind for kind, _ in self.asked)

    @property
    def grounds(self) -> list[str]:
        return list(dict.fromkeys(ground for kind, ground in self.asked if kind == "picture"))


def reference(description: str = "Woman in a red coat.", **update: Any) -> Reference:
    plain = {
        "episode_id": "e", "type": "character", "name": "Ana", "label": "Character 1", "first_shot": "1:1",
        "description": description, "described_by": "header", "style": "photograph", "made": "generated",
        "needs": "portrait",
    }  # fmt: skip
    return Reference.model_validate({**plain, **update})


def drawn(desk: Desk, about: Reference | None = None, store: Path | None = None, **settings: Any) -> Any:
    chosen = {"model": "image:openai:painter", "candidates": 3, **settings}
    tools = Tools(DrawSettings.model_validate(chosen), "2026-01-01T00:00:00Z", asker=desk, store=store)
    fields = {"reference": (about or reference()).as_json(), "prompt": {"text": "A portrait.", "by": "rules"}}
    outcome = asyncio.run(draw_references(Item("e/character:Ana", fields), tools))
    assert isinstance(outcome, Made)
    return outcome.fields["drawn"]


def test_portrait_when_all_candidates_are_sound_passes_at_once_with_one_question_each() -> None:
    desk = Desk()
    made = drawn(desk, viewer=VIEWER)
    assert desk.counts == {"picture": 3, "choice": 1, "verification": 1}
    assert made["calls"] == {"picture": 3, "choice": 1, "verification": 1}
    assert (made["status"], made["taken"]["round"], made["taken"]["candidate"]) == ("verified", 1, 3)
    assert made["verified_by"].startswith(VIEWER) and made["taken"]["key_colour"] == KEYS["green"]
    # The head begins at 16, legs end at 145; the coat goes from 40 to 79.
    assert made["taken"]["bounds"] == [40, 16, 80, 146]


@pytest.mark.parametrize("fault", FAULTS)
def test_portrait_when_a_fault_is_planted_in_all_of_green_is_tried_on_magenta(fault: Fault) -> None:
    desk = Desk(lambda key, _: fault if key == "green" else None)
    made = drawn(desk, viewer=VIEWER)
    # Rules reject all three on green, and nobody is asked about them: 3 + 3 pictures, a choice, a check.
    assert desk.counts == {"picture": 6, "choice": 1, "verification": 1}
    assert desk.grounds == ["green", "magenta"] and made["status"] == "verified"
    first, second = made["tries"]
    assert not first["passed"] and second["passed"]
    assert FAULTS[fault] in [check["code"] for check in first["checks"] if check["passed"] is False]


def test_candidates_when_some_are_bad_only_the_sound_ones_are_shown() -> None:
    desk = Desk(lambda _, number: "hole" if number == 2 else None)
    made = drawn(desk, viewer=VIEWER)
    assert ("choice", "1,3") in desk.asked and made["taken"]["candidate"] == 3
    lone = Desk(lambda _, number: None if number == 2 else "hole")
    assert drawn(lone, viewer=VIEWER)["taken"]["candidate"] == 2
    assert lone.counts == {"picture": 3, "verification": 1}, "one alone is chosen without asking"


def test_portrait_when_the_viewer_rejects_is_tried_on_the_next_ground_each_time() -> None:
    wrong = [{"complete": False, "wrong": "No feet."}, {"traits_right": False, "wrong": "The coat is blue."}]
    desk = Desk(verdicts=list(wrong))
    made = drawn(desk, viewer=VIEWER)
    assert desk.grounds == ["green", "magenta", "blue"]
    assert desk.counts == {"picture": 9, "choice": 3, "verification": 3}
    assert made["status"] == "verified" and made["taken"]["round"] == 3
    codes = [[check["code"] for check in row["checks"] if check["passed"] is False] for row in made["tries"]]
    assert codes == [["missing_parts"], ["wrong_traits"], []]


def test_portrait_when_nothing_ever_passes_is_kept_marked_and_told() -> None:
    desk = Desk(lambda key, _: "cropped head" if key == "green" else None, [{"opaque": False}] * 2)
    made = drawn(desk, viewer=VIEWER)
    assert desk.counts == {"picture": 9, "choice": 2, "verification": 2}
    assert made["status"] == "unverified" and made["verified_by"] is None
    assert made["taken"]["file"]
    assert made["reason"] == "no try passed on green, magenta, blue; the best: transparent: A figure."
    assert made["taken"]["round"] == 2, "what rules reject comes last, though nobody looked closer at it"


def test_pictures_when_refused_are_outcomes_and_the_next_ground_is_tried() -> None:
    desk = Desk(lambda key, _: "refused" if key == "green" else None)
    made = drawn(desk)
    assert [row["outcome"] for row in made["tries"][0]["candidates"]] == ["refused"] * 3
    assert made["status"] == "verified" and made["taken"]["round"] == 2
    none = drawn(Desk(lambda _key, _number: "refused"))
    assert none["status"] == "failed" and none["taken"] is None and "declined" in none["reason"]
    assert none["calls"]["picture"] == 9


def test_item_when_a_model_is_out_of_reach_fails_and_is_no_verdict() -> None:
    with pytest.raises(NoAnswer, match="unavailable"):
        drawn(Desk(lambda _key, _number: "unavailable"))
    with pytest.raises(NoAnswer, match="unavailable"):
        drawn(Desk(verdicts=["unavailable"]), viewer=VIEWER)


def test_portrait_when_the_viewer_says_nothing_of_use_is_not_verified_and_not_paid_for_again() -> None:
    desk = Desk(verdicts=["malformed"])
    made = drawn(desk, viewer=VIEWER)
    assert desk.counts == {"picture": 3, "choice": 1, "verification": 1}
    assert made["status"] == "unverified" and "no answer of use" in made["reason"]


def test_candidates_when_asked_for_have_seeds_of_their_own_and_the_ground_in_the_prompt() -> None:
    desk = Desk(lambda _key, _number: "hole")
    drawn(desk, seed=100)
    asked = [PictureRequest.of(request) for request in desk.requests]
    # The run's seed is 42 and 100 is added: tries of three take 142 to 144, 145 to 147, 148 to 150.
    assert [request.seed for request in asked] == list(range(142, 151))
    assert all(request.prompt.startswith("A portrait.\n") and request.scene is None for request in asked)
    assert {(request.width, request.height) for request in asked} == {(768, 1024)}
    assert "#ff00b8" in asked[3].prompt and "magenta" in asked[3].prompt

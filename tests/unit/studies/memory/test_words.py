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
from fabula.studies.memory import pictures as memory
from fabula.studies.memory import scripts
from fabula.studies.memory.candidates import QUESTIONS, DrawSettings, draw_references
from fabula.studies.memory.references import Reference
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
    found = scripts.sort_of(name)
    assert found is not None and found[0] == sort


def test_head_phrase_when_there_is_more_than_the_head_ends_with_it() -> None:
    assert scripts.head_phrase("the mannequin in a robe") == ("the", "mannequin")
    assert scripts.head_phrase("stacks of old books") == ("old", "books")
    assert scripts.head_phrase("the bag of white paste") == ("the", "bag")


def test_singulars_when_an_ending_may_be_a_plural_gives_every_reading() -> None:
    assert {"puppy", "puppie"} <= set(scripts.singulars("puppies"))
    assert "knife" in set(scripts.singulars("knives"))
    assert list(scripts.singulars("s")) == ["s"]


def test_colours_worn_when_words_or_their_parts_are_listed() -> None:
    assert scripts.colours_worn("Man in an olive coat with blue-grey eyes.") == {"green", "blue"}
    assert scripts.colours_worn("Woman in red.") == frozenset()
    assert scripts.colours_worn("Greenland's evergreens") == frozenset()


def test_style_when_the_text_names_one_is_that_and_else_none() -> None:
    style = scripts.style_in("An anime about a thief.")
    assert style is not None and style.startswith("anime")
    assert scripts.style_in("A thief animates a crowd in Rome.") is None


# Objects by rules: what stands alone, and whose picture shows the rest.


def entity(kind: str, name: str, shots: tuple[int, ...], description: str = "") -> scripts.ScriptEntity:
    return scripts.ScriptEntity.model_validate(
        {
            "type": kind, "name": name, "label": None, "shots": shots, "description": description or name,
            "described_by": "registry",
        }
    )  # fmt: skip


def script(*entities: scripts.ScriptEntity, actions: tuple[str, ...] = ("", "", "")) -> scripts.MemoryScript:
    shots = tuple(
        scripts.ScriptShot(key=f"1:{number}", action=text) for number, text in enumerate(actions, 1)
    )
    return scripts.MemoryScript(episode_id="e", overview="", shots=shots, entities=entities, unscheduled=())


ANA = entity("character", "Ana", (0, 1, 2), "Woman with a long grey scarf.")
BEN = entity("character", "Ben", (0, 1), "Tall boy.")
HALL = entity("location", "The Hall", (0, 1))
YARD = entity("location", "The Yard", (2,))


ANA_PLAIN = entity("character", "Ana", (0, 1), "Woman.")
GREETED = ("Ana greets Ben, who lifts the felt hat.", "Ana waits. Ben drops the felt hat.", "")
OWNERS: dict[str, tuple[scripts.ScriptEntity, scripts.MemoryScript, str | None]] = {
    **{name: (entity("object", name, (0,)), script(ANA, HALL), None)
       for name in ("the brown horse", "the police car", "the brass lantern", "the quux")},
    # Ben shares both shots with it as Ana does; only Ana's description has a scarf
    "described": (
        entity("object", "the grey scarf", (0, 1), "Long woollen scarf."), script(BEN, ANA, HALL), "Ana",
    ),
    "named": (entity("object", "Ben's coat", (0,)), script(ANA, BEN), "Ben"),
    "named before it": (
        entity("object", "the felt hat", (0, 1)), script(ANA_PLAIN, BEN, actions=GREETED), "Ben",
    ),
    "most shots": (entity("object", "the oak door", (0, 1, 2)), script(ANA, YARD, HALL), "The Hall"),
    "no shot": (entity("object", "the oak door", (2,)), script(ANA, HALL), None),
}  # fmt: skip


@pytest.mark.parametrize("case", OWNERS)
def test_object_when_classified_stands_alone_or_belongs_to_what_shows_it(case: str) -> None:
    thing, others, name = OWNERS[case]
    row = scripts.classify_by_rules(thing, others.model_copy(update={"entities": (*others.entities, thing)}))
    assert (row.owner and row.owner.name, row.by) == (name, "rules@1")
    assert row.owner is None or row.owner.type == ("location" if name == "The Hall" else "character")
    assert ("no location shares a shot" in row.reason) is (case == "no shot")


# Scripts: which entities an episode has, and where their descriptions are from.


def read(document: dict[str, Any]) -> scripts.MemoryScript:
    return scripts.script_of("ep_a", EntityEpisode.model_validate(document))


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

GREEN = memory.rgb_of(memory.KEYS["green"])
CHECKED_ANA = memory.Subject("character", "Ana")


def cut_of(mask: np.ndarray) -> memory.CutOut:  # type: ignore[type-arg]
    return memory.cut_by_mask(Image.new("RGB", mask.shape[::-1], (90, 60, 50)), mask, "test")


def failed(cut: memory.CutOut, subject: memory.Subject = CHECKED_ANA) -> list[str]:
    return [
        check.code for check in memory.check_cut(cut, subject, memory.CheckLimits()) if check.passed is False
    ]


@pytest.mark.parametrize("key", memory.KEYS)
def test_checks_when_a_portrait_is_sound_all_pass(key: str) -> None:
    ground = memory.rgb_of(memory.KEYS[key])  # type: ignore[index]
    checks = memory.check_cut(
        memory.cut_by_colour(draw_portrait(ground), ground), CHECKED_ANA, memory.CheckLimits()
    )
    assert [check.code for check in checks] == ["ground", "area", "holes", "pieces", "border", "key_left"]
    assert memory.passes(checks) and all(check.by == "rules" for check in checks)


@pytest.mark.parametrize("fault", FAULTS)
def test_checks_when_a_fault_is_planted_find_it(fault: Fault) -> None:
    assert failed(memory.cut_by_colour(draw_portrait(GREEN, fault), GREEN)) == [FAULTS[fault]]


def test_checks_when_clothes_of_one_ground_stand_before_another_pass() -> None:
    magenta = memory.rgb_of(memory.KEYS["magenta"])
    image = draw_portrait(magenta)
    image.paste(GREEN, (40, 42, 80, 102))
    assert failed(memory.cut_by_colour(image, magenta)) == []
    assert failed(memory.cut_by_colour(draw_portrait(GREEN, "key-coloured clothes"), GREEN)) == ["pieces"]


def test_pieces_when_an_object_hovers_or_is_two_tells_them_apart() -> None:
    above = np.zeros((100, 100), dtype=bool)
    above[20:40, 40:60] = above[50:70, 40:60] = True
    beside = above.T.copy()
    assert failed(cut_of(above), memory.Subject("object", "the lamp")) == []
    assert failed(cut_of(beside), memory.Subject("object", "the lamp")) == ["pieces"]
    assert failed(cut_of(above), CHECKED_ANA) == ["pieces"]
    many = memory.check_cut(cut_of(beside), memory.Subject("object", "the metal keys"), memory.CheckLimits())
    assert next(check for check in many if check.code == "pieces").passed is None and memory.passes(many)


def test_composition_when_a_figure_is_right_is_one_and_falls_with_each_part() -> None:
    # 90 of 100 high, in the middle, 30 wide: height over width is 3, which is usual.
    good = np.zeros((100, 100), dtype=bool)
    good[5:95, 35:65] = True
    assert memory.composition(cut_of(good), "character") == pytest.approx(1.0)
    # Half as high: size 0.5; 45 over 30 is 1.5 of the least 1.6, 0.9375; the middle is kept: 1.
    small = np.zeros((100, 100), dtype=bool)
    small[27:72, 35:65] = True
    assert memory.composition(cut_of(small), "character") == pytest.approx((0.5 + 0.99 + 0.9375) / 3)
    # Moved to the left by 20 of 100: place 1 - 2 * 0.2.
    moved = np.roll(good, -20, axis=1)
    assert memory.composition(cut_of(moved), "character") == pytest.approx((1 + 0.6 + 1) / 3)
    assert memory.composition(cut_of(np.zeros((9, 9), dtype=bool)), "character") == 0.0


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
        key = next(key for key, code in memory.KEYS.items() if code in request.prompt)
        number = sum(kind == "picture" and ground == key for kind, ground in self.asked) + 1
        self.asked.append(("picture", key))
        fault = self.plan(key, number)
        if fault == "refused":
            raise NoAnswer("refused", "the generator declined")
        if fault is not None and fault not in FAULTS:
            raise NoAnswer(fault, "it is not there")
        return reply_of(draw_portrait(memory.rgb_of(memory.KEYS[key]), fault))  # type: ignore[index,arg-type]

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


def bad(fault: str, *grounds: str, number: int | None = None) -> Plan:
    """A plan by which candidates on some grounds, or one of each ground, have a fault."""
    return lambda key, at: fault if (key in grounds or not grounds) and number in (None, at) else None


SOUND: Plan = Desk().plan
NO_FEET = {"complete": False, "wrong": "No feet."}
OTHER_COAT = {"traits_right": False, "wrong": "The coat is blue."}
PLANS: dict[str, tuple[Plan, list[Any], dict[str, Any]]] = {
    "all are sound": (SOUND, [], {"viewer": VIEWER}),
    # rules reject all three on green, and nobody is asked about them: 3 + 3 pictures, a choice, a check
    **{f"on green {fault}": (bad(fault, "green"), [], {"viewer": VIEWER}) for fault in FAULTS},
    "the second has a hole": (bad("hole", number=2), [], {"viewer": VIEWER}),
    # one alone is chosen without asking
    "the second alone is sound": (lambda _, at: None if at == 2 else "hole", [], {"viewer": VIEWER}),
    "the viewer rejects two": (SOUND, [NO_FEET, OTHER_COAT], {"viewer": VIEWER}),
    # what rules reject comes last, though nobody looked closer at it
    "nothing passes": (bad("cropped head", "green"), [{"opaque": False}] * 2, {"viewer": VIEWER}),
    "refused on green": (bad("refused", "green"), [], {}),
    "always refused": (bad("refused"), [], {}),
    # it is not paid for again
    "the viewer says nothing of use": (SOUND, ["malformed"], {"viewer": VIEWER}),
}  # fmt: skip


@pytest.mark.parametrize("case", PLANS)
def test_portrait_when_drawn_is_tried_on_grounds_and_kept_as_its_tries_say(case, in_lines, snapshot) -> None:
    plan, verdicts, settings = PLANS[case]
    desk = Desk(plan, list(verdicts))
    made = drawn(desk, **settings)
    assert Counter(made["calls"]) == desk.counts
    taken = made["taken"] and {
        key: made["taken"][key] for key in ("round", "candidate", "key_colour", "bounds")
    }
    tries = [
        f"{[one['outcome'] for one in row['candidates']]} {'passed' if row['passed'] else 'failed'} "
        f"{[check['code'] for check in row['checks'] if check['passed'] is False]}" for row in made["tries"]
    ]  # fmt: skip
    by = str(made["verified_by"]).partition("#")[0]
    told = {"asked": [f"{kind} {of}" for kind, of in desk.asked], "status": made["status"], "by": by,
            "reason": made["reason"], "taken": taken, "tries": tries}  # fmt: skip
    assert in_lines(told) == snapshot


def test_item_when_a_model_is_out_of_reach_fails_and_is_no_verdict() -> None:
    with pytest.raises(NoAnswer, match="unavailable"):
        drawn(Desk(lambda _key, _number: "unavailable"))
    with pytest.raises(NoAnswer, match="unavailable"):
        drawn(Desk(verdicts=["unavailable"]), viewer=VIEWER)


def test_candidates_when_asked_for_have_seeds_of_their_own_and_the_ground_in_the_prompt() -> None:
    desk = Desk(lambda _key, _number: "hole")
    drawn(desk, seed=100)
    asked = [PictureRequest.of(request) for request in desk.requests]
    # The run's seed is 42 and 100 is added: tries of three take 142 to 144, 145 to 147, 148 to 150.
    assert [request.seed for request in asked] == list(range(142, 151))
    assert all(request.prompt.startswith("A portrait.\n") and request.scene is None for request in asked)
    assert {(request.width, request.height) for request in asked} == {(768, 1024)}
    assert "#ff00b8" in asked[3].prompt and "magenta" in asked[3].prompt

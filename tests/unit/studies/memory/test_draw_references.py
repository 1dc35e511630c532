"""Drawing references: planted bad portraits are rejected, retried on the stated grounds, and counted."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fabula.engine.stage import Answer, Ask, Item, Made, NoAnswer, Tools
from fabula.models.chat import Image as ChatImage
from fabula.models.generators.request import PictureRequest
from fabula.studies.memory.candidates import DrawSettings
from fabula.studies.memory.draw_references import QUESTIONS, run
from fabula.studies.memory.keying import KEYS, rgb_of
from fabula.studies.memory.references import Reference
from fabula.studies.pictures.render_pictures import LABEL
from fabula.testing.drawn_portraits import FAULTS, Fault, draw_portrait, reply_of

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
    outcome = asyncio.run(run(Item("e/character:Ana", fields), tools))
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

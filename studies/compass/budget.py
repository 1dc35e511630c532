"""What an arm asks for at most, before anything is asked: calls of judges, and pictures.

Arms share what they ask: candidates are judged once for all of them, the weakest transitions of one
candidate once. So each arm is told as if it were alone, and all together apart. Which storyboards get below
the repair threshold is not known before; the numbers are the most that there can be.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...schemas.katha import StoryRecord
from .arms import ARMS, FULL, Arm
from .frozen import WeakestBy
from .judging import REPORTING, SELECTION, UNSCORED, QuestionHalves


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked at most."""

    candidates: int = 0  # calls of judges about candidates
    weakest: int = 0  # calls about the two frames of each transition
    bridges: int = 0  # calls about storyboards with a frame that is tried
    pictures: int = 0  # candidates' pictures and inserted frames that have to be made
    # calls for the final report of the arm: image-only, and text and images together; without text-only,
    # which all arms share
    reporting: int = 0

    @property
    def calls(self) -> int:
        """Calls for selection and repair."""
        return self.candidates + self.weakest + self.bridges

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**asdict(self), "calls": self.calls}


@dataclass(frozen=True)
class Budget:
    """What arms ask for."""

    stories: int  # number of stories
    judges: int  # calls of judges for each question: judges times votes
    arms: dict[str, Asked]  # name of an arm -> what it asks alone
    together: Asked  # what all of them ask, each thing once
    text: int  # text-only calls of the final report, once for all arms

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "stories": self.stories, "answers_per_question": self.judges, "text_only_calls": self.text,
            "arms": {name: asked.as_json() for name, asked in self.arms.items()},
            "together": self.together.as_json(),
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        rows = [*self.arms.items(), ("together", self.together)]
        widest = max(len(name) for name, _ in rows)
        return [
            f"{self.stories} stories, at most, {self.judges} answers per question:",
            *(
                f"  {name:<{widest}}  {asked.calls} calls to select and repair ({asked.candidates} "
                f"candidates, {asked.weakest} weakest, {asked.bridges} bridges), {asked.pictures} pictures, "
                f"{asked.reporting} calls to report"
                for name, asked in rows
            ),
            f"  and {self.text} calls about the stories alone, once for all arms",
        ]


def budget(
    records: Iterable[StoryRecord], halves: QuestionHalves, arms: Sequence[Arm], seeds: int,
    answers_each: int, weakest: WeakestBy,
) -> Budget:  # fmt: skip
    """Return what arms ask for at most.

    ``seeds``: candidates of a story, and frames that are tried at a transition.
    """
    stories = tuple(records)
    selecting = [_count(record, halves.of(SELECTION)) for record in stories]
    about = [_count(record, halves.of(SELECTION), by_transition=True) for record in stories]
    reporting = sum(_count(record, halves.of(REPORTING)) for record in stories)
    panels = sum(len(record.scenes) for record in stories)
    repairable = sum(bool(count) for count in about)

    def asked(arm: Arm) -> Asked:
        boards = seeds if arm.start != "first" else 1
        scored = arm.tests or "recoverability" in arm.terms or (arm.localises and weakest == "whole")
        tried = sum(count for count, some in zip(selecting, about, strict=True) if some)
        frames = 0 if arm.insertion is None else seeds if arm.tests else 1
        places = 0 if arm.insertion is None else repairable if arm.localises else len(stories)
        return Asked(
            candidates=sum(selecting) * boards * answers_each if scored else 0,
            weakest=sum(about) * answers_each if arm.localises and weakest == "own" else 0,
            bridges=tried * seeds * answers_each if arm.tests else 0,
            pictures=panels * boards + places * frames,
            reporting=2 * reporting * (seeds if arm.start == "all" else 1) * answers_each,
        )

    single = {arm.name: asked(arm) for arm in arms}
    return Budget(
        len(stories), answers_each, single, _together(arms, single, panels, seeds), reporting * answers_each
    )


def _together(arms: Sequence[Arm], single: dict[str, Asked], panels: int, seeds: int) -> Asked:
    """Return what all arms ask; what two of them ask alike counts once."""
    starts = {arm.start for arm in arms}
    boards = panels * (seeds if starts - {"first"} else 1)
    frames: dict[tuple[Any, ...], int] = {}
    weakest: dict[str, int] = {}
    bridges: dict[str, int] = {}
    for arm in arms:
        own = single[arm.name]
        made = own.pictures - panels * (seeds if arm.start != "first" else 1)
        if arm.insertion is not None:
            key = (arm.start if arm.localises else arm.name, arm.insertion.shows)
            frames[key] = max(frames.get(key, 0), made)
        if arm.localises:
            weakest[arm.start] = max(weakest.get(arm.start, 0), own.weakest)
        if arm.tests:
            bridges[arm.start] = max(bridges.get(arm.start, 0), own.bridges)
    return Asked(
        candidates=max((asked.candidates for asked in single.values()), default=0),
        weakest=sum(weakest.values()),
        bridges=sum(bridges.values()),
        pictures=boards + sum(frames.values()),
        reporting=sum(asked.reporting for asked in single.values()),
    )


def _count(record: StoryRecord, half: frozenset[str], *, by_transition: bool = False) -> int:
    """Return how many questions of a half a story has; only those about a transition, not moral, if asked."""
    links = {(transition.from_scene, transition.to_scene) for transition in record.transitions}
    return sum(
        question.question_id in half
        and (
            not by_transition or (question.question_type != UNSCORED and question.target_transition in links)
        )
        for question in record.questions
    )


def tuning_budget(
    records: Iterable[StoryRecord], halves: QuestionHalves, seeds: int, answers_each: int,
    weakest: WeakestBy,
) -> Budget:  # fmt: skip
    """Return what tuning asks for at most: both halves of the candidates, repair, and its objective.

    ``seeds``: candidates of a story, and frames that are tried.
    """
    stories = tuple(records)
    (full,) = (arm for arm in ARMS if arm.name == FULL)
    whole = budget(stories, halves, [full], seeds, answers_each, weakest)
    reporting = sum(_count(record, halves.of(REPORTING)) for record in stories)
    asked = replace(
        whole.arms[FULL],
        candidates=whole.arms[FULL].candidates + reporting * seeds * answers_each,
        bridges=whole.arms[FULL].bridges + reporting * answers_each,
        reporting=0,
    )
    return Budget(len(stories), answers_each, {"tuning": asked}, asked, 0)

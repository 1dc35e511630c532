"""The frozen file: everything that tuning chose, and by what hashes it refuses to be used elsewhere.

A file is read only as it was written: it holds the hash of itself. It is applied only to the release, the
halves of questions, the judges, the prompts and the encoders that it was tuned with, and to none of the
stories that it was tuned on. What is reported is one of the four cells of Table 64; the final report stands
on prompts and on questions that selection has not seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ...errors import InputError, UserError
from ...evaluation.archive.archive import read_manifest, release_sha256
from ...evaluation.judging.settings import MAIN, judge_prompt
from ...schemas.canonical import Json, digest, pretty_bytes, write_atomic, writing
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import MISSHAPEN, explaining, read_json
from ...schemas.text import counted
from ...schemas.values import Own
from .arms import ARMS, FULL, PSI, Arm
from .boards import Weights
from .judging import REPORTING, SELECTION, UNSCORED, HalvedRelease, Halving, QuestionHalves, selection_prompts

FROZEN = "frozen.json"
VERSION = 1
WeakestBy = Literal["own", "whole"]
"""How Eq. 27 is asked: ``own``: judges see the two frames of a transition alone. ``whole``: the answers that
they gave about the whole storyboard, by the transition that each question is about."""


class Setting(Own):
    """What is tuned."""

    weights: Weights = Field(description="Weights of Eq. 24; they add up to 1, as only proportions count.")
    delta: float = Field(description="Cosine above which a frame supports an annotation (Eq. 25).")
    gamma: float = Field(description="Cosine above which two frames are copies (Eq. 26).")
    repair_threshold: float = Field(
        ge=0, description="A weakest transition whose R is below this is repaired; 0: none is."
    )


class Conditions(Own):
    """What a frozen file holds for, and nothing else."""

    release_sha256: str = Field(description="Hash of the release with all questions.")
    questions_sha256: str = Field(description="Hash of the halves of its questions.")
    selection_sha256: str = Field(description="Hash of the release of the selection half.")
    reporting_sha256: str = Field(description="Hash of the release of the reporting half.")
    judges: tuple[str, ...] = Field(description="Judges that selection asks.")
    prompts: dict[str, str] = Field(description="Prompts that selection asks with: id -> version and hash.")
    encoders: dict[str, str] = Field(description="Encoders of coverage and copies, with revisions.")
    psi: str = Field(description="How an annotation becomes a text.")
    weakest: WeakestBy = Field(description="How the weakest transition is found.")
    halves: Halving = Field(
        default="dimensions", description="How halves of questions are drawn; earlier files do not say it."
    )


class Search(Own):
    """How the values were found."""

    method: str = Field(description="What was tried, in what order.")
    seed: int = Field(description="Master seed.")
    grid: dict[str, tuple[Any, ...]] = Field(description="The values that were tried.")
    tried: int = Field(description="How many settings were compared.")
    objective: str = Field(description="What was made as high as possible.")
    ties: str = Field(description="What was chosen among settings that are equally good.")
    reranked: float | None = Field(description="The objective with the chosen weights, without repair.")
    repaired: dict[str, float | None] = Field(description="The objective by repair threshold.")
    base: float | None = Field(description="The same for the mean over all candidates.")
    stories: int = Field(description="Stories that the objective stands on.")


class Frozen(Own):
    """A frozen file."""

    version: int = Field(description="Of this form.")
    setting: Setting
    conditions: Conditions
    split: str = Field(description="The split that it was tuned on; several with + between.")
    stories: tuple[str, ...] = Field(description="Ids of the stories that it was tuned on, sorted.")
    method: str = Field(description="Method whose candidates it was tuned on.")
    seeds: tuple[int | None, ...] = Field(description="Seeds of the candidates.")
    search: Search

    @property
    def sha256(self) -> str:
        """Hash of all that it says, or that an earlier version wrote."""
        return digest(self.told())

    def told(self) -> dict[str, Any]:
        """Return what its file says; files of earlier versions say less."""
        return self.model_dump(mode="json", exclude_unset=True)


def write_frozen(path: Path, frozen: Frozen) -> None:
    """Write a frozen file with its own hash."""
    with writing(path, what="it"):
        write_atomic(path, [pretty_bytes({**frozen.told(), "sha256": frozen.sha256})])


def read_frozen(path: Path) -> Frozen:
    fix = "give the file that fabula baseline compass tune wrote, as it wrote it"
    with explaining(path, fix, what="this is no frozen file", of=MISSHAPEN):
        document = dict(read_json(path, follow=True))
        stated = document.pop("sha256", None)
        frozen = Frozen.model_validate(document)
    if stated != frozen.sha256:
        what = "the file was changed after it was frozen: its hash is another"
        raise InputError.one(str(path), what=what, fix=fix)
    return frozen


def conditions_of(
    halved: HalvedRelease, judges: Iterable[str], encoders: Mapping[str, str], weakest: WeakestBy
) -> Conditions:
    """Return what a file that is tuned now would hold for."""
    return Conditions(
        release_sha256=release_sha256(halved.whole.path),
        questions_sha256=halved.halves.sha256,
        selection_sha256=halved.sha256(SELECTION),
        reporting_sha256=halved.sha256(REPORTING),
        judges=tuple(judges),
        prompts=selection_prompts(),
        encoders=dict(encoders),
        psi=PSI,
        weakest=weakest,
        halves=halved.halves.rule,
    )


_MEANT = {
    "release_sha256": "another release",
    "questions_sha256": "other halves of questions",
    "selection_sha256": "other selection questions",
    "reporting_sha256": "other reporting questions",
    "judges": "other judges",
    "prompts": "other prompts of the judges",
    "encoders": "other encoders",
    "psi": "another text of annotations",
    "weakest": "another way to find the weakest transition",
    "halves": "another way to draw halves of questions",
}


def check_applies(frozen: Frozen, now: Conditions, stories: Iterable[str]) -> None:
    """Check that a frozen file may be applied."""
    problems = [
        UserError(
            f"frozen file: {name}",
            what=f"it was tuned with {_MEANT[name]}: {_short(before)}, now {_short(after)}",
            fix="apply it with what it was tuned with, or tune again on the validation split",
        )
        for name in Conditions.model_fields
        if (before := getattr(frozen.conditions, name)) != (after := getattr(now, name))
    ]  # fmt: skip
    seen = sorted(set(stories) & set(frozen.stories))
    if seen:
        shown = ", ".join(seen[:5]) + (" ..." if len(seen) > 5 else "")
        problems.append(
            UserError(
                "frozen file: stories",
                what=f"it was tuned on {counted(len(seen), 'story')} that it is to be applied to: {shown}",
                fix="apply it to stories of another split",
            )
        )
    if problems:
        raise InputError(problems)


Share = Literal["same", "held-out"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One of the four evaluation protocols of Table 64."""

    prompts: Share  # whether the judges' prompts are those that selection asked with
    questions: Share  # the same of the questions

    @property
    def label(self) -> str:
        """The row of Table 64."""
        return f"{self.prompts.capitalize()} judge prompts, {self.questions} questions"

    def as_json(self) -> dict[str, Json]:
        return {"prompts": self.prompts, "questions": self.questions, "label": self.label}


CELLS = tuple(
    Cell(prompts, questions) for prompts in ("same", "held-out") for questions in ("same", "held-out")
)
HELD_OUT = Cell("held-out", "held-out")


def cell_of(evaluation: Path, conditions: Conditions) -> Cell:
    """Return which cell of Table 64 an evaluation of arms is."""
    protocol = read_manifest(evaluation).protocol
    released, asked = protocol.get("release"), protocol.get("prompts")
    sha256 = released.get("sha256") if isinstance(released, Mapping) else None
    questions: dict[str, Share] = {
        conditions.selection_sha256: "same", conditions.reporting_sha256: "held-out",
    }  # fmt: skip
    if sha256 not in questions:
        fix = "evaluate the arms with the release in the folder selection or reporting"
        what = "its questions are neither those that select nor those that report"
        raise InputError.one(str(evaluation), what=what, fix=fix)
    labels = set(asked.values()) if isinstance(asked, Mapping) else set()
    used = conditions.prompts.get(judge_prompt("question_image", MAIN).card.id) in labels
    return Cell("same" if used else "held-out", questions[sha256])


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- What an arm asks for at most, before anything is asked: calls of judges, and pictures
#
# Arms share what they ask: candidates are judged once for all of them, the weakest transitions of one
# candidate once. So each arm is told as if it were alone, and all together apart. Which storyboards get below
# the repair threshold is not known before; the numbers are the most that there can be.


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
        return {
            "stories": self.stories, "answers_per_question": self.judges, "text_only_calls": self.text,
            "arms": {name: asked.as_json() for name, asked in self.arms.items()},
            "together": self.together.as_json(),
        }  # fmt: skip

    def lines(self) -> list[str]:
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

"""The frozen file: everything that tuning chose, and by what hashes it refuses to be used elsewhere.

A file is read only as it was written: it holds the hash of itself. It is applied only to the release, the
halves of questions, the judges, the prompts and the encoders that it was tuned with, and to none of the
stories that it was tuned on. What is reported is one of the four cells of Table 64; the final report stands
on prompts and on questions that selection has not seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ...errors import InputError, TargetError, UserError
from ...evaluation.archive.archive import read_manifest, release_sha256
from ...evaluation.judging.settings import MAIN, judge_prompt
from ...schemas.canonical import Json, digest, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json, reason_of
from ...schemas.text import counted
from ...schemas.values import Own
from .arms import PSI
from .judging import REPORTING, SELECTION, HalvedRelease, Halving, selection_prompts
from .scoring import Weights

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
    try:
        write_atomic(path, [pretty_bytes({**frozen.told(), "sha256": frozen.sha256})])
    except OSError as error:
        raise TargetError(
            str(path), what=f"it cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip


def read_frozen(path: Path) -> Frozen:
    """Return what a frozen file holds."""
    fix = "give the file that fabula baseline compass tune wrote, as it wrote it"
    try:
        document = dict(read_json(path, follow=True))
        stated = document.pop("sha256", None)
        frozen = Frozen.model_validate(document)
    except (OSError, ValueError, TypeError) as error:
        what = f"this is no frozen file: {reason_of(error)}"
        raise InputError.one(str(path), what=what, fix=fix) from error
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
        """Return it as plain JSON."""
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

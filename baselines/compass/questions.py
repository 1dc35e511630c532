"""Which questions select and which report: two halves of each story's questions, drawn once and kept.

Question: which of a story's questions may Semantic Compass see?
Formula: per story and dimension, questions are put into the order of the SHA-256 of (seed, story id, question
    id); the first half of them selects, the others report.
Input: the records of a release; the master seed, 42.
Output: question id -> half, with a hash of the whole assignment.
Undefined when: never. A dimension with one question goes to reporting; with an odd number reporting gets one
    more. A story may so have no question that selects: then recoverability is undefined for it and the other
    terms select (:mod:`.scoring`).
Source: KathaTrace, B.7, G.4, J.7, Tables 43 and 64: selection and final reporting stand on different
    questions. The paper does not say how they are drawn.
Departures from the source: it holds back questions between splits, this also within each story, so that the
    stories that are reported on can be selected for.
Example: three causal questions and one moral question: one causal selects, two causal and the moral report.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ...errors import InputError, TargetError, UserError
from ...evaluation.archive.protocols import release_sha256
from ...releases.katha.derived import write_derived
from ...releases.loading import Release
from ...schemas.canonical import digest, pretty_bytes, write_atomic
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import read_json, reason_of

Half = Literal["selection", "reporting"]
SELECTION: Half = "selection"
REPORTING: Half = "reporting"
MASTER_SEED = 42
QUESTIONS = "questions.json"


@dataclass(frozen=True)
class QuestionHalves:
    """Which half each question of a release belongs to."""

    seed: int  # of the draw
    half_of: Mapping[str, Half] = field(repr=False)  # question id -> half

    @property
    def sha256(self) -> str:
        """Hash of the assignment."""
        return digest({"seed": self.seed, "half_of": dict(self.half_of)})

    def of(self, half: Half) -> frozenset[str]:
        """Return the ids of the questions of a half."""
        return frozenset(question for question, owner in self.half_of.items() if owner == half)

    def records(self, records: Iterable[StoryRecord], half: Half) -> tuple[StoryRecord, ...]:
        """Return records with the questions of one half only; those that select have no moral label."""
        kept = self.of(half)
        return tuple(_with_half(record, kept, labelled=half == REPORTING) for record in records)

    def as_json(self) -> dict[str, Any]:
        """Return the document that ``questions.json`` holds."""
        return {"seed": self.seed, "sha256": self.sha256, "half_of": dict(self.half_of)}


def split_questions(records: Iterable[StoryRecord], seed: int = MASTER_SEED) -> QuestionHalves:
    """Draw the halves of a release's questions; the same for the same questions, in whatever order."""
    half_of: dict[str, Half] = {}
    for record in records:
        groups: dict[str, list[str]] = defaultdict(list)
        for question in record.questions:
            groups[question.question_type].append(question.question_id)
        for ids in groups.values():
            ordered = sorted(ids, key=lambda name, story=record.story_id: digest([seed, story, name]))  # type: ignore[misc]
            half_of |= dict.fromkeys(ordered[: len(ids) // 2], SELECTION)
            half_of |= dict.fromkeys(ordered[len(ids) // 2 :], REPORTING)
    return QuestionHalves(seed, dict(sorted(half_of.items())))


@dataclass(frozen=True)
class HalvedRelease:
    """A release and its two halves, each a folder that evaluations read."""

    whole: Release = field(repr=False)  # the release
    halves: QuestionHalves = field(repr=False)  # which question is where
    selection: Path  # folder of the half that selects
    reporting: Path  # folder of the half that reports

    def folder(self, half: Half) -> Path:
        """Return the folder of a half."""
        return self.selection if half == SELECTION else self.reporting

    def sha256(self, half: Half) -> str:
        """Return the hash by which archives know the half that they were asked with."""
        return release_sha256(self.folder(half))


def halve_release(release: Release, out: Path, seed: int = MASTER_SEED) -> HalvedRelease:
    """Write ``questions.json`` and a release for each half; what is there already and the same stays.

    The half that selects has neither moral labels nor contrastive variants: Eq. 24 asks for neither, and
    whatever selection does not see stays held out.
    """
    halves = split_questions(release.records, seed)
    _keep(out / QUESTIONS, halves)
    about = {"seed": seed, "questions_sha256": halves.sha256}
    selecting, reporting = (halves.records(release.records, half) for half in (SELECTION, REPORTING))
    return HalvedRelease(
        release,
        halves,
        write_derived(release, out / SELECTION, selecting, {"half": SELECTION, **about}, variants=()),
        write_derived(release, out / REPORTING, reporting, {"half": REPORTING, **about}),
    )


def read_halves(path: Path) -> QuestionHalves:
    """Return the halves in a file ``questions.json``."""
    fix = "write it again: the same release and seed give the same halves"
    try:
        document = read_json(path, follow=True)
        halves = QuestionHalves(int(document["seed"]), {str(key): _half(name) for key, name in
                                                        document["half_of"].items()})  # fmt: skip
        stated = document["sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"no halves of questions: {reason_of(error)}"
        raise InputError([UserError(str(path), what=what, fix=fix)]) from error
    if stated != halves.sha256:
        raise InputError([UserError(str(path), what="the file was changed: its hash is another", fix=fix)])
    return halves


def _half(name: object) -> Half:
    if name == SELECTION:
        return SELECTION
    if name == REPORTING:
        return REPORTING
    raise ValueError(f"{name!r} is no half")


def _with_half(record: StoryRecord, kept: frozenset[str], *, labelled: bool) -> StoryRecord:
    questions = tuple(question for question in record.questions if question.question_id in kept)
    changed: dict[str, Any] = {"questions": questions} | ({} if labelled else {"moral_label": None})
    return record.model_copy(update=changed)


def _keep(path: Path, halves: QuestionHalves) -> None:
    """Write the file of halves, unless it says the same."""
    content = pretty_bytes(halves.as_json())
    try:
        if path.is_file():
            if read_halves(path).sha256 == halves.sha256:
                return
            raise TargetError(
                str(path), what="the folder holds the halves of other questions, or of another seed",
                fix="choose another folder",
            )  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [content])
    except OSError as error:
        raise TargetError(
            str(path), what=f"it cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip

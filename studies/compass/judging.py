"""Asking judges what selection needs: image-only answers about storyboards, each an evaluation of its own.

Every question goes through ``fabula evaluate katha``: an engine run below one folder, continued where it was
stopped, no answer paid for twice. Only the image-only condition is asked, with the prompts ``main`` and
without moral labels and pairs: Eq. 24 and 27 need no more.

What runs cost, and what is left of one cost limit that several runs share.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import ConfigError, InputError, TargetError
from ...evaluation.archive.archive import release_sha256
from ...evaluation.judging.settings import MAIN, JudgeSettings, judge_prompt, judges_of, public_judge
from ...evaluation.katha.requests import EvaluateOptions, evaluate_katha, evaluation_request
from ...evaluation.recoverability.definitions import Definitions
from ...evaluation.recoverability.items import DIMENSIONS
from ...evaluation.recoverability.pooling import IMAGE, RIGHT_VERDICT, UNJUDGED
from ...evaluation.recoverability.score import Judged, judged_folder
from ...releases.katha.derived import write_derived
from ...releases.loading import Release, load
from ...schemas.canonical import Json, digest, pretty_bytes, write_atomic
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import read_json, reason_of
from ...schemas.values import Score
from .boards import Board, Seed, write_boards
from .scoring import recoverability

if TYPE_CHECKING:
    from ...engine.progress import Reporter
    from ...engine.status import RunReport


# -- Which questions select and which report: two halves of each story's questions, drawn once and kept
#
# Question: which of a story's questions may Semantic Compass see?
# Formula: per story and dimension, questions are put into the order of the SHA-256 of (seed, story id,
#     question id); the first half of them selects, the others report.
# Input: the records of a release; the master seed, 42.
# Output: question id -> half, with a hash of the whole assignment.
# Undefined when: never. A dimension with one question goes to reporting; with an odd number reporting gets
#     one more. A story may so have no question that selects: then recoverability is undefined for it and
#     the other terms select (:mod:`.scoring`).
# Source: KathaTrace, B.7, G.4, J.7, Tables 43 and 64: selection and final reporting stand on different
#     questions. The paper does not say how they are drawn.
# Departures from the source: it holds back questions between splits, this also within each story, so that
#     the stories that are reported on can be selected for.
# Example: three causal questions and one moral question: one causal selects, two causal and the moral
#     report.

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
        raise InputError.one(str(path), what=what, fix=fix) from error
    if stated != halves.sha256:
        raise InputError.one(str(path), what="the file was changed: its hash is another", fix=fix)
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


# -- Asking judges what selection needs


@dataclass(frozen=True, slots=True)
class Spent:
    """What one run asked and cost, over all time."""

    calls: int = 0  # answered calls of models
    usd: float = 0.0  # what they cost at most, as far as prices are known
    unpriced: int = 0  # calls whose price is not known

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {"calls": self.calls, "usd": round(self.usd, 6), "unpriced": self.unpriced}


@dataclass
class Ledger:
    """The costs of runs that share a limit."""

    limit: float | None = None  # most USD in all; None for no limit
    spent: dict[str, Spent] = field(default_factory=dict)  # name of a run -> what it cost

    def left(self, run: str) -> float | None:
        """Return what a run may cost in all, the others considered; None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - sum(spent.usd for name, spent in self.spent.items() if name != run))

    def enter(self, run: str, report: "RunReport") -> None:
        """Take in what a run cost."""
        self.spent[run] = Spent(
            sum(use.calls for use in report.models),
            sum(use.cost + use.uncertain_cost for use in report.models),
            sum(use.unpriced for use in report.models),
        )

    def as_json(self) -> Mapping[str, Json]:
        """Return it as plain JSON, sorted."""
        return {name: spent.as_json() for name, spent in sorted(self.spent.items())}


IMAGES_ONLY = ("judge_text.judges=[]", "judge_both.judges=[]")
UNSCORED = "moral"
"""Dimension that has no part in Eq. 27: a moral is of the story, not of one transition."""
Key = tuple[str, str, Seed]
"""Method, story id and seed."""
Answers = Mapping[str, bool]
"""Question id -> whether it was answered rightly; without those that were not judged."""


@dataclass
class Judging:
    """Asks judges, run by run, below one folder and within one cost limit."""

    folder: Path  # where the runs and what they judge lie
    options: EvaluateOptions  # who judges, and how; prompts, splits and stories are set here
    definitions: Definitions = field(default_factory=Definitions)  # how replies become verdicts
    reporter: "Reporter | None" = None  # takes the progress
    ledger: Ledger = field(default_factory=Ledger)  # what its runs cost, and others with the same limit

    def answers(
        self, name: str, release: Path, outputs: Sequence[Path], stories: Iterable[str]
    ) -> dict[Key, Answers]:
        """Return method, story and seed -> the answers from images alone.

        ``name``: of the run: its folder below this one.
        """
        known = _asked(release)
        wanted = sorted(story for story in stories if story in known)
        if not wanted or not outputs:
            return {}
        run = self.folder / name
        report = evaluate_katha(release, outputs, run, self._chosen(name, wanted), reporter=self.reporter)
        self.ledger.enter(name, report)
        return answers_in(judged_folder(run, release, self.definitions))

    def _chosen(self, name: str, stories: Sequence[str]) -> EvaluateOptions:
        return replace(
            self.options, prompts=MAIN, protocol=None, questions_only=True, split=(), subset=None,
            limit=None, stories=tuple(stories), items=(), max_cost=self.ledger.left(name), replace=True,
            replace_sources=True, settings=[*self.options.texts, *IMAGES_ONLY],
        )  # fmt: skip

    def answers_each(self, release: Path) -> int:
        """Return how many answers each question gets: judges times votes."""
        request = evaluation_request(release, (), self.folder, self._chosen("", ()))
        settings = request.config.own("judge_images", JudgeSettings)
        return len(settings.judges) * settings.votes

    def judges(self) -> tuple[str, ...]:
        """Return the judges, by the names that archives give them."""
        specs = judges_of(self.options, self.options.judges, self.options.preset)
        if not specs:
            raise ConfigError("--judge", what="no judge is named", fix="name models with --judge")
        return tuple(public_judge(spec).spec for spec in specs)


def selection_prompts() -> dict[str, str]:
    """Return id -> label of the prompts that selection asks with."""
    prompts = [judge_prompt(name, MAIN) for name in ("question_image", "dimension")]
    return {prompt.card.id: prompt.label for prompt in prompts}


def answers_in(judged: Judged) -> dict[Key, Answers]:
    """Return method, story and seed -> the answers from images alone in an archive, of valid generations."""
    items = judged.items
    groups: dict[Key, dict[str, bool]] = {}
    for method in judged.methods:
        verdicts, valid = method.outcomes.verdicts[:, IMAGE], method.outcomes.valid
        for index, seed in enumerate(judged.replies.seeds):
            for number, key in enumerate(items.keys):
                verdict = verdicts[index, number]
                if valid[index, number] and verdict != UNJUDGED:
                    story = items.records[items.story[number]].story_id
                    answers = groups.setdefault((method.name, story, seed), {})
                    answers[key.question_id] = bool(verdict == RIGHT_VERDICT)
    return dict(groups)


def recovered(record: StoryRecord, answers: Answers, transition: int | None = None) -> Score:
    """Return R of a storyboard by its answers (:func:`.scoring.recoverability`).

    ``transition``: only questions about this transition, from 1, none of them moral.
    """
    groups: dict[str, list[bool]] = {}
    for question in record.questions:
        name = question.question_type
        if question.question_id not in answers or name not in DIMENSIONS:
            continue
        about = transition is not None and _is_about(record, question.target_transition, transition)
        if transition is None or (about and name != UNSCORED):
            groups.setdefault(name, []).append(answers[question.question_id])
    return recoverability(groups)


def write_parts(
    halved: HalvedRelease, folder: Path, boards: Mapping[str, Sequence[Board]]
) -> tuple[Path, tuple[Path, ...], tuple[str, ...]]:
    """Write storyboards of two frames, one for each transition that a question is about, and their release.

    Each transition of a story becomes a story of its own, ``STORY_t1`` and so on, with the selection
    questions about it and no others, so that one evaluation asks all of them (Eq. 27).

    ``boards``: name of a method -> its storyboards, one of each story.

    Returns:
        The release, a folder of outputs for each method that has any, and the ids of its stories.
    """
    selecting = halved.halves.records(halved.whole.records, SELECTION)
    records = {record.story_id: record for record in selecting}
    parts: dict[str, StoryRecord] = {}
    shown: dict[str, list[Board]] = {method: [] for method in boards}
    for method, board in ((method, board) for method, some in boards.items() for board in some):
        record = records[board.story_id]
        for number, span in enumerate(board.spans(record), 1):
            part = part_of(record, number)
            if span and part.questions:
                parts[part.story_id] = part
                frames = (board.frames[span[0]], board.frames[span[-1]])
                shown[method].append(Board(part.story_id, None, frames))
    if taken := sorted(parts.keys() & records.keys()):
        what, fix = "it is called like a transition of another story", "give that story another id"
        raise InputError.one(taken[0], what=what, fix=fix)
    how = {"parts": "transitions", "questions_sha256": halved.halves.sha256}
    release = write_derived(halved.whole, folder / "release", parts.values(), how, variants=())
    outputs = tuple(
        write_boards(folder / "outputs" / method, method, some, panels=2)
        for method, some in shown.items()
        if some
    )
    return release, outputs, tuple(parts)


def part_of(record: StoryRecord, transition: int) -> StoryRecord:
    """Return a transition of a story as a story of its own, with the questions about it."""
    story_id = f"{record.story_id}_t{transition}"
    questions = tuple(
        question.model_copy(update={"story_id": story_id})
        for question in record.questions
        if question.question_type != UNSCORED and question.question_type in DIMENSIONS
        and _is_about(record, question.target_transition, transition)
    )  # fmt: skip
    return record.model_copy(update={"story_id": story_id, "questions": questions, "moral_label": None})


def _is_about(record: StoryRecord, target: tuple[int, int] | None, number: int) -> bool:
    transition = record.transitions[number - 1]
    return target == (transition.from_scene, transition.to_scene)


def _asked(release: Path) -> frozenset[str]:
    """Return the ids of the stories of a release that have a question."""
    return frozenset(record.story_id for record in load(release).records if record.questions)

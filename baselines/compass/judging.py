"""Asking judges what selection needs: image-only answers about storyboards, each an evaluation of its own.

Every question goes through ``fabula evaluate katha``: an engine run below one folder, continued where it was
stopped, no answer paid for twice. Only the image-only condition is asked, with the prompts ``main`` and
without moral labels and pairs: Eq. 24 and 27 need no more.

What runs cost, and what is left of one cost limit that several runs share.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigError, InputError, UserError
from ...evaluation.judging.settings import MAIN, JudgeSettings, judge_prompt, judges_of, public_judge
from ...evaluation.katha.requests import EvaluateOptions, evaluate_katha, evaluation_request
from ...evaluation.recoverability.definitions import Definitions
from ...evaluation.recoverability.items import DIMENSIONS
from ...evaluation.recoverability.pooling import IMAGE
from ...evaluation.recoverability.score import Judged, judged_folder
from ...evaluation.recoverability.votes import RIGHT_VERDICT, UNJUDGED
from ...releases.katha.derived import write_derived
from ...releases.loading import load
from ...schemas.canonical import Json
from ...schemas.katha import StoryRecord
from ...schemas.values import Score
from .boards import Board, Seed, write_boards
from .questions import SELECTION, HalvedRelease
from .scoring import recoverability

if TYPE_CHECKING:
    from ...engine.progress import Reporter
    from ...engine.report import RunReport


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
        settings = request.config.stages["judge_images"]
        assert isinstance(settings, JudgeSettings)
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
        raise InputError([UserError(taken[0], what=what, fix=fix)])
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
